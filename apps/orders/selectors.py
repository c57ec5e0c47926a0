"""Questions about orders, services, quotas and the queue."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce

from apps.accounts.models import Project, User
from apps.core.errors import NotFound
from apps.inventory.models import Allocation
from apps.orders.models import (
    Approval,
    Fact,
    Order,
    OrderPolicy,
    OrderProjection,
    ProjectLimit,
    QueueEntry,
    Quote,
    Service,
    ServiceProjection,
    TenantLimit,
)
from apps.orders.states import ApprovalStatus, OrderStatus, ServiceState
from apps.tenancy.selectors import current_tenant

ENDED = (ServiceState.FAILED, ServiceState.TERMINATED, ServiceState.DELETING)


def gpus_in_use(*, tenant: UUID) -> int:
    """GPUs a tenant holds or has in the queue."""
    held = Allocation.objects.filter(tenant=tenant, released_at=None).aggregate(
        n=Coalesce(Sum("gpu_count"), 0)
    )["n"]
    queued = QueueEntry.objects.filter(tenant=tenant, left_at=None).aggregate(
        n=Coalesce(Sum("gpus"), 0)
    )["n"]
    return int(held + queued)


def services_in_use(*, tenant: UUID) -> int:
    """Services of the tenant of this connection that have not ended, and those its queued orders
    will have.
    """
    queued = Order.objects.filter(status=OrderStatus.QUEUED).aggregate(
        n=Coalesce(Sum("quantity"), 0)
    )["n"]
    return Service.objects.exclude(state__in=ENDED).count() + int(queued)


def project_gpus_in_use(*, project: UUID) -> int:
    """GPUs of a project's services that have not ended, and of its queued orders."""
    held = (
        Service.objects.filter(project=project)
        .exclude(state__in=ENDED)
        .aggregate(n=Coalesce(Sum("gpus"), 0))["n"]
    )
    queued = Order.objects.filter(project=project, status=OrderStatus.QUEUED).aggregate(
        n=Coalesce(Sum(F("quantity") * F("gpus_each")), 0)
    )["n"]
    return int(held) + int(queued)


@dataclass(frozen=True)
class QuotaUse:
    """Use beside limit; `limit` is None where there is none."""

    label: str
    used: int
    limit: int | None

    @property
    def percent(self) -> int:
        """How full it is, 0 to 100 and above."""
        return 100 * self.used // self.limit if self.limit else 0


def orders() -> QuerySet[Order]:
    """The tenant's orders, newest first."""
    return Order.objects.select_related("project", "placed_by").order_by("-created_at", "-id")


def order_by_id(order_id: UUID) -> Order:
    """One order of the tenant. Raises NotFound, the same for another tenant's."""
    order = orders().filter(pk=order_id).first()
    if order is None:
        raise NotFound()
    return order


def quote_by_id(quote_id: UUID) -> Quote:
    """One quote of the tenant. Raises NotFound."""
    quote = Quote.objects.filter(pk=quote_id).first()
    if quote is None:
        raise NotFound()
    return quote


def services() -> QuerySet[Service]:
    """The tenant's services, newest first."""
    return Service.objects.select_related("project", "order").order_by("-created_at", "-id")


def service_by_id(service_id: UUID) -> Service:
    """One service of the tenant. Raises NotFound, the same for another tenant's."""
    service = services().filter(pk=service_id).first()
    if service is None:
        raise NotFound()
    return service


def services_of_order(order_id: UUID) -> QuerySet[Service]:
    """The servers of an order, in their order."""
    return services().filter(order=order_id).order_by("ordinal")


def services_of_orders(order_ids: Iterable[UUID]) -> QuerySet[Service]:
    """The servers of several orders."""
    return services().filter(order__in=list(order_ids)).order_by("order", "ordinal")


def live_services() -> QuerySet[Service]:
    """Services that have not ended."""
    return services().exclude(state__in=(ServiceState.TERMINATED, ServiceState.FAILED))


def facts_of(service_id: UUID) -> QuerySet[Fact]:
    """The ledger of a service, oldest first."""
    return Fact.objects.filter(service=service_id).order_by("start_at", "recorded_at", "id")


def gpu_quota_use() -> QuotaUse:
    """The tenant's GPUs in use beside their limit."""
    tenant = current_tenant().id
    limit = TenantLimit.objects.filter(tenant=tenant).first()
    return QuotaUse("gpus", gpus_in_use(tenant=tenant), limit.max_gpus if limit else None)


def quota_use() -> list[QuotaUse]:
    """The tenant's use and limits: GPUs, then services."""
    tenant = current_tenant().id
    limit = TenantLimit.objects.filter(tenant=tenant).first()
    return [
        QuotaUse("gpus", gpus_in_use(tenant=tenant), limit.max_gpus if limit else None),
        QuotaUse("services", services_in_use(tenant=tenant), limit.max_services if limit else None),
    ]


def project_use() -> list[tuple[Project, QuotaUse]]:
    """Each open project's GPUs beside its share; four statements, whatever the numbers."""
    limits = dict(ProjectLimit.objects.values_list("project_id", "max_gpus"))
    used: Counter[UUID] = Counter()
    held = Service.objects.exclude(state__in=ENDED).values_list("project_id")
    for project_id, gpus in held.annotate(gpus=Sum("gpus")).order_by():
        used[project_id] += gpus
    queued = Order.objects.filter(status=OrderStatus.QUEUED).values_list("project_id")
    for project_id, gpus in queued.annotate(n=Sum(F("quantity") * F("gpus_each"))).order_by():
        used[project_id] += gpus
    return [
        (project, QuotaUse(project.name, used[project.pk], limits.get(project.pk)))
        for project in Project.objects.filter(archived_at=None).order_by("name")
    ]


def order_policy() -> OrderPolicy:
    """What the tenant's administrators decided about orders; by default nothing."""
    return OrderPolicy.objects.first() or OrderPolicy()


def needs_approval(quote: Quote, actor: User) -> bool:
    """Whether somebody else would have to agree if this person ordered with these terms."""
    limit = order_policy().approval_from_gpus
    gpus = quote.quantity * quote.gpus_each
    return limit is not None and gpus >= limit and not actor.may("order.approve")


def approvals() -> QuerySet[Approval]:
    """Every question to the tenant's administrators, newest first."""
    return Approval.objects.select_related(
        "asked_by", "decided_by", "order__project", "reservation__project"
    ).order_by("-asked_at", "-id")


def approvals_waiting() -> QuerySet[Approval]:
    """Questions nobody has answered, the one that expires first above."""
    return approvals().filter(status=ApprovalStatus.WAITING).order_by("expires_at", "id")


def approval_by_id(approval_id: UUID) -> Approval:
    """One question. Raises NotFound."""
    approval = approvals().filter(pk=approval_id).first()
    if approval is None:
        raise NotFound()
    return approval


def approval_of_order(order_id: UUID) -> Approval | None:
    """The question about an order, if there was one."""
    return approvals().filter(order=order_id).first()


def queue_place(order_id: UUID) -> int | None:
    """The place of an order in its queue, from 1; None when it does not wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.orders_queue_place(%s)", [order_id])
        place = int(cursor.fetchone()[0])
    return place or None


_IS_ORDER = ExpressionWrapper(Q(service=None), output_field=BooleanField())


def queue_heads() -> list[QueueEntry]:
    """Who is first at each site for each kind of node; for the platform's side."""
    return list(
        QueueEntry.objects.filter(left_at=None)
        .annotate(is_order=_IS_ORDER)
        .order_by("site", "resource_class", "is_order", "entered_at", "id")
        .distinct("site", "resource_class")
    )


def waiting() -> QuerySet[QueueEntry]:
    """Everything that waits for capacity, as it is served: services that lost their node before
    orders, then the longest first; for the platform's side.
    """
    found = QueueEntry.objects.filter(left_at=None).annotate(is_order=_IS_ORDER)
    return found.order_by("is_order", "entered_at", "id")


def projected_orders(
    *, status: str = "", tenant: UUID | None = None, text: str = ""
) -> QuerySet[OrderProjection]:
    """Orders of all tenants as the console lists them, newest first."""
    found = OrderProjection.objects.order_by("-created_at", "-order")
    if status:
        found = found.filter(status=status)
    if tenant:
        found = found.filter(tenant=tenant)
    if text:
        found = found.filter(
            Q(number__icontains=text) | Q(name__icontains=text) | Q(sku__icontains=text)
        )
    return found


def projected_services(
    *, state: str = "", tenant: UUID | None = None, text: str = ""
) -> QuerySet[ServiceProjection]:
    """Services of all tenants as the console lists them, newest first."""
    found = ServiceProjection.objects.order_by("-created_at", "-service")
    if state:
        found = found.filter(state=state)
    if tenant:
        found = found.filter(tenant=tenant)
    if text:
        found = found.filter(
            Q(number__icontains=text) | Q(name__icontains=text) | Q(node_name__icontains=text)
        )
    return found


def order_funnel() -> dict[str, int]:
    """How many orders stand at each status, over all tenants."""
    from django.db.models import Count

    counts = dict(
        OrderProjection.objects.values_list("status").annotate(n=Count("pk")).order_by("status")
    )
    return {str(status): counts.get(status, 0) for status in OrderStatus.values}
