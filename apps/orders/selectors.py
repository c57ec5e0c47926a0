"""Questions about orders, services, quotas and the queue."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.db import connection
from django.db.models import BooleanField, ExpressionWrapper, F, Q, QuerySet, Sum
from django.db.models.functions import Coalesce
from psycopg.types.range import TimestamptzRange

from apps.accounts.models import Project, User
from apps.catalog.models import Offering
from apps.core import clock
from apps.core.clock import NeoNow
from apps.core.errors import NotFound
from apps.inventory import selectors as inventory
from apps.inventory.models import Allocation, Site
from apps.orders.models import (
    Approval,
    Fact,
    Order,
    OrderPolicy,
    OrderProjection,
    ProjectLimit,
    QueueEntry,
    Quote,
    Reservation,
    ReservationProjection,
    Service,
    ServiceProjection,
    TenantLimit,
)
from apps.orders.states import ApprovalStatus, OrderStatus, ReservationStatus, ServiceState
from apps.tenancy.selectors import current_tenant

HOLDING = (
    ReservationStatus.REQUESTED,
    ReservationStatus.BOOKED,
    ReservationStatus.ACTIVE,
    ReservationStatus.SUSPENDED,
)
ENDED = (ServiceState.FAILED, ServiceState.TERMINATED, ServiceState.DELETING)


def gpus_in_use(*, tenant: UUID, during: TimestamptzRange | None = None) -> int:
    """GPUs a tenant holds at any time in a term, or has in the queue; now, unless said.

    What is reserved counts once, whether a service lives there or not.
    """
    within = Q(during__overlap=during) if during else Q(during__contains=NeoNow())
    overstays = Q(service__isnull=False, during__endswith__lte=NeoNow())
    held = Allocation.objects.filter(within | overstays, tenant=tenant, released_at=None).aggregate(
        n=Coalesce(Sum("gpu_count"), 0)
    )["n"]
    queued = QueueEntry.objects.filter(tenant=tenant, left_at=None, reservation=None).aggregate(
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


def project_gpus_in_use(*, project: UUID, during: TimestamptzRange | None = None) -> int:
    """GPUs of a project's services, of its reservations that overlap a term (now, unless said),
    each counted once, and of its queued orders.
    """
    return _project_gpus(during)[project]


def _project_gpus(during: TimestamptzRange | None = None) -> Counter[UUID]:
    """The same of every project, in one statement."""
    used: Counter[UUID] = Counter()
    held = Service.objects.filter(reservation_id=None).exclude(state__in=ENDED)
    queued = Order.objects.filter(status=OrderStatus.QUEUED, reservation=None)
    booked = Reservation.objects.filter(status__in=HOLDING, ends_at__gt=NeoNow())
    if during is None:
        booked = booked.filter(starts_at__lte=NeoNow())
    else:
        booked = booked.filter(ends_at__gt=during.lower)
        if during.upper is not None:
            booked = booked.filter(starts_at__lt=during.upper)
    counts = [
        rows.order_by().values_list("project_id").annotate(n=Sum(gpus))
        for rows, gpus in (
            (held, F("gpus")),
            (queued, F("quantity") * F("gpus_each")),
            (booked, F("quantity") * F("gpus_each")),
        )
    ]
    for project_id, count in counts[0].union(*counts[1:], all=True):
        used[project_id] += count
    return used


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
    used = _project_gpus()
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


KNOWN_AFTER = 5  # waits that ended, before one is told to others


@dataclass(frozen=True)
class Standing:
    """Where an order stands in its queue; `expected_at` None: unknown."""

    place: int
    expires_at: datetime | None
    expected_at: datetime | None


def approval_of_reservation(reservation_id: UUID) -> Approval | None:
    """The question about a reservation, if there was one."""
    return approvals().filter(reservation=reservation_id).first()


def queue_standing(order: Order) -> Standing | None:
    """The place of an order in its queue from 1, how long it waits, and when its turn is expected;
    None when it does not wait.

    Expected is when as many servers as are wanted up to it are known to become free; else the
    usual wait of those before, once enough have waited.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT place, ahead, entered_at, expires_at, waits, usual"
            " FROM public.orders_queue_standing(%s)",
            [order.pk],
        )
        found = cursor.fetchone()
    if found is None:
        return None
    place, ahead, entered_at, expires_at, waits, usual = found
    expected_at = _known_free(order, ahead)
    if expected_at is None and waits >= KNOWN_AFTER and entered_at + usual > clock.now():
        expected_at = entered_at + usual
    return Standing(place, expires_at, expected_at)


def _known_free(order: Order, quantity: int) -> datetime | None:
    site = Site.objects.filter(pk=order.site_id).first()
    offering = Offering.objects.filter(pk=order.offering_id).first()
    if site is None or offering is None or order.reservation_id is not None:
        return None
    length = max(order.ends_at - clock.now(), timedelta(0)) if order.ends_at else None
    return inventory.free_from(
        site=site, offering=offering, quantity=quantity, length=length, plan=order.plan
    )


def queue_place(order_id: UUID) -> int | None:
    """The place of an order in its queue, from 1; None when it does not wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT place FROM public.orders_queue_standing(%s)", [order_id])
        found = cursor.fetchone()
    return found[0] if found else None


def queue_places() -> dict[int, int]:
    """The place of each entry in its line, by the entry's id; for the platform's side."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, place FROM public.orders_queue_line()")
        return dict(cursor.fetchall())


_IS_ORDER = ExpressionWrapper(Q(service=None), output_field=BooleanField())


def queue_heads() -> list[QueueEntry]:
    """The first of each line: of each site and kind of node, and of each reservation; for the
    platform's side.
    """
    first = [entry for entry, place in queue_places().items() if place == 1]
    return list(QueueEntry.objects.filter(pk__in=first).order_by("site", "resource_class", "id"))


def waiting() -> QuerySet[QueueEntry]:
    """Everything that waits for capacity, as it is served: services that lost their node before
    orders, then the longest first; for the platform's side.
    """
    found = QueueEntry.objects.filter(left_at=None).annotate(is_order=_IS_ORDER)
    return found.order_by("is_order", "entered_at", "id")


def reservations() -> QuerySet[Reservation]:
    """The tenant's reservations, newest first."""
    return Reservation.objects.select_related("project", "placed_by").order_by("-created_at", "-id")


def reservation_by_id(reservation_id: UUID) -> Reservation:
    """One reservation of the tenant. Raises NotFound."""
    reservation = reservations().filter(pk=reservation_id).first()
    if reservation is None:
        raise NotFound()
    return reservation


def open_reservations() -> QuerySet[Reservation]:
    """Reservations that servers can be ordered under, now or when they begin."""
    return reservations().filter(
        status__in=[ReservationStatus.BOOKED, ReservationStatus.ACTIVE], ends_at__gt=clock.now()
    )


def services_of_reservation(reservation_id: UUID) -> QuerySet[Service]:
    """Servers that live on it or did, newest first."""
    return services().filter(
        Q(reservation_id=reservation_id) | Q(order__reservation=reservation_id)
    )


def in_use(reservation: Reservation) -> int:
    """How many of its servers somebody lives on now."""
    return Allocation.objects.filter(
        reservation=reservation.pk, service__isnull=False, released_at=None
    ).count()


def projected_reservation(reservation_id: UUID) -> ReservationProjection:
    """One of them. Raises NotFound."""
    row = ReservationProjection.objects.filter(reservation=reservation_id).first()
    if row is None:
        raise NotFound(field="reservation")
    return row


def projected_reservations(
    *, status: str = "", tenant: UUID | None = None, text: str = ""
) -> QuerySet[ReservationProjection]:
    """Reservations of all tenants as the console lists them, newest first."""
    found = ReservationProjection.objects.order_by("-created_at", "-reservation")
    if status:
        found = found.filter(status=status)
    if tenant:
        found = found.filter(tenant=tenant)
    if text:
        found = found.filter(
            Q(number__icontains=text) | Q(name__icontains=text) | Q(sku__icontains=text)
        )
    return found


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
