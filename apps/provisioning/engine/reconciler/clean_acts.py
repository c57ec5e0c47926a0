"""Fixes that clean: a node goes back into the pool only on the proof of the site's own history."""

from typing import Any

from apps.core import clock
from apps.core.errors import Refused
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NODE, NodeStatus
from apps.provisioning.engine.reconciler.acts import (
    Again,
    Work,
    must_not_live,
    refuse_working,
    seen_now,
)
from apps.provisioning.engine.reconciler.rules import FAULTS, RUNS
from apps.provisioning.proofs import proof_of

MOVING = ("deploying", "deleting", "cleaning", "clean wait", "wait call-back", "verifying")


def remove_server(work: Work) -> str | Again:
    """Undeploy what nobody owns any more; the site cleans, and the node goes back on proof."""
    seen = seen_now(work)
    if seen.provision_state in (*RUNS, *FAULTS) and seen.instance_id is not None:
        if seen.instance_id != work.finding.service and seen.provision_state in RUNS:
            raise Refused(f"the node serves {seen.instance_id} now")
        must_not_live(seen.instance_id)
        refuse_working(work)
        if seen.is_reserved:
            return Again("the node is locked")
        _keep_out(work)
        work.compute.undeploy(work.node.infra_id)
        return Again("removing")
    return _clean(work, seen)


def clean_node(work: Work) -> str | Again:
    """Let the site clean an idle node; it goes back into the pool on the proof of this cleaning."""
    refuse_working(work)
    if inventory.last_lease(work.node)[0]:
        raise Refused("a customer holds the node")
    return _clean(work, seen_now(work))


def _clean(work: Work, seen: ObservedNode) -> str | Again:
    infra_id, state = work.node.infra_id, seen.provision_state
    if seen.is_reserved or state in MOVING:
        return Again(state)
    began = work.finding.fix_began_at or clock.now()
    record = work.compute.cleaning_since(infra_id, began)
    if state == "available" and record.result == "success":
        return _returned(work, proof_of(record, work.finding.site))
    if record.result == "failed":
        raise Refused(f"cleaning failed: {record.detail or seen.last_error}")
    if state == "manageable":
        _keep_out(work)
        work.compute.provide(infra_id)
        return Again("cleaning")
    if state not in ("available", "enroll", "clean failed", "inspect failed", "adopt failed"):
        raise Refused(f"the node is {state}: {seen.last_error}")
    _keep_out(work)
    if seen.maintenance and state == "clean failed":
        work.compute.end_maintenance(infra_id)  # the failed cleaning had set it
    work.compute.make_manageable(infra_id)
    return Again("out of the site's pool, to be cleaned", seconds=5)


def settle_node(work: Work) -> str:
    """A node between two customers that no run looks after: back on proof, else quarantined."""
    node = work.node
    refuse_working(work)
    _held, ended = inventory.last_lease(node)
    record = work.compute.cleaning_since(node.infra_id, ended or node.created_at)
    if record.result == "success":
        inventory.recycle(node=node, proof=proof_of(record, node.site))
        return "back in the pool: the site had cleaned it"
    inventory.quarantine(node=node, reason=work.why, actor=work.actor)
    return "quarantined: nothing proves that it was cleaned"


def _keep_out(work: Work) -> None:
    """Nobody may be given the node while it is worked on."""
    node = work.node
    if node.status == NodeStatus.AVAILABLE and NODE.can(node.status, "quarantine"):
        inventory.quarantine(node=node, reason=work.why, actor=work.actor)


def _returned(work: Work, proof: dict[str, Any]) -> str:
    """The proof is in hand: back into the pool, unless a person took the node out for more."""
    node = work.node
    if node.status == NodeStatus.CLEANING:
        inventory.recycle(node=node, proof=proof)
    elif node.status == NodeStatus.QUARANTINED:
        inventory.restore_node(node=node, actor=work.actor, reason=work.why, proof=proof)
        _close_own_ticket(work, node)
    return "cleaned, with proof"


def _close_own_ticket(work: Work, node: Node) -> None:
    since = work.finding.first_seen_at
    for ticket in node.tickets.filter(closed_at=None, opened_at__gte=since):
        inventory.close_ticket(ticket=ticket, actor=work.actor, resolution="cleaned, with proof")
