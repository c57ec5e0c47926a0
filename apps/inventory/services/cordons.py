"""Cordons: a node keeps its service and is given to nobody new; draining lists who must move."""

from typing import Any
from uuid import UUID

from django.db import transaction

from apps.audit import services as audit
from apps.core import outbox
from apps.inventory.models import Node, NodeEvent, Site
from apps.inventory.services.nodes import locked
from apps.inventory.states import NodeStatus


@transaction.atomic
def cordon_node(*, node: Node, actor: Any, reason: str) -> Node:
    """Give the node to nobody new; who holds it keeps it. Repeated, it changes nothing."""
    return _set(locked(node.pk), is_cordoned=True, actor=actor, reason=reason)


@transaction.atomic
def uncordon_node(*, node: Node, actor: Any, reason: str) -> Node:
    """Sell the node again. Repeated, it changes nothing."""
    return _set(locked(node.pk), is_cordoned=False, actor=actor, reason=reason)


@transaction.atomic
def cordon_rack(
    *, site: Site, rack: str, actor: Any, reason: str, is_cordoned: bool = True
) -> list[Node]:
    """Cordon every node of a rack, or let all of them go; returns those that changed."""
    nodes = (
        Node.objects.select_for_update(no_key=True)
        .filter(site=site, rack=rack)
        .exclude(status=NodeStatus.RETIRED)
        .exclude(is_cordoned=is_cordoned)
        .order_by("pk")
    )
    return [_set(node, is_cordoned=is_cordoned, actor=actor, reason=reason) for node in nodes]


def _set(node: Node, *, is_cordoned: bool, actor: Any, reason: str) -> Node:
    if node.is_cordoned == is_cordoned:
        return node
    node.is_cordoned = is_cordoned
    node.save(update_fields=["is_cordoned"])
    verb = "cordon" if is_cordoned else "uncordon"
    NodeEvent.objects.create(
        node=node, verb=verb, status=node.status, reason=reason, actor=str(actor or "")
    )
    audit.record(actor, f"node.{verb}ed", node, reason=reason)
    if not is_cordoned and node.status == NodeStatus.AVAILABLE:
        outbox.publish(
            "node.available",
            subject=node.pk,
            site=str(node.site_id),
            resource_class=node.resource_class,
        )
    return node


def services_on(node: Node) -> list[UUID]:
    """The services that live on a node now: those a drain waits for, or moves."""
    held = node.allocations.filter(released_at=None, service__isnull=False)
    return [one for one in held.values_list("service", flat=True) if one is not None]
