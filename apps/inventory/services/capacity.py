"""Taking nodes and giving them back: the constraint `node_allocated_once` has the last word.

Whoever writes a hold of a node has locked the node first, and passes over those that others have
locked: so nobody who takes waits for anybody else, but in `waited_for`, one asker at a time.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from psycopg.errors import ExclusionViolation
from psycopg.types.json import Jsonb
from psycopg.types.range import TimestamptzRange

from apps.catalog.models import Plan
from apps.core import clock
from apps.inventory.errors import HeldLater, NothingAllocated, OutOfCapacity
from apps.inventory.models import Allocation, Node, NodeEvent, Site
from apps.inventory.services.nodes import locked, moved
from apps.inventory.states import NODE, NodeStatus

TRIES = 3
SHORTEST_LOAN = timedelta(hours=1)  # less is not lent, the turn-around besides
PLATFORM_HOLDER = UUID(int=0)  # stands for the tenant of what the platform holds itself
_PICK = """
SELECT n.*, f.free_until FROM public.inventory_node n
JOIN public.inventory_free_nodes(%(site)s, %(resource_class)s, %(traits)s, %(plan)s) f
    ON f.node = n.id
WHERE f.gpus = %(gpus)s AND n.status = 'available' AND n.seen_provision_state = 'available'
  AND NOT n.seen_maintenance AND NOT n.is_cordoned
  AND coalesce(f.free_until, 'infinity') >= %(least)s
ORDER BY coalesce(f.free_until, 'infinity') >= %(hold)s DESC,
    CASE WHEN coalesce(f.free_until, 'infinity') >= %(hold)s THEN f.free_until END,
    f.free_until DESC, n.id
LIMIT %(wanted)s FOR NO KEY UPDATE OF n SKIP LOCKED
"""
_PICK_RESERVED = """
SELECT a.* FROM public.inventory_allocation a JOIN public.inventory_node n ON n.id = a.node_id
WHERE a.reservation = %(reservation)s AND a.released_at IS NULL AND a.service IS NULL
  AND a.during @> public.neo_now() AND n.status = 'available'
  AND n.seen_provision_state = 'available' AND NOT n.seen_maintenance AND NOT n.is_cordoned
  AND n.seen_instance IS NULL
ORDER BY n.id LIMIT %(wanted)s FOR NO KEY UPDATE SKIP LOCKED
"""


class TooFew(Exception):
    """Fewer nodes than wanted could be locked."""

    def __init__(self, found: int) -> None:
        super().__init__(found)
        self.found = found


@dataclass(frozen=True)
class Holder:
    """Who takes nodes: a tenant, for the services of an order, until when."""

    tenant: UUID
    order: UUID | None
    services: Sequence[UUID]
    until: datetime | None = None
    accepts_recall: bool = False
    reservation: UUID | None = None
    turn_around: timedelta = field(default=timedelta())

    @property
    def hold(self) -> datetime | None:
        """How long a node is kept from others; None: for ever."""
        return self.until + self.turn_around if self.until else None


def allocate(
    *,
    site: Site,
    resource_class: str,
    traits: Iterable[str],
    gpus_each: int,
    tenant: UUID,
    order: UUID | None,
    services: Sequence[UUID],
    plan: str = Plan.ON_DEMAND,
    until: datetime | None = None,
    accepts_recall: bool = False,
    reservation: UUID | None = None,
) -> list[Allocation]:
    """Give each service a whole node of its own from now on; all of them or none.

    The nodes are held `until` the agreed end and the site's turn-around, or without an end: such
    nodes nobody has reserved for later. With `accepts_recall`, where none of those is left, a node
    may be lent until somebody's reservation begins (`lent_until` tells). With `reservation`, the
    nodes are of those it holds.

    Runs in the caller's transaction, in the tenant's context, after the quota locks. Nodes somebody
    else is taking are passed over at first; before saying that there are too few, it waits for
    those takers, one asker at a time, and looks once more. Raises OutOfCapacity with what is free
    and what was wanted.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("capacity is taken inside the transaction of its order")
    turn_around = timedelta(minutes=site.turn_around_minutes)
    holder = Holder(tenant, order, services, until, accepts_recall, reservation, turn_around)
    wanted = {
        "site": site.pk,
        "resource_class": resource_class,
        "traits": Jsonb(sorted(traits)),
        "gpus": gpus_each,
        "plan": plan,
        "wanted": len(services),
        "reservation": reservation,
    }
    take = _take if reservation is None else _take_reserved
    try:
        return taking(site, resource_class, lambda: take(wanted, holder))
    except TooFew as short:
        raise OutOfCapacity(
            field="quantity",
            free=short.found,
            wanted=len(services),
            resource_class=resource_class,
            site=site.shown_name,
        ) from None


def taking(
    site: Site, resource_class: str, take: Callable[[], list[Allocation]]
) -> list[Allocation]:
    """Try at once, then once more after whoever takes from this pool now. Raises TooFew."""
    for _round in range(2):
        for _attempt in range(TRIES):
            try:
                return take()
            except TooFew as short:
                found = short.found
                break
            except IntegrityError as error:
                if not isinstance(error.__cause__, ExclusionViolation):
                    raise
                found = 0
        if _round == 0:
            waited_for(site, resource_class)
    raise TooFew(found)


def waited_for(site: Site, resource_class: str) -> None:
    """Wait, one asker at a time, until nobody else is taking free nodes of this pool.

    Nodes are locked in one order, and only free ones: nobody who holds one of those waits for us.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"capacity:{site.pk}:{resource_class}"],
        )
        cursor.execute(
            "SELECT FROM public.inventory_node WHERE site_id = %s AND resource_class = %s"
            " AND status = 'available' ORDER BY id FOR NO KEY UPDATE",
            [site.pk, resource_class],
        )


def lent_until(allocation: Allocation, site: Site) -> datetime | None:
    """When a service has to leave a node it borrowed: a turn-around before the reservation."""
    upper, agreed = allocation.during.upper, allocation.agreed_end
    turn_around = timedelta(minutes=site.turn_around_minutes)
    is_lent = (
        allocation.accepts_recall
        and allocation.reservation is None
        and upper is not None
        and (agreed is None or upper < agreed + turn_around)
    )
    return upper - turn_around if is_lent else None


def held_until(*, service: UUID) -> datetime | None:
    """The latest end a service may agree on: a turn-around before somebody's reservation of its
    node, or None.

    The hold stays locked to the end of the transaction, so that it is not shortened meanwhile.
    """
    allocation = hold_of(service)
    if allocation is None or allocation.reservation is not None:
        return None
    following = next_hold(allocation)
    turn_around = timedelta(minutes=allocation.node.site.turn_around_minutes)
    return following - turn_around if following else None


@transaction.atomic
def move_hold_end(*, service: UUID, until: datetime | None) -> Allocation | None:
    """Hold the service's node until another agreed end, or for ever; None when it holds none.

    A node it borrowed is held as long as nobody's reservation begins. Raises HeldLater naming the
    latest possible end when somebody reserved the node and no recall was accepted.
    """
    allocation = hold_of(service)
    if allocation is None or allocation.reservation is not None:
        return allocation
    locked(allocation.node_id)
    turn_around = timedelta(minutes=allocation.node.site.turn_around_minutes)
    upper = until + turn_around if until else None
    following = next_hold(allocation)
    if following is not None and (upper is None or upper > following):
        if not allocation.accepts_recall:
            raise HeldLater(latest=following - turn_around, field="ends_at")
        upper = following
    allocation.agreed_end = until
    allocation.during = TimestamptzRange(allocation.during.lower, upper)
    allocation.save(update_fields=["agreed_end", "during"])
    return allocation


@transaction.atomic
def release(*, service: UUID, left_at: datetime | None = None) -> Allocation | None:
    """End the service's hold on its node; the node is `cleaning` until proven clean.

    `left_at` says since when nothing of the customer has been wanted there, if that was earlier:
    a cleaning after it counts.

    A node already quarantined or in maintenance stays there. Within the term of a reservation the
    node stays held for the rest of it. None when nothing was held: safe to repeat.
    """
    return _release(service, keeps_term=True, left_at=left_at)


@transaction.atomic
def replace_allocation(
    *,
    service: UUID,
    resource_class: str,
    traits: Iterable[str],
    gpus_each: int | None = None,
    left_at: datetime | None = None,
) -> Allocation:
    """Give the service another node of the same site, for as long as it held the old one, and end
    its hold on that.

    The caller decides what becomes of the old node (quarantine it first to keep it out of the
    pool). A reservation moves with its service to a node that is free for the rest of the term, or
    gives one of its own that is idle. Raises OutOfCapacity, and then the old hold stands as before;
    NothingAllocated when it never had a node.
    """
    latest = (
        Allocation.objects.filter(service=service)
        .select_related("node__site")
        .order_by("-created_at", "-id")
        .first()
    )
    if latest is None:
        raise NothingAllocated()
    within = latest.reservation is not None and latest.during.upper > clock.now()
    waits = latest.released_at is not None and _is_held(latest.reservation)
    _release(service, keeps_term=False, left_at=left_at)
    given: dict[str, Any] = {
        "site": latest.node.site,
        "resource_class": resource_class,
        "traits": list(traits),
        "gpus_each": gpus_each or latest.gpu_count,
        "tenant": latest.tenant,
        "order": latest.order,
        "services": [service],
    }
    if waits:  # it gave its node back; its reservation holds another for it, or will
        (allocation,) = allocate(**given, reservation=latest.reservation)
        return allocation
    if not within:
        (allocation,) = allocate(
            **given, until=latest.agreed_end, accepts_recall=latest.accepts_recall
        )
        return allocation
    try:
        (allocation,) = allocate(**given, plan=Plan.RESERVED, until=latest.during.upper)
    except OutOfCapacity:
        (allocation,) = allocate(**given, reservation=latest.reservation)
        return allocation
    allocation.reservation, allocation.agreed_end = latest.reservation, None
    allocation.during = TimestamptzRange(allocation.during.lower, latest.during.upper)
    allocation.save(update_fields=["reservation", "agreed_end", "during"])
    return allocation


def _is_held(reservation: UUID | None) -> bool:
    """Whether the term of a reservation still holds nodes."""
    if reservation is None:
        return False
    return Allocation.objects.filter(
        reservation=reservation, released_at=None, during__endswith__gt=clock.now()
    ).exists()


def _release(
    service: UUID, *, keeps_term: bool, left_at: datetime | None = None
) -> Allocation | None:
    allocation = hold_of(service)
    if allocation is None:
        return None
    node = locked(allocation.node_id)
    now = clock.now()
    lower, upper = allocation.during.lower, allocation.during.upper
    allocation.released_at = max(left_at or now, lower)
    allocation.during = TimestamptzRange(lower, allocation.released_at)
    allocation.save(update_fields=["released_at", "during"])
    if keeps_term and allocation.reservation is not None and upper > now:
        Allocation.objects.create(
            node=node,
            gpus=allocation.gpus,
            during=TimestamptzRange(max(now, lower), upper),
            tenant=allocation.tenant,
            reservation=allocation.reservation,
            gpu_count=allocation.gpu_count,
        )
    if NODE.can(node.status, "release"):
        moved(node, "release")
    return allocation


def hold_of(service: UUID) -> Allocation | None:
    """What the service holds, locked."""
    return (
        Allocation.objects.select_for_update(no_key=True, of=("self",))
        .select_related("node__site")
        .filter(service=service, released_at=None)
        .order_by("created_at")
        .first()
    )


def next_hold(allocation: Allocation) -> datetime | None:
    """When the next hold of the node begins, whoever's; unless it is locked this may change."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT public.inventory_next_hold(%s, %s)",
            [allocation.node_id, allocation.during.lower],
        )
        (at,) = cursor.fetchone()
    return at if at is None or isinstance(at, datetime) else None


@transaction.atomic
def _take(wanted: dict[str, Any], holder: Holder) -> list[Allocation]:
    """Lock, insert, move; leaving by an exception lets go of every row lock taken here."""
    now = clock.now()
    hold = holder.hold or "infinity"
    least = now + holder.turn_around + SHORTEST_LOAN if holder.accepts_recall else hold
    nodes = list(Node.objects.raw(_PICK, wanted | {"hold": hold, "least": least}))
    if len(nodes) < len(holder.services):
        raise TooFew(len(nodes))
    allocations = Allocation.objects.bulk_create(
        Allocation(
            node=node,
            gpus=(0, node.gpu_count),
            during=TimestamptzRange(now, _earlier(holder.hold, node.free_until)),  # type: ignore[attr-defined]
            tenant=holder.tenant,
            order=holder.order,
            service=service,
            agreed_end=holder.until,
            accepts_recall=holder.accepts_recall,
            gpu_count=node.gpu_count,
        )
        for node, service in zip(nodes, holder.services, strict=True)
    )
    _mark_allocated(nodes)
    return allocations


@transaction.atomic
def _take_reserved(wanted: dict[str, Any], holder: Holder) -> list[Allocation]:
    """Let services live on nodes their reservation holds."""
    rows = list(Allocation.objects.raw(_PICK_RESERVED, wanted))
    if len(rows) < len(holder.services):
        raise TooFew(len(rows))
    nodes = Node.objects.in_bulk([row.node_id for row in rows])
    for row, service in zip(rows, holder.services, strict=True):
        row.node = nodes[row.node_id]
        row.order, row.service, row.agreed_end = holder.order, service, holder.until
    Allocation.objects.bulk_update(rows, ["order", "service", "agreed_end"])
    _mark_allocated([row.node for row in rows])
    return rows


def _mark_allocated(nodes: list[Node]) -> None:
    for node in nodes:
        NODE.move(node, "allocate")
    Node.objects.filter(pk__in=[node.pk for node in nodes]).update(
        status=NodeStatus.ALLOCATED, status_reason=""
    )
    NodeEvent.objects.bulk_create(
        NodeEvent(node=node, verb="allocate", status=node.status) for node in nodes
    )


def hold_free_node(*, site: Site, holder: UUID) -> Node | None:
    """Hold a free node for the platform itself, for a trial: nobody can be given it until released.

    Inside the caller's transaction. None when nobody's node is free.
    """
    free = (
        Node.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(
            site=site,
            status=NodeStatus.AVAILABLE,
            is_cordoned=False,
            seen_provision_state="available",
            seen_maintenance=False,
            seen_instance=None,
        )
        .exclude(allocations__released_at=None, allocations__isnull=False)
    )
    node = free.order_by("pk").first()
    if node is None:
        return None
    Allocation.objects.create(
        node=node,
        gpus=(0, max(node.gpu_count, 1)),
        during=TimestamptzRange(clock.now(), None),
        tenant=PLATFORM_HOLDER,
        service=holder,
        gpu_count=node.gpu_count,
    )
    moved(node, "allocate", reason="trial")
    return node


def _earlier(hold: datetime | None, free_until: datetime | None) -> datetime | None:
    """The earlier of two instants, where None is never."""
    return min((at for at in (hold, free_until) if at is not None), default=None)
