"""Keeping what the infrastructure says of its nodes.

A few set-based statements, whatever their number.
"""

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import connection, transaction

from apps.core import clock
from apps.inventory.models import Node, Site
from apps.inventory.observations import ObservedNode

MISSING = "missing"  # a provision state of ours: the site no longer lists the node


def seen_columns(observed: ObservedNode) -> dict[str, Any]:
    """The `seen_*` columns of a node, from what was observed."""
    return {
        "seen_provision_state": observed.provision_state or "",
        "seen_target_state": observed.target_provision_state or "",
        "seen_power_state": observed.power_state or "",
        "seen_maintenance": observed.maintenance,
        "seen_fault": observed.fault or "",
        "seen_reservation": observed.is_reserved,
        "seen_instance": observed.instance_id,
        "seen_last_error": observed.last_error or "",
        "seen_changed_at": observed.changed_at,
    }


COLUMNS = (
    "seen_provision_state", "seen_target_state", "seen_power_state", "seen_maintenance",
    "seen_fault", "seen_reservation", "seen_instance", "seen_last_error", "seen_changed_at",
)  # fmt: skip
_STORE = """
UPDATE public.inventory_node n SET
    seen_provision_state = s.seen_provision_state, seen_target_state = s.seen_target_state,
    seen_power_state = s.seen_power_state, seen_maintenance = s.seen_maintenance,
    seen_fault = s.seen_fault, seen_reservation = s.seen_reservation,
    seen_instance = s.seen_instance, seen_last_error = s.seen_last_error,
    seen_changed_at = s.seen_changed_at
FROM jsonb_populate_recordset(NULL::public.inventory_node, %s::jsonb) s
WHERE n.id = s.id
"""
SEEN_AGAIN = timedelta(minutes=1)  # nodes that stay as they are get their `seen_at` this often


@transaction.atomic
def note_observation(
    *, site: Site, observed: Iterable[ObservedNode], is_complete: bool = False
) -> list[Node]:
    """Store what was seen of the site's nodes; returns those of which something changed.

    Nodes we do not know are passed over. With `is_complete` the list is the whole site, and a node
    it lacks is noted as missing, so that it is not sold. Takes the rows' locks in id order.
    """
    seen = {one.infra_id: seen_columns(one) for one in observed}
    nodes = Node.objects.filter(site=site)
    if not is_complete:
        nodes = nodes.filter(infra_id__in=list(seen))
    known = {node.pk: node for node in nodes}
    differing = [
        pk
        for pk, node in known.items()
        if _differs(node, seen.get(node.infra_id, {"seen_provision_state": MISSING}))
    ]
    changed = list(
        Node.objects.select_for_update(no_key=True).filter(pk__in=differing).order_by("pk")
    )
    for node in changed:
        for column, value in seen.get(node.infra_id, {"seen_provision_state": MISSING}).items():
            setattr(node, column, value)
    _store(changed)
    now = clock.now()
    present = [
        pk
        for pk, node in known.items()
        if node.infra_id in seen and (node.seen_at is None or now - node.seen_at >= SEEN_AGAIN)
    ]
    Node.objects.filter(
        pk__in=Node.objects.select_for_update(no_key=True)
        .filter(pk__in=present)
        .order_by("pk")
        .values("pk")
    ).update(seen_at=now)
    return changed


def _store(changed: list[Node]) -> None:
    """Write the `seen_*` columns of locked nodes, all in one statement."""
    if not changed:
        return
    rows = [{name: getattr(node, name) for name in ("id", *COLUMNS)} for node in changed]
    with connection.cursor() as cursor:
        cursor.execute(_STORE, [json.dumps(rows, default=str)])  # ids and instants as text


def _differs(node: Node, columns: dict[str, Any]) -> bool:
    return any(getattr(node, column) != value for column, value in columns.items())
