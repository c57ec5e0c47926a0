"""What the console asks across apps: public tables only, a constant number of queries a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db.models import Count, F, Min, OuterRef, Q, QuerySet, Subquery, Sum, Value, Window

from apps.catalog.models import Offering, Price, PriceKind, Unit
from apps.core.clock import NeoNow
from apps.core.models import OutboxEvent
from apps.core.money import Money
from apps.inventory import selectors as inventory_selectors
from apps.inventory.models import AddressPool, Allocation, Node, Site
from apps.inventory.selectors import shown_site_name
from apps.inventory.states import NodeStatus, SiteStatus
from apps.invoicing.models import InvoiceProjection
from apps.orders import selectors as orders_selectors
from apps.orders.models import OrderProjection, QueueEntry, ServiceProjection, TenantLimit
from apps.orders.states import OrderStatus, ServiceState
from apps.provisioning import selectors as provisioning_selectors
from apps.provisioning.models import CallHome, Leak, Override, Run, RunEvent, RunStep
from apps.provisioning.states import MOVING, RunStatus
from apps.tenancy.models import Tenant

SHOWN = 8  # rows of a list on the first page; the rest is one click away
LATE_EVENT = timedelta(seconds=60)
FUNNEL = (
    OrderStatus.PLACED,
    OrderStatus.SCHEDULED,
    OrderStatus.QUEUED,
    OrderStatus.ACCEPTED,
    OrderStatus.CLOSED,
    OrderStatus.REFUSED,
    OrderStatus.CANCELLED,
)
LIVE_SERVICES = (
    ServiceState.PROVISIONING,
    ServiceState.ACTIVE,
    ServiceState.STOPPED,
    ServiceState.SUSPENDED,
    ServiceState.DELETING,
)


@dataclass(frozen=True)
class Shortlist:
    """The first rows of a list and how many there are in all."""

    rows: list[Any]
    total: int

    @classmethod
    def of(cls, queryset: QuerySet[Any, Any]) -> Shortlist:
        """One query: the total comes with each row."""
        rows = list(queryset.annotate(total=Window(Count("*")))[:SHOWN])
        return cls(rows, rows[0].total if rows else 0)


@dataclass
class ClassCapacity:
    """Nodes and GPUs of one resource class at one site, by status."""

    site_id: UUID
    site_code: str
    site_name: str
    resource_class: str
    nodes: int = 0
    gpus: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    gpus_by_status: dict[str, int] = field(default_factory=dict)
    waiting_orders: int = 0
    waiting_gpus: int = 0
    waiting_since: datetime | None = None

    @property
    def allocated_share(self) -> int:
        """Percent of the GPUs that are allocated."""
        held = self.gpus_by_status.get(NodeStatus.ALLOCATED, 0)
        return round(100 * held / self.gpus) if self.gpus else 0


def _tenant_name(column: str = "tenant") -> Subquery:
    return Subquery(Tenant.objects.filter(id=OuterRef(column)).values("name")[:1])


# --- what needs a person -------------------------------------------------------------------------


def held_runs() -> Shortlist:
    """Runs that wait for a person, the longest waiting first."""
    return Shortlist.of(runs(group="held").order_by("held_at", "id"))


def leaks(*, is_open: bool | None = True, text: str = "") -> QuerySet[Any]:
    """What could not be undone, oldest first."""
    found = provisioning_selectors.leaks(is_open=is_open)
    if text:
        found = found.filter(
            Q(what__icontains=text)
            | Q(owner__icontains=text)
            | Q(run__order_number__icontains=text)
            | Q(node__name__icontains=text)
        )
    return found.annotate(tenant_name=_tenant_name())


def open_leaks() -> Shortlist:
    """Leaks that are still there, the oldest first."""
    return Shortlist.of(leaks())


def leaks_per_hour() -> list[Money]:
    """What all open leaks cost in an hour, by currency."""
    rows = (
        provisioning_selectors.leaks(is_open=True)
        .exclude(price_per_hour=None)
        .order_by("currency")
        .values_list("currency")
        .annotate(sum=Sum("price_per_hour"))
    )
    return [Money(amount, currency) for currency, amount in rows]


def open_overrides() -> Shortlist:
    """What a second operator is asked to decide, soonest to expire first."""
    return Shortlist.of(provisioning_selectors.open_overrides())


def nodes_out_of_service() -> Shortlist:
    """Nodes a person should look at, the longest so first."""
    nodes_found = inventory_selectors.nodes_needing_attention()
    return Shortlist.of(nodes_found.order_by("seen_changed_at", "name", "id"))


def troubled_sites() -> list[Site]:
    """Sites that do not answer, do not clean by themselves, or are paused."""
    return list(
        Site.objects.filter(
            Q(failing_since__isnull=False)
            | Q(cleans_automatically=False)
            | Q(status=SiteStatus.PAUSED)
        ).order_by("name")
    )


def late_events() -> Shortlist:
    """Events nobody took, or whose handler failed, oldest first."""
    waiting = OutboxEvent.objects.filter(delivered_at=None)
    late = waiting.filter(Q(attempts__gt=0) | Q(created_at__lt=NeoNow() - LATE_EVENT))
    return Shortlist.of(late.order_by("id"))


# --- capacity ------------------------------------------------------------------------------------


def capacity() -> list[ClassCapacity]:
    """Each resource class of each site with its nodes and GPUs by status: one query."""
    rows = (
        Node.objects.exclude(status=NodeStatus.RETIRED)
        .values(
            "site_id",
            "site__code",
            "resource_class",
            "status",
            site_name=shown_site_name("site__"),
        )
        .annotate(node_sum=Count("id"), gpu_sum=Sum("gpu_count"))
        .order_by("site_name", "resource_class")
    )
    found: dict[tuple[UUID, str], ClassCapacity] = {}
    for row in rows:
        entry = found.setdefault(
            (row["site_id"], row["resource_class"]),
            ClassCapacity(
                row["site_id"], row["site__code"], row["site_name"], row["resource_class"]
            ),
        )
        entry.nodes += row["node_sum"]
        entry.gpus += row["gpu_sum"]
        entry.by_status[row["status"]] = row["node_sum"]
        entry.gpus_by_status[row["status"]] = row["gpu_sum"]
    return list(found.values())


def with_queue(rows: list[ClassCapacity], *, site: UUID | None = None) -> list[ClassCapacity]:
    """The same rows with the orders that wait for them, also where there is no node: one query."""
    waiting = QueueEntry.objects.filter(left_at=None)
    if site is not None:
        waiting = waiting.filter(site=site)
    place = Site.objects.filter(id=OuterRef("site"))
    counted = (
        waiting.values("site", "resource_class")
        .annotate(
            orders=Count("id"),
            gpus_wanted=Sum("gpus"),
            since=Min("entered_at"),
            site_code=Subquery(place.values("code")[:1]),
            site_name=Subquery(place.values_list(shown_site_name())[:1]),
        )
        .order_by("site_name", "resource_class")
    )
    found = {(row.site_id, row.resource_class): row for row in rows}
    for row in counted:
        key = (row["site"], row["resource_class"])
        if key not in found:
            found[key] = ClassCapacity(key[0], row["site_code"], row["site_name"], key[1])
        found[key].waiting_orders = row["orders"]
        found[key].waiting_gpus = row["gpus_wanted"]
        found[key].waiting_since = row["since"]
    return list(found.values())


def queue(*, limit: int = 100) -> list[Any]:
    """Who waits for capacity, line by line as it is served, each with its `place`: three
    queries.
    """
    number = OrderProjection.objects.filter(order=OuterRef("order")).values("number")[:1]
    places = orders_selectors.queue_places()
    entries = orders_selectors.waiting().annotate(
        tenant_name=_tenant_name(),
        number=Subquery(number),
        site_name=Subquery(
            Site.objects.filter(id=OuterRef("site")).values_list(shown_site_name())[:1]
        ),
    )
    found: list[Any] = list(entries)
    for entry in found:
        entry.place = places.get(entry.pk, 0)
    found.sort(
        key=lambda e: (e.site_name or "", e.resource_class, str(e.reservation or ""), e.place)
    )
    return found[:limit]


def reservations(*, status: str = "", tenant: UUID | None = None, text: str = "") -> QuerySet[Any]:
    """Reservations with their tenants' names, newest first."""
    found = orders_selectors.projected_reservations(status=status, tenant=tenant, text=text)
    return found.annotate(tenant_name=_tenant_name())


def holds_of_reservation(reservation: UUID) -> list[Any]:
    """The nodes a reservation holds now, each told whether it is able (`is_able`) to serve it."""
    holds: list[Any] = list(
        Allocation.objects.filter(reservation=reservation, released_at=None)
        .select_related("node__site", "node__gpu_model")
        .order_by("node__name", "id")
    )
    lame = set(inventory_selectors.terms_without_a_node().values_list("pk", flat=True))
    for hold in holds:
        hold.is_able = hold.pk not in lame
    return holds


def service_names(tenant: UUID) -> dict[UUID, str]:
    """The names of a tenant's live services."""
    found = ServiceProjection.objects.filter(tenant=tenant, state__in=LIVE_SERVICES)
    return dict(found.values_list("service", "name"))


# --- orders and services -------------------------------------------------------------------------


@dataclass(frozen=True)
class Standing:
    """How many orders or services stand at a status, with their GPUs."""

    status: str
    label: str
    count: int
    gpus: int


def funnel() -> tuple[list[Standing], list[Standing]]:
    """Orders by status and live services by ledger state, as life goes: one query."""
    orders_counted = OrderProjection.objects.values(kind=Value("order"), word=F("status")).annotate(
        n=Count("order"), g=Sum("gpus")
    )
    services_counted = (
        ServiceProjection.objects.filter(state__in=LIVE_SERVICES)
        .values(kind=Value("service"), word=F("state"))
        .annotate(n=Count("service"), g=Sum("gpus"))
    )
    rows = orders_counted.order_by().union(services_counted.order_by(), all=True)
    found = {(row["kind"], row["word"]): (row["n"], row["g"]) for row in rows}
    stands = [Standing(str(s), str(s.label), *found.get(("order", str(s)), (0, 0))) for s in FUNNEL]
    live = [
        Standing(str(s), str(s.label), *found["service", str(s)])
        for s in LIVE_SERVICES
        if ("service", str(s)) in found
    ]
    return stands, live


def orders(
    *, status: str = "", tenant: UUID | None = None, site: str = "", text: str = ""
) -> QuerySet[Any]:
    """Projected orders; `text` is looked for in number, name and SKU."""
    found = orders_selectors.projected_orders(status=status, tenant=tenant, text=text)
    if site:
        found = found.filter(site_code=site)
    return found.annotate(tenant_name=_tenant_name())


def services_of_order(order_id: UUID) -> list[ServiceProjection]:
    """The services of an order."""
    return list(ServiceProjection.objects.filter(order=order_id).order_by("name", "service"))


def services_of_tenant(tenant_id: UUID, *, limit: int = 50) -> list[ServiceProjection]:
    """A tenant's services that have not ended, newest first."""
    live = ServiceProjection.objects.filter(tenant=tenant_id, ended_at=None)
    return list(live.order_by("-created_at", "-service")[:limit])


# --- runs ----------------------------------------------------------------------------------------

RUN_GROUPS = {
    "held": (RunStatus.HELD,),
    "moving": MOVING,
    "ended": (RunStatus.SUCCEEDED, RunStatus.UNDONE),
}


def runs(
    *, group: str = "", site: UUID | None = None, tenant: UUID | None = None, text: str = ""
) -> QuerySet[Any]:
    """Runs; `group`: held, moving, ended or leaked; `text`: in order, service or node."""
    found = provisioning_selectors.runs(site=site, tenant=tenant, text=text)
    if group == "leaked":
        found = found.filter(id__in=Leak.objects.filter(gone_at=None).values("run_id"))
    elif group in RUN_GROUPS:
        found = found.filter(status__in=RUN_GROUPS[group])
    return found.annotate(tenant_name=_tenant_name())


def runs_of_order(order_id: UUID) -> list[Run]:
    """Every run of an order, oldest first."""
    runs_found = Run.objects.filter(order=order_id).select_related("site", "node")
    return list(runs_found.order_by("created_at", "id"))


def steps_of_runs(run_ids: Iterable[UUID]) -> dict[UUID, list[RunStep]]:
    """The steps of several runs, in order: one query."""
    found: dict[UUID, list[RunStep]] = {}
    for step in RunStep.objects.filter(run__in=set(run_ids)).order_by("position"):
        found.setdefault(step.run_id, []).append(step)
    return found


def leaks_of_run(run: Run) -> list[Leak]:
    """What the run could not undo, gone or not."""
    return list(provisioning_selectors.leaks().filter(run=run.pk))


def overrides_of_run(run: Run) -> list[Override]:
    """What people vouched for in the run, oldest first."""
    return list(run.overrides.order_by("asked_at", "id"))


def calls_of_run(run: Run) -> list[CallHome]:
    """The invitations to call home, in order."""
    return list(run.call_homes.select_related("node__site").order_by("created_at", "id"))


def run_events(run: Run, *, limit: int = 300) -> list[RunEvent]:
    """The last events of a run, in order."""
    return list(reversed(run.events.order_by("-id")[:limit]))


# --- nodes and sites -----------------------------------------------------------------------------


def nodes(
    *, status: str = "", site: UUID | None = None, resource_class: str = "", text: str = ""
) -> QuerySet[Node]:
    """Nodes; `text` is looked for in name, serial, rack, BMC address and MAC addresses."""
    found = Node.objects.select_related("site", "gpu_model")
    if status:
        found = found.filter(status=status)
    if site:
        found = found.filter(site=site)
    if resource_class:
        found = found.filter(resource_class=resource_class)
    if text:
        found = found.filter(
            Q(name__icontains=text)
            | Q(serial__icontains=text)
            | Q(rack__iexact=text)
            | Q(bmc_address__icontains=text)
            | Q(id__in=Node.objects.filter(nics__mac__icontains=text).values("id"))
        )
    return found


def with_holders(found: QuerySet[Node]) -> QuerySet[Node]:
    """The same nodes, each with the name of the tenant that holds it, in the same query."""
    holder = Allocation.objects.filter(node=OuterRef("id"), released_at=None)
    return found.annotate(holder=Subquery(holder.annotate(n=_tenant_name()).values("n")[:1]))


def resource_classes() -> list[str]:
    """Every resource class there is a node of."""
    return list(
        Node.objects.order_by("resource_class").values_list("resource_class", flat=True).distinct()
    )


def allocations_of(node: Node, *, limit: int = 50) -> list[Allocation]:
    """Who held the node, newest first."""
    service = ServiceProjection.objects.filter(service=OuterRef("service"))
    held = node.allocations.annotate(
        tenant_name=_tenant_name(),
        service_name=Subquery(service.values("name")[:1]),
        number=Subquery(service.values("number")[:1]),
    )
    return list(held.order_by("-created_at", "-id")[:limit])


def sites_with_counts() -> list[Site]:
    """All sites with their nodes, GPUs and open runs: one query."""
    open_runs = (
        Run.objects.filter(site=OuterRef("id"), ended_at=None)
        .order_by()
        .values("site")
        .annotate(n=Count("id"))
        .values("n")
    )
    return list(
        Site.objects.annotate(
            node_count=Count("nodes", filter=~Q(nodes__status=NodeStatus.RETIRED)),
            gpu_total=Sum("nodes__gpu_count", filter=~Q(nodes__status=NodeStatus.RETIRED)),
            free_nodes=Count("nodes", filter=Q(nodes__status=NodeStatus.AVAILABLE)),
            open_runs=Subquery(open_runs),
        ).order_by("name")
    )


# --- tenants -------------------------------------------------------------------------------------


def tenants(*, text: str = "", status: str = "") -> QuerySet[Any]:
    """Tenants with their limit and what they hold, from public tables."""
    limit = TenantLimit.objects.filter(tenant=OuterRef("id"))
    live = (
        ServiceProjection.objects.filter(tenant=OuterRef("id"), ended_at=None)
        .order_by()
        .values("tenant")
    )
    found: QuerySet[Any] = Tenant.objects.annotate(
        max_gpus=Subquery(limit.values("max_gpus")[:1]),
        max_services=Subquery(limit.values("max_services")[:1]),
        live_services=Subquery(live.annotate(n=Count("service")).values("n")),
        live_gpus=Subquery(live.annotate(n=Sum("gpus")).values("n")),
    )
    if status:
        found = found.filter(status=status)
    if text:
        found = found.filter(
            Q(name__icontains=text) | Q(slug__icontains=text) | Q(legal_name__icontains=text)
        )
    return found


def documents_of_tenant(tenant_id: UUID, *, limit: int = 12) -> list[InvoiceProjection]:
    """A tenant's newest invoices and credit notes."""
    found = InvoiceProjection.objects.filter(tenant=tenant_id)
    return list(found.order_by("-created_at", "-document")[:limit])


def address_pools(site: Site) -> list[AddressPool]:
    """The site's address pools, each with the number of addresses leased now."""
    leased = Count("leases", filter=Q(leases__released_at=None))
    return list(site.address_pools.annotate(leased=leased).order_by("name"))


# --- catalogue -----------------------------------------------------------------------------------


def offerings() -> QuerySet[Offering]:
    """Every offering, retired ones last."""
    return Offering.objects.select_related("gpu_model").order_by(
        F("retired_at").asc(nulls_first=True), "position", "sku"
    )


def list_prices_in_force() -> dict[str, list[Price]]:
    """The list prices of a GPU-hour valid now, by SKU: one query."""
    now = NeoNow()
    found: dict[str, list[Price]] = {}
    prices = Price.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=now),
        book__kind=PriceKind.LIST,
        unit=Unit.GPU_HOUR,
        effective_from__lte=now,
    )
    for price in prices.select_related("book").order_by("sku", "book__currency"):
        found.setdefault(price.sku, []).append(price)
    return found


# --- search --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """What a text was found in: the first rows of every kind of thing."""

    orders: list[OrderProjection]
    services: list[ServiceProjection]
    runs: list[Run]
    nodes: list[Node]
    tenants: list[Tenant]
    documents: list[InvoiceProjection]

    @property
    def is_empty(self) -> bool:
        """Whether it was found nowhere."""
        return not any(
            (self.orders, self.services, self.runs, self.nodes, self.tenants, self.documents)
        )


def search(text: str) -> Found:
    """A text in orders, services, runs, nodes, tenants and invoices: one query for each."""
    documents = InvoiceProjection.objects.filter(number__icontains=text)
    services = orders_selectors.projected_services(text=text)
    return Found(
        orders=list(orders(text=text)[:SHOWN]),
        services=list(services[:SHOWN]),
        runs=list(runs(text=text).order_by("-created_at", "-id")[:SHOWN]),
        nodes=list(with_holders(nodes(text=text)).order_by("name", "id")[:SHOWN]),
        tenants=list(tenants(text=text).order_by("name", "id")[:SHOWN]),
        documents=list(documents.order_by("-created_at", "-document")[:SHOWN]),
    )
