"""Questions about tenants."""

from uuid import UUID

from django.db import connection
from django.db.models import QuerySet

from apps.tenancy.models import Tenant


def current_tenant() -> Tenant:
    """The tenant this connection is in. Raises LookupError on the platform's side."""
    if isinstance(connection.tenant, Tenant):
        return connection.tenant
    raise LookupError("not in a tenant")


def tenants() -> QuerySet[Tenant]:
    """Every tenant, by name; for the platform's side."""
    return Tenant.objects.order_by("name", "id")


def tenant_names() -> dict[UUID, str]:
    """Name of each tenant by id, in one query: for lists that join nothing."""
    return dict(Tenant.objects.values_list("id", "name"))
