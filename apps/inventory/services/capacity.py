"""Taking nodes and giving them back: the constraint `node_allocated_once` has the last word."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, connection, transaction
from psycopg.errors import ExclusionViolation
from psycopg.types.json import Jsonb
from psycopg.types.range import TimestamptzRange

from apps.core import clock
from apps.inventory.errors import NothingAllocated, OutOfCapacity
from apps.inventory.models import Allocation, Node, NodeEvent, Site
from apps.inventory.services.nodes import locked, moved
from apps.inventory.states import NODE, NodeStatus

TRIES = 3
PLATFORM_HOLDER = UUID(int=0)  # stands for the tenant of what the platform holds itself
_PICK = """
SELECT n.* FROM public.inventory_node n
JOIN public.inventory_free_nodes(%(site)s, %(resource_class)s, %(traits)s) f ON f.node = n.id
WHERE f.gpus = %(gpus)s AND n.status = 'available' AND n.seen_provision_state = 'available'
  AND NOT n.seen_maintenance AND NOT n.is_cordoned
ORDER BY n.id LIMIT %(wanted)s FOR NO KEY UPDATE OF n
"""


class _TooFew(Exception):
    """Fewer nodes than wanted could be locked."""

    def __init__(self, found: int) -> None:
        super().__init__(found)
        self.found = found


def allocate(
    *,
    site: Site,
    resource_class: str,
    traits: Iterable[str],
    gpus_each: int,
    tenant: UUID,
    order: UUID | None,
    services: Sequence[UUID],
) -> list[Allocation]:
    """Give each service a whole node of its own, from now on without an end; all of them or none.

    Runs in the caller's transaction, in the tenant's context, after the quota locks. Nodes somebody
    else is taking are passed over at first; before saying that there are too few, it waits for
    those takers, one asker at a time, and looks once more. Raises OutOfCapacity with what is free
    and what was wanted.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("capacity is taken inside the transaction of its order")
    wanted = {
        "site": site.pk,
        "resource_class": resource_class,
        "traits": Jsonb(sorted(traits)),
        "gpus": gpus_each,
        "wanted": len(services),
    }
    for _attempt in range(TRIES):
        try:
            return _take(wanted, tenant, order, services, skip_locked=True)
        except _TooFew:
            break
        except IntegrityError as error:
            if not isinstance(error.__cause__, ExclusionViolation):
                raise
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))",
            [f"capacity:{site.pk}:{resource_class}"],
        )
    try:
        return _take(wanted, tenant, order, services, skip_locked=False)
    except _TooFew as short:
        raise OutOfCapacity(
            field="quantity",
            free=short.found,
            wanted=len(services),
            resource_class=resource_class,
            site=site.shown_name,
        ) from None


def held_until(*, service: UUID) -> datetime | None:
    """Until when a service may keep its node: the begin of somebody's reservation, or None.

    The hold stays locked to the end of the transaction, so that it is not shortened meanwhile.
    """
    allocation = (
        Allocation.objects.select_for_update(no_key=True)
        .filter(service=service, released_at=None)
        .first()
    )
    return allocation.during.upper if allocation else None


@transaction.atomic
def release(*, service: UUID, left_at: datetime | None = None) -> Allocation | None:
    """End the service's hold on its node; the node is `cleaning` until proven clean.

    `left_at` says since when nothing of the customer has been wanted there, if that was earlier:
    a cleaning after it counts.

    A node already quarantined or in maintenance stays there. None when nothing was held: safe to
    repeat.
    """
    allocation = (
        Allocation.objects.select_for_update(no_key=True)
        .filter(service=service, released_at=None)
        .order_by("created_at")
        .first()
    )
    if allocation is None:
        return None
    node = locked(allocation.node_id)
    lower = allocation.during.lower
    allocation.released_at = max(left_at or clock.now(), lower)
    allocation.during = TimestamptzRange(lower, allocation.released_at)
    allocation.save(update_fields=["released_at", "during"])
    if NODE.can(node.status, "release"):
        moved(node, "release")
    return allocation


@transaction.atomic
def replace_allocation(
    *,
    service: UUID,
    resource_class: str,
    traits: Iterable[str],
    gpus_each: int | None = None,
    left_at: datetime | None = None,
) -> Allocation:
    """Give the service another node of the same site and end its hold on the old one.

    The caller decides what becomes of the old node (quarantine it first to keep it out of the
    pool). Raises OutOfCapacity, and then the old hold stands as before; NothingAllocated when it
    never had a node.
    """
    latest = (
        Allocation.objects.filter(service=service)
        .select_related("node__site")
        .order_by("-created_at", "-id")
        .first()
    )
    if latest is None:
        raise NothingAllocated()
    release(service=service, left_at=left_at)
    (allocation,) = allocate(
        site=latest.node.site,
        resource_class=resource_class,
        traits=traits,
        gpus_each=gpus_each or latest.gpu_count,
        tenant=latest.tenant,
        order=latest.order,
        services=[service],
    )
    return allocation


@transaction.atomic
def _take(
    wanted: dict[str, Any],
    tenant: UUID,
    order: UUID | None,
    services: Sequence[UUID],
    *,
    skip_locked: bool,
) -> list[Allocation]:
    """Lock, insert, move; leaving by an exception lets go of every row lock taken here."""
    nodes = list(Node.objects.raw(_PICK + (" SKIP LOCKED" if skip_locked else ""), wanted))
    if len(nodes) < len(services):
        raise _TooFew(len(nodes))
    now = clock.now()
    allocations = Allocation.objects.bulk_create(
        Allocation(
            node=node,
            gpus=(0, node.gpu_count),
            during=TimestamptzRange(now, None),
            tenant=tenant,
            order=order,
            service=service,
            gpu_count=node.gpu_count,
        )
        for node, service in zip(nodes, services, strict=True)
    )
    for node in nodes:
        NODE.move(node, "allocate")
    Node.objects.filter(pk__in=[node.pk for node in nodes]).update(
        status=NodeStatus.ALLOCATED, status_reason=""
    )
    NodeEvent.objects.bulk_create(
        NodeEvent(node=node, verb="allocate", status=node.status) for node in nodes
    )
    return allocations


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
