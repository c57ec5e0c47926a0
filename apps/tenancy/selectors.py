"""Questions about tenants."""

from uuid import UUID

from django.db.models import QuerySet

from apps.core.realms import side
from apps.tenancy.models import Tenant


def current_tenant() -> Tenant:
    """The tenant this connection is in. Raises LookupError on the platform's side."""
    current = side()
    if isinstance(current, Tenant):
        return current
    raise LookupError("not in a tenant")


def tenants() -> QuerySet[Tenant]:
    """Every tenant, by name; for the platform's side."""
    found: QuerySet[Tenant] = Tenant.objects.order_by("name", "id")
    return found


def tenant_names() -> dict[UUID, str]:
    """Name of each tenant by id, in one query: for lists that join nothing."""
    return dict(Tenant.objects.values_list("id", "name"))
