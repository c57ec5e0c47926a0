"""Nodes held for a term that lies ahead: booked, given up, moved to another node."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from psycopg.types.json import Jsonb
from psycopg.types.range import TimestamptzRange

from apps.catalog.models import Plan
from apps.core import clock
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation, Node, NodeEvent, Site, Ticket
from apps.inventory.services.capacity import TooFew, hold_of, next_hold, taking
from apps.inventory.services.nodes import locked

WORK_ITEM = "reservation"  # the category of a ticket about a node that cannot be replaced
_PICK = """
SELECT n.* FROM public.inventory_node n
JOIN public.inventory_free_nodes(%(site)s, %(resource_class)s, %(traits)s, %(plan)s, %(begins)s) f
    ON f.node = n.id
WHERE f.gpus = %(gpus)s AND NOT n.is_cordoned AND NOT n.seen_maintenance
  AND n.status IN ('available', 'allocated', 'cleaning')
  AND coalesce(f.free_until, 'infinity') >= %(ends)s + make_interval(mins => %(turn_around)s)
ORDER BY n.status = 'available' DESC, f.free_until, n.id
LIMIT %(wanted)s FOR NO KEY UPDATE OF n SKIP LOCKED
"""


def hold_term(
    *,
    site: Site,
    resource_class: str,
    traits: Iterable[str],
    gpus_each: int,
    tenant: UUID,
    reservation: UUID,
    quantity: int,
    starts_at: datetime,
    ends_at: datetime,
) -> list[Allocation]:
    """Hold whole nodes for [starts_at, ends_at), picked now; all of them or none.

    Nodes nobody uses come first, and of those the ones that others reserved for later: what is
    left can be used without an end. Runs in the caller's transaction, after the quota locks.
    Raises OutOfCapacity.
    """
    begins = max(starts_at, clock.now())
    wanted = {
        "site": site.pk,
        "resource_class": resource_class,
        "traits": Jsonb(sorted(traits)),
        "gpus": gpus_each,
        "plan": Plan.RESERVED,
        "wanted": quantity,
        "begins": begins,
        "ends": ends_at,
        "turn_around": site.turn_around_minutes,
    }
    during = TimestamptzRange(begins, ends_at)

    @transaction.atomic
    def take() -> list[Allocation]:
        nodes = list(Node.objects.raw(_PICK, wanted))
        if len(nodes) < quantity:
            raise TooFew(len(nodes))
        return Allocation.objects.bulk_create(
            Allocation(
                node=node,
                gpus=(0, node.gpu_count),
                during=during,
                tenant=tenant,
                reservation=reservation,
                gpu_count=node.gpu_count,
            )
            for node in nodes
        )

    try:
        return taking(site, resource_class, take)
    except TooFew as short:
        raise OutOfCapacity(
            field="quantity",
            free=short.found,
            wanted=quantity,
            resource_class=resource_class,
            site=site.shown_name,
        ) from None


@transaction.atomic
def release_term(*, reservation: UUID, at: datetime | None = None) -> int:
    """Give back the nodes of a reservation that nobody lives on; how many were given back.

    `at` is the end that counts, if it has passed already. Safe to repeat.
    """
    now = clock.now()
    rows = list(
        Allocation.objects.select_for_update(no_key=True)
        .filter(reservation=reservation, service=None, released_at=None)
        .order_by("node_id")
    )
    for row in rows:
        locked(row.node_id)
        lower, upper = row.during.lower, row.during.upper
        row.released_at = at or now
        row.during = TimestamptzRange(lower, max(lower, min(upper, row.released_at)))
        row.save(update_fields=["released_at", "during"])
    return len(rows)


@transaction.atomic
def leave_term(*, service: UUID, until: datetime | None, at: datetime) -> bool:
    """Let a service whose reservation ended at `at` keep its node on demand, if nobody else holds
    it later; False when somebody does.
    """
    row = hold_of(service)
    if row is None or row.reservation is None:
        return row is not None
    node = locked(row.node_id)
    turn_around = timedelta(minutes=row.node.site.turn_around_minutes)
    hold = until + turn_around if until else None
    serves = Plan.ON_DEMAND in node.plans and not node.is_cordoned
    following = next_hold(row)
    if not serves or (following is not None and (hold is None or hold > following)):
        return False
    row.released_at = at
    row.save(update_fields=["released_at"])
    Allocation.objects.create(
        node=node,
        gpus=row.gpus,
        during=TimestamptzRange(at, hold),
        tenant=row.tenant,
        order=row.order,
        service=service,
        agreed_end=until,
        gpu_count=row.gpu_count,
    )
    return True


@transaction.atomic
def move_term(*, hold: UUID, traits: Iterable[str]) -> Allocation | None:
    """Give a reservation another node for one that cannot serve it, for the rest of its term.

    None, and a ticket on the node, when there is no other; safe to repeat. For the platform's side.
    """
    row = (
        Allocation.objects.select_for_update(no_key=True, of=("self",))
        .select_related("node__site")
        .filter(pk=hold, service=None, released_at=None)
        .first()
    )
    if row is None or row.reservation is None:
        return row
    old, now = row.node, clock.now()
    try:
        (moved,) = hold_term(
            site=old.site,
            resource_class=old.resource_class,
            traits=traits,
            gpus_each=row.gpu_count,
            tenant=row.tenant,
            reservation=row.reservation,
            quantity=1,
            starts_at=max(now, row.during.lower),
            ends_at=row.during.upper,
        )
    except OutOfCapacity:
        _open_work_item(old, row)
        return None
    row.released_at = now
    row.during = TimestamptzRange(row.during.lower, max(now, row.during.lower))
    row.save(update_fields=["released_at", "during"])
    reason = f"{old.name} → {moved.node.name}"
    NodeEvent.objects.bulk_create(
        NodeEvent(node=node, verb="move_reservation", status=node.status, reason=reason)
        for node in (old, moved.node)
    )
    old.tickets.filter(category=WORK_ITEM, closed_at=None).update(
        closed_at=now, resolution=f"{moved.node.name} holds it now."
    )
    return moved


def _open_work_item(node: Node, row: Allocation) -> None:
    if node.tickets.filter(category=WORK_ITEM, closed_at=None).exists():
        return
    Ticket.objects.create(
        node=node,
        category=WORK_ITEM,
        title=f"{node.name} cannot serve its reservation of {row.during.lower:%Y-%m-%d %H:%M} UTC",
        detail=(
            f"{node.name} is {node.status}, and no other node is free until "
            f"{row.during.upper:%Y-%m-%d %H:%M} UTC. Repair it, or free another one."
        ),
        action="Repair the node, or free another of its kind.",
    )
