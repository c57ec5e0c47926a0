"""Tenants and the limits they work in; orders and services of all of them."""

from collections.abc import Callable
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, lists, shows
from apps.api.serializers import orders as order_shapes
from apps.api.serializers import tenants as shapes
from apps.orders import selectors as orders
from apps.orders.models import OrderProjection, ServiceProjection, TenantLimit
from apps.orders.services import lift_suspension, open_tenant, set_tenant_limit, suspend_service
from apps.tenancy import selectors
from apps.tenancy.context import tenant_by_id, tenant_context
from apps.tenancy.models import Tenant


class Tenants(Endpoint):
    """Customers."""

    @lists("listTenants", "tenant.view", shapes.TenantSerializer, query=shapes.TenantFilters)
    def get(self, asked: Asked) -> QuerySet[Tenant]:
        """List tenants, newest first."""
        return selectors.tenants().filter(**asked.query)

    @acts(
        "createTenant", "tenant.manage", shapes.TenantSerializer, body=shapes.NewTenant, status=201
    )
    def post(self, asked: Asked) -> Tenant:
        """Make a tenant with its host, terms, first project, and an owner who is told by mail."""
        return open_tenant(actor=asked.user, **asked.body)


class TenantItem(Endpoint):
    """One customer."""

    @shows("showTenant", "tenant.view", shapes.TenantSerializer)
    def get(self, asked: Asked, tenant: UUID) -> Tenant:
        """Show a tenant."""
        return selectors.tenants().get(pk=tenant)


class TenantLimits(Endpoint):
    """How much a tenant may have."""

    @shows("showTenantLimits", "tenant.view", shapes.TenantLimitSerializer)
    def get(self, asked: Asked, tenant: UUID) -> TenantLimit:
        """Show the limits of a tenant."""
        return TenantLimit.objects.get(tenant=tenant)

    @acts("setTenantLimits", "quota.manage", shapes.TenantLimitSerializer, body=shapes.NewLimits)
    def put(self, asked: Asked, tenant: UUID) -> TenantLimit:
        """Set the limits of a tenant; what it has already stays."""
        found = selectors.tenants().get(pk=tenant)
        return set_tenant_limit(
            tenant=tenant, tenant_name=found.name, actor=asked.user, **asked.body
        )


class AllOrders(Endpoint):
    """Orders of all tenants."""

    @lists(
        "listAllOrders",
        "order.view",
        order_shapes.ProjectedOrder,
        query=order_shapes.ProjectedOrderFilters,
        order=("-created_at", "-order"),
    )
    def get(self, asked: Asked) -> QuerySet[OrderProjection]:
        """List orders of all tenants, newest first."""
        return orders.projected_orders().filter(**asked.query)


class ServiceSuspension(Endpoint):
    """The operator's hold on a service."""

    @acts("suspendService", "service.operate", order_shapes.ProjectedService, body=order_shapes.Why)
    def post(self, asked: Asked, service: UUID) -> ServiceProjection:
        """Suspend a service of a tenant: not charged from now on; it ends after 7 days unless it is
        resumed. The customer reads the reason.
        """
        return _decided(suspend_service, asked, service)


class ServiceResumption(Endpoint):
    """The end of the operator's hold."""

    @acts("resumeService", "service.operate", order_shapes.ProjectedService, body=order_shapes.Why)
    def post(self, asked: Asked, service: UUID) -> ServiceProjection:
        """Let a suspended service go on as it was; charged from now on."""
        return _decided(lift_suspension, asked, service)


def _decided(decide: Callable[..., object], asked: Asked, service: UUID) -> ServiceProjection:
    row = ServiceProjection.objects.get(service=service)
    with tenant_context(tenant_by_id(row.tenant)):
        decide(service_id=service, actor=asked.user, **asked.body)
    return ServiceProjection.objects.get(service=service)


class AllServices(Endpoint):
    """Services of all tenants."""

    @lists(
        "listAllServices",
        "service.view",
        order_shapes.ProjectedService,
        query=order_shapes.ProjectedServiceFilters,
        order=("-created_at", "-service"),
    )
    def get(self, asked: Asked) -> QuerySet[ServiceProjection]:
        """List services of all tenants, newest first."""
        return orders.projected_services().filter(**asked.query)
