"""What both ways of a bare metal server share: removing, cleaning with proof, giving
the node back.
"""

from datetime import datetime
from typing import Any

from django.db import transaction

from apps.core.errors import NodeFault
from apps.inventory import services as inventory
from apps.inventory.errors import NotProvenClean
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Done, Outcome, Wait, Work
from apps.provisioning.models import Run

REMOVABLE = ("active", "deploy failed", "error", "wait call-back", "rescue", "rescue failed")
MOVING = ("deploying", "deleting", "cleaning", "clean wait", "undeploying", "deploy hold")


def proof(item: str, wanted: Any, seen: Any, *, ok: bool | None) -> dict[str, Any]:
    """One line of evidence; `ok` None means that it could not be checked."""
    return {"item": item, "wanted": wanted, "seen": seen, "ok": ok}


def remove_and_clean(work: Work, *, since: datetime) -> Outcome:
    """Make sure that nothing of ours is on the node and that it was cleaned since an instant.

    Raises NodeFault where the node cannot be cleaned: the caller's policy decides what becomes of
    it.
    """
    seen = work.compute.get_node(work.server.infra_id)
    ours = seen.instance_id in (None, work.run.service)
    if not ours:
        return Done(detail=f"the node serves {seen.instance_id}: nothing of ours is on it")
    if seen.provision_state in MOVING or seen.is_reserved:
        return Wait(f"{seen.provision_state}", seconds=15)
    if seen.provision_state in REMOVABLE:
        work.compute.undeploy(work.server.infra_id)
        return Wait("removing", seconds=15)
    if seen.provision_state == "available":
        return Done({"cleaning": _cleaning(work, since)})
    raise NodeFault(f"{seen.provision_state}: {seen.last_error or 'no reason given'}")


def _cleaning(work: Work, since: datetime) -> dict[str, Any]:
    """The proof of cleaning, as the infrastructure's own history tells it."""
    record = work.compute.cleaning_since(work.server.infra_id, since)
    was_used = record.was_deployed or work.step.name == "remove"  # also if removed behind our back
    if record.result == "none" and not was_used:
        return never_used(work.now, is_simulated=work.site.is_simulated)
    return {
        "steps": list(record.steps),
        "started_at": record.started_at.isoformat() if record.started_at else None,
        "ended_at": record.ended_at.isoformat() if record.ended_at else None,
        "result": record.result,
        "detail": record.detail,
        "simulated": work.site.is_simulated,
    }


def recycle_if_proven(run: Run) -> None:
    """Put the run's node back into the pool if its cleaning is proven; else it is quarantined.

    A node that was never deployed in this run goes back as it is: nothing of a customer was on it.
    """
    if run.node_id is None:
        return
    node = Node.objects.get(pk=run.node_id)
    if node.status != NodeStatus.CLEANING:
        return
    given = run.inputs.get("undo:deploy") or run.inputs.get("remove") or {}
    cleaning = given.get("cleaning")
    if cleaning is None and not run.steps.filter(name__in=("deploy", "remove"), attempts__gt=0):
        cleaning = never_used(run.ended_at or run.created_at, is_simulated=run.site.is_simulated)
    try:
        with transaction.atomic():
            inventory.recycle(node=node, proof=cleaning or {"result": "none"})
    except NotProvenClean as refusal:
        quarantine_node(run, refusal.detail)


def never_used(at: datetime, *, is_simulated: bool) -> dict[str, Any]:
    """The proof of a node that no customer's data has reached: there is nothing to clean."""
    return {
        "steps": ["never deployed: nothing to clean"],
        "started_at": at.isoformat(),
        "ended_at": at.isoformat(),
        "result": "success",
        "simulated": is_simulated,
    }
