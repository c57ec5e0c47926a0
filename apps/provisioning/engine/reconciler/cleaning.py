"""Nodes of our pool that something reached since they were last proven clean.

Only nodes that changed since then are asked about, and each change once.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction

from apps.core.errors import OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NodeStatus
from apps.provisioning.engine.reconciler.picture import Picture
from apps.provisioning.engine.reconciler.rules import Difference
from apps.provisioning.models import Finding
from apps.provisioning.ports import CleaningRecord, Compute
from apps.provisioning.proofs import proof_of
from apps.provisioning.states import FindingKind

MOST = 50  # histories read in one look; the rest in the next ones


def unclean_nodes(
    picture: Picture, compute: Compute, checked: dict[str, str]
) -> Iterator[Difference]:
    """Nodes on offer that were used or worked on behind our back and not cleaned after it.

    They are quarantined before this returns. `checked` remembers whose history was read.
    """
    yield from _still_unclean(picture)
    to_ask = [node for node in picture.nodes if _has_changed(picture, node, checked)]
    for node in to_ask[:MOST]:
        since = _clean_since(node)
        try:
            record = compute.cleaning_since(node.infra_id, since + timedelta(seconds=1))
        except OutsideError:
            continue  # asked again in the next look
        if is_unclean(record):
            yield _quarantined(node, since, record)
            continue
        if record.result == "success" and record.touched_at is not None:
            inventory.note_cleaning(node=node, proof=proof_of(record, picture.site))
        checked[str(node.pk)] = _change(picture.reality.nodes[node.infra_id])


def _has_changed(picture: Picture, node: Node, checked: dict[str, str]) -> bool:
    """A node on offer that changed since it was clean, and whose change was not looked into."""
    seen = picture.reality.nodes.get(node.infra_id)
    if seen is None or node.status != NodeStatus.AVAILABLE or node.pk in picture.busy:
        return False
    if seen.provision_state != "available" or seen.changed_at is None:
        return False
    return seen.changed_at > _clean_since(node) and checked.get(str(node.pk)) != _change(seen)


def _clean_since(node: Node) -> datetime:
    return node.cleaned_at or node.created_at


def _change(seen: ObservedNode) -> str:
    return seen.changed_at.isoformat() if seen.changed_at else ""


def is_unclean(record: CleaningRecord) -> bool:
    """Did something reach the node that no successful cleaning followed?"""
    if record.touched_at is None:
        return False
    cleaned = record.result == "success" and record.started_at is not None
    return not (cleaned and record.started_at and record.started_at >= record.touched_at)


def _quarantined(node: Node, since: datetime, record: CleaningRecord) -> Difference:
    touched = record.touched_at.isoformat(timespec="seconds") if record.touched_at else ""
    reason = f"used at {touched} behind our back and not cleaned since"
    with transaction.atomic():
        fresh = Node.objects.select_for_update(no_key=True).get(pk=node.pk)
        if fresh.status in (NodeStatus.AVAILABLE, NodeStatus.ALLOCATED):
            inventory.quarantine(node=fresh, reason=reason)
    return _difference(node, f"clean since {since.isoformat(timespec='seconds')}", reason)


def _still_unclean(picture: Picture) -> Iterator[Difference]:
    """What was found before stays until the node is back in the pool, on a proof."""
    waiting = {node.pk: node for node in picture.nodes if node.status == NodeStatus.QUARANTINED}
    found = Finding.objects.filter(
        site=picture.site, kind=FindingKind.NOT_CLEANED, closed_at=None, node__in=waiting
    )
    for finding in found:
        if finding.node_id is not None:
            yield _difference(waiting[finding.node_id], finding.believed, finding.seen)


def _difference(node: Node, believed: str, seen: str) -> Difference:
    return Difference(
        FindingKind.NOT_CLEANED,
        node.name,
        believed,
        seen,
        fix="clean_node",
        node=node,
        at_once=True,
    )
