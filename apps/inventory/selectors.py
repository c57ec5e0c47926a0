"""Questions about what we own and what is free."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Any, cast
from uuid import UUID

from django.db import connection
from django.db.models import (
    Count,
    DateTimeField,
    Exists,
    F,
    Func,
    IntegerField,
    OuterRef,
    Prefetch,
    Q,
    QuerySet,
    Subquery,
    TextField,
    Value,
)
from django.db.models.functions import Cast, Coalesce, NullIf
from psycopg.types.json import Jsonb

from apps.catalog.models import Offering, Plan
from apps.catalog.selectors import visible_offerings
from apps.core import clock, csvsafe, show
from apps.core.clock import NeoNow
from apps.core.errors import NotFound
from apps.inventory.models import Allocation, Maintenance, Node, Qualification, Site, Ticket
from apps.inventory.states import NodeStatus, SiteStatus


@dataclass(frozen=True)
class Availability:
    """How many servers of an offering a site has, and how many of them can be taken now."""

    site_id: UUID
    site_code: str
    site_name: str
    site_name_ko: str
    offering_id: UUID
    sku: str
    resource_class: str
    traits: tuple[str, ...]
    gpus: int
    free: int
    total: int
    borrowable: int = 0  # besides: free only until somebody's reservation begins
    free_from: datetime | None = None  # without a free one: when the next is known to be


def availability(
    *, site: Site | None = None, plan: str = Plan.ON_DEMAND, until: datetime | None = None
) -> list[Availability]:
    """What `allocate` would find of each offering the asker may see, at each fitting site, for a
    plan and until an agreed end (None: without one).

    Three statements, whatever the numbers.
    """
    offerings = {o.pk: o for o in visible_offerings().prefetch_related(None)}
    sites = {s.pk: s for s in Site.objects.all()}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT site, offering, free, total, borrowable, free_from"
            " FROM public.inventory_availability(%s, %s)",
            [plan, until],
        )
        counts = cursor.fetchall()
    found = [
        Availability(
            site_id=site_id,
            site_code=sites[site_id].code,
            site_name=sites[site_id].name,
            site_name_ko=sites[site_id].name_ko,
            offering_id=offering_id,
            sku=offerings[offering_id].sku,
            resource_class=offerings[offering_id].resource_class,
            traits=tuple(offerings[offering_id].traits),
            gpus=offerings[offering_id].gpus,
            free=free,
            total=total,
            borrowable=borrowable,
            free_from=free_from,
        )
        for site_id, offering_id, free, total, borrowable, free_from in counts
        if offering_id in offerings and site_id in sites and (site is None or site_id == site.pk)
    ]
    order = {pk: place for place, pk in enumerate(offerings)}
    return sorted(found, key=lambda one: (order[one.offering_id], one.site_code))


def free_for_term(*, site: Site, offering: Offering, starts_at: datetime, ends_at: datetime) -> int:
    """How many servers could be reserved for a term."""
    return int(
        _answer(
            "SELECT public.inventory_free_for_term(%s, %s, %s, %s, %s, %s, %s)",
            [
                site.pk, offering.resource_class, Jsonb(sorted(offering.traits)), offering.gpus,
                Plan.RESERVED, starts_at, ends_at,
            ],
        )
        or 0
    )  # fmt: skip


def free_from(
    *,
    site: Site,
    offering: Offering,
    quantity: int,
    length: timedelta | None = None,
    plan: str = Plan.ON_DEMAND,
) -> datetime | None:
    """When that many servers are free for that long (None: without an end), as far as is known;
    None when it is not.
    """
    found: datetime | None = _answer(
        "SELECT public.inventory_free_from(%s, %s, %s, %s, %s, %s, %s)",
        [
            site.pk, offering.resource_class, Jsonb(sorted(offering.traits)), offering.gpus,
            plan, quantity, length,
        ],
    )  # fmt: skip
    return found


def _answer(statement: str, values: list[Any]) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        (answer,) = cursor.fetchone()
    return answer


def terms_without_a_node() -> QuerySet[Allocation]:
    """Holds of reservations that go on or lie ahead, on nodes that cannot serve them; nobody lives
    there. For the platform's side.
    """
    cannot = (
        Q(node__status__in=[NodeStatus.QUARANTINED, NodeStatus.MAINTENANCE, NodeStatus.RETIRED])
        | Q(node__is_cordoned=True)
        | Q(node__seen_maintenance=True)
        | ~Q(node__plans__contains=[Plan.RESERVED])
    )
    return Allocation.objects.filter(
        cannot,
        reservation__isnull=False,
        service=None,
        released_at=None,
        during__endswith__gt=clock.now(),
    ).order_by("during", "id")


def loans_that_may_last() -> QuerySet[Allocation]:
    """Borrowed nodes whose next reservation went away: they may be held for longer. For the
    platform's side.
    """
    following = Allocation.objects.filter(
        node=OuterRef("node"), released_at=None, during__startswith=OuterRef("ends")
    )
    upper = Func(F("during"), function="upper", output_field=DateTimeField())
    return (
        Allocation.objects.annotate(ends=upper)
        .filter(
            ~Exists(following),
            accepts_recall=True,
            released_at=None,
            reservation=None,
            ends__gt=clock.now(),
        )
        .exclude(during__upper_inf=True)
        .order_by("id")
    )


def site_list() -> QuerySet[Site]:
    """Every site, by code, with how many nodes it has (`node_count`)."""
    return Site.objects.annotate(node_count=Count("nodes")).order_by("code")


def sites() -> QuerySet[Site]:
    """Every site, by code, whatever its status."""
    return Site.objects.order_by("code")


def shown_site_name(path: str = "") -> Any:
    """An expression: the name of a site in the reader's language; `path` leads to the site."""
    if not show.reads_korean():
        return F(f"{path}name")
    return Coalesce(NullIf(f"{path}name_ko", Value("")), f"{path}name")


def site_by_code(code: str) -> Site:
    """The site of a code. Raises NotFound."""
    site = Site.objects.filter(code=code).first()
    if site is None:
        raise NotFound(field="site")
    return site


def active_sites() -> QuerySet[Site]:
    """Sites that sell."""
    return Site.objects.filter(status=SiteStatus.ACTIVE).order_by("code")


def node_list(
    *,
    site: Site | None = None,
    status: str = "",
    resource_class: str = "",
    search: str = "",
) -> QuerySet[Node]:
    """Nodes by site and name, with site, GPU model and, on the platform's side, who holds them.

    The holder is `node.allocations.all()`: the live ones only.
    """
    nodes = Node.objects.select_related("site", "gpu_model").prefetch_related(
        Prefetch("allocations", queryset=Allocation.objects.filter(released_at=None))
    )
    if site is not None:
        nodes = nodes.filter(site=site)
    if status:
        nodes = nodes.filter(status=status)
    if resource_class:
        nodes = nodes.filter(resource_class=resource_class)
    if search:
        nodes = nodes.filter(
            Q(name__icontains=search)
            | Q(serial__icontains=search)
            | Q(bmc_address__icontains=search)
            | Q(rack__icontains=search)
        )
    return nodes.order_by("site__code", "name", "id")


def node_detail(node_id: UUID) -> Node:
    """A node with its site, ports, GPUs, tickets and allocations. Raises NotFound."""
    node = (
        Node.objects.select_related("site", "gpu_model")
        .prefetch_related(
            "nics",
            "gpus__model",
            Prefetch("tickets", queryset=Ticket.objects.order_by("-opened_at")),
            Prefetch("allocations", queryset=Allocation.objects.order_by("-created_at")),
        )
        .filter(pk=node_id)
        .first()
    )
    if node is None:
        raise NotFound(field="node")
    return node


def nodes_needing_attention() -> QuerySet[Node]:
    """Nodes a person should look at, with what the site last said of them (`seen_last_error`).

    Quarantined; failed, missing or in maintenance at the site; or not available there although in
    our pool.
    """
    trouble = (
        Q(status=NodeStatus.QUARANTINED)
        | Q(seen_provision_state__in=["error", "missing", "adopt failed"])
        | Q(seen_provision_state__endswith=" failed")
        | Q(seen_maintenance=True)
        | Q(status=NodeStatus.AVAILABLE) & ~Q(seen_provision_state="available")
        | Q(status=NodeStatus.CLEANING, seen_provision_state__in=["manageable", "enroll"])
    )
    return (
        Node.objects.select_related("site", "gpu_model")
        .exclude(status__in=[NodeStatus.RETIRED, NodeStatus.MAINTENANCE])
        .filter(trouble)
        .order_by("site__code", "name", "id")
    )


def maintenances() -> QuerySet[Any]:
    """Planned work with how many nodes and services it touches."""
    touched = Allocation.objects.filter(
        node__maintenances=OuterRef("id"), released_at=None, service__isnull=False
    )
    counted = touched.order_by().values("node__maintenances").annotate(n=Count("id")).values("n")
    return (
        Maintenance.objects.select_related("site")
        .annotate(
            node_count=Count("nodes"),
            service_count=Coalesce(Subquery(counted, output_field=IntegerField()), 0),
        )
        .order_by("-starts_at", "-id")
    )


def free_addresses(site: Site) -> list[tuple[str, int, int]]:
    """Each pool of the site by name with its free addresses and all it has; one statement."""
    pools = site.address_pools.annotate(
        held=Count("leases", filter=Q(leases__released_at=None))
    ).order_by("name")
    found = []
    for pool in pools:
        first, last, gateway = (
            int(ip_address(one)) for one in (pool.first_address, pool.last_address, pool.gateway)
        )
        total = last - first + 1 - (first <= gateway <= last)
        found.append((pool.name, total - pool.held, total))
    return found


def qualifications(*, text: str = "") -> QuerySet[Qualification]:
    """Qualified combinations of hardware, newest first; `text` is looked for in their parts."""
    found = Qualification.objects.select_related("last_node").order_by("-id")
    if text:
        found = found.annotate(words=Cast("hardware", TextField())).filter(words__icontains=text)
    return found


def qualification_lines() -> Iterator[list[str]]:
    """The list as cells of a file: a heading, then one line for each combination."""
    parts = ("server", "bios", "bmc", "nic", "gpu", "gpu_firmware", "driver", "cuda")
    yield [
        "fingerprint", *parts, "simulated", "deploys", "cleanings", "first_proven_at",
        "last_proven_at", "last_cleaned_at", "last_node", "last_run",
    ]  # fmt: skip
    for one in qualifications().iterator(chunk_size=500):
        at = (one.first_proven_at, one.last_proven_at, one.last_cleaned_at)
        yield [
            one.fingerprint,
            *(csvsafe.text_cell(_plain_part(one.hardware.get(part))) for part in parts),
            "yes" if one.is_simulated else "no",
            str(one.deploys),
            str(one.cleanings),
            *(instant.isoformat() if instant else "" for instant in at),
            csvsafe.text_cell(one.last_node.name if one.last_node else ""),
            str(one.last_run or ""),
        ]


def _plain_part(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(str(part) for part in value.values() if part)
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value or "")


def open_tickets() -> QuerySet[Ticket]:
    """Work on hardware that is not done, oldest first."""
    return Ticket.objects.filter(closed_at=None).select_related("node__site").order_by("opened_at")


def live_allocation(service: UUID) -> Allocation | None:
    """What a service holds now, with node and site."""
    return (
        Allocation.objects.filter(service=service, released_at=None)
        .select_related("node__site")
        .first()
    )


@dataclass(frozen=True)
class Capacity:
    """The nodes of one resource class at one site, counted by status.

    `free` is what could be sold now.
    """

    site_id: UUID
    site_code: str
    site_name: str
    resource_class: str
    total: int
    free: int
    allocated: int
    cleaning: int
    quarantined: int
    maintenance: int
    enrolled: int
    reserved: int  # held by a reservation now, with nobody on it


@dataclass(frozen=True)
class Week:
    """Nodes of a pool in a week: free in all of it; reserved and on demand at any time in it."""

    free: int
    reserved: int
    on_demand: int


@dataclass(frozen=True)
class PoolAhead:
    """A pool in the weeks to come; `total` counts nodes that can serve."""

    site_name: str
    resource_class: str
    total: int
    weeks: list[Week]


@dataclass(frozen=True)
class WeeksAhead:
    """When the weeks begin, and each pool in them."""

    starts: list[datetime]
    pools: list[PoolAhead]


_WEEKS = """
SELECT n.site_id, n.resource_class, w.number, count(*),
       count(*) FILTER (WHERE NOT held.reserved AND NOT held.on_demand),
       count(*) FILTER (WHERE held.reserved), count(*) FILTER (WHERE held.on_demand)
FROM public.inventory_node n
CROSS JOIN (
    SELECT g AS number, tstzrange(%(first)s + g * interval '7 days',
                                  %(first)s + (g + 1) * interval '7 days') AS span
    FROM generate_series(0, %(count)s - 1) g
) w
CROSS JOIN LATERAL (
    SELECT coalesce(bool_or(a.reservation IS NOT NULL), false) AS reserved,
           coalesce(bool_or(a.reservation IS NULL), false) AS on_demand
    FROM public.inventory_allocation a
    WHERE a.node_id = n.id AND a.released_at IS NULL AND a.during && w.span
) held
WHERE n.status IN ('available', 'allocated', 'cleaning') AND NOT n.is_cordoned
GROUP BY n.site_id, n.resource_class, w.number
ORDER BY n.resource_class, n.site_id, w.number
"""


def weeks_ahead(*, count: int) -> WeeksAhead:
    """Each pool in the weeks from now on; three statements. For the platform's side."""
    first = clock.now_seconds()
    starts = [first + timedelta(weeks=number) for number in range(count)]
    sites = {site.pk: site.shown_name for site in Site.objects.all()}
    with connection.cursor() as cursor:
        cursor.execute(_WEEKS, {"first": first, "count": count})
        rows = cursor.fetchall()
    pools: dict[tuple[UUID, str], PoolAhead] = {}
    for site, resource_class, _number, total, free, reserved, on_demand in rows:
        pool = pools.setdefault(
            (site, resource_class), PoolAhead(sites[site], resource_class, total, [])
        )
        pool.weeks.append(Week(free, reserved, on_demand))
    return WeeksAhead(starts, list(pools.values()))


_FREE = Q(
    status=NodeStatus.AVAILABLE,
    seen_provision_state="available",
    seen_maintenance=False,
    is_cordoned=False,
    seen_instance=None,
    site__status=SiteStatus.ACTIVE,
    site__cleans_automatically=True,
)


def capacity_by_site_and_class() -> list[Capacity]:
    """One row for each site and resource class; one statement. For the platform's side."""
    held = Allocation.objects.filter(
        node=OuterRef("pk"), released_at=None, during__contains=NeoNow()
    )
    reserved = Exists(held.filter(reservation__isnull=False, service=None))
    counted = (
        Node.objects.exclude(status=NodeStatus.RETIRED)
        .annotate(is_reserved=reserved, is_held=Exists(held))
        .values("site_id", "resource_class", site_code=F("site__code"), site_name=F("site__name"))
        .annotate(
            total=Count("id"),
            free=Count("id", filter=_FREE & Q(is_held=False)),
            reserved=Count("id", filter=Q(is_reserved=True)),
            **{
                status.value: Count("id", filter=Q(status=status))
                for status in (
                    NodeStatus.ALLOCATED,
                    NodeStatus.CLEANING,
                    NodeStatus.QUARANTINED,
                    NodeStatus.MAINTENANCE,
                    NodeStatus.ENROLLED,
                )
            },
        )
        .order_by("site_code", "resource_class")
    )
    rows = cast(Iterable[dict[str, Any]], counted)
    return [Capacity(**row) for row in rows]
