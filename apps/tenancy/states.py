"""The status of a tenant."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class TenantStatus(models.TextChoices):
    """Where a tenant is in its life."""

    CREATING = "creating", _("Creating")
    ACTIVE = "active", _("Active")
    SUSPENDED = "suspended", _("Suspended")
    CLOSED = "closed", _("Closed")


S = TenantStatus

TENANT = Machine("tenant", [
    # verb       from          to
    ("activate", S.CREATING,  S.ACTIVE),
    ("suspend",  S.ACTIVE,    S.SUSPENDED),
    ("resume",   S.SUSPENDED, S.ACTIVE),
    ("close",    (S.ACTIVE, S.SUSPENDED), S.CLOSED),
])  # fmt: skip
