"""Keeping what the infrastructure says of its nodes.

A few set-based statements, whatever their number.
"""

from collections.abc import Iterable
from typing import Any

from django.db import transaction

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


_COLUMNS = [
    "seen_provision_state",
    "seen_target_state",
    "seen_power_state",
    "seen_maintenance",
    "seen_fault",
    "seen_reservation",
    "seen_instance",
    "seen_last_error",
    "seen_changed_at",
]


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
    Node.objects.bulk_update(changed, _COLUMNS, batch_size=500)
    present = [pk for pk, node in known.items() if node.infra_id in seen]
    Node.objects.filter(
        pk__in=Node.objects.select_for_update(no_key=True)
        .filter(pk__in=present)
        .order_by("pk")
        .values("pk")
    ).update(seen_at=clock.now())
    return changed


def _differs(node: Node, columns: dict[str, Any]) -> bool:
    return any(getattr(node, column) != value for column, value in columns.items())
