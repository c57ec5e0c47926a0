"""What can go wrong with tenants."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Unavailable


class TenantNotReady(Unavailable):
    """The tenant's schema is missing, being made, or of another version than this program."""

    code = "tenant_not_ready"
    message = _(
        "The service of {tenant} is being prepared or upgraded. Please try again in a minute."
    )


class TenantExists(Conflict):
    """The name is taken."""

    code = "tenant_exists"
    message = _("A tenant named {slug} exists already. Choose another short name.")
