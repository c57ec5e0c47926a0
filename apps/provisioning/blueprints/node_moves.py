"""What both ways of a bare metal server share: removing, cleaning with proof, giving
the node back.
"""

from datetime import datetime
from types import EllipsisType
from typing import Any

from django.db import transaction

from apps.core import clock
from apps.core.errors import NodeFault
from apps.inventory import services as inventory
from apps.inventory.errors import NotProvenClean
from apps.inventory.models import Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NodeStatus
from apps.provisioning.engine import journal
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Claim, Done, Outcome, Wait, Work
from apps.provisioning.models import Run, RunEvent, RunStep

REMOVABLE = (
    *("active", "deploy failed", "error", "wait call-back"),
    *("rescue", "rescue failed", "unrescue failed"),
)
MOVING = (
    *("deploying", "deploy hold", "deleting", "undeploying", "cleaning", "clean wait"),
    *("rescuing", "rescue wait", "unrescuing"),
)
# What Ironic says of work its conductor did not live to end; the node is not to blame.
CONDUCTOR_DIED = "can't be resumed by conductor"
AGAIN = "cleaned again"  # the journal's word for a cleaning begun anew


def proof(
    item: str, wanted: Any, seen: Any, *, ok: bool | EllipsisType | None = ...
) -> dict[str, Any]:
    """One line of evidence; `ok` None: it could not be checked, unsaid: both are equal."""
    verdict = wanted == seen if isinstance(ok, EllipsisType) else ok
    return {"item": item, "wanted": wanted, "seen": seen, "ok": verdict}


def vouched(item: str, claim: Claim) -> dict[str, Any]:
    """A line of evidence that two people stand for: never taken for something measured."""
    by = {"claimed_by": claim.claimed_by, "confirmed_by": claim.confirmed_by}
    return proof(item, "", claim.evidence, ok=None) | by


def claimed_cleaning(claim: Claim) -> dict[str, Any]:
    """In the place of the proof of a cleaning: the word of two people, by name."""
    return {
        "result": "claimed",
        "steps": [claim.evidence],
        "started_at": claim.at.isoformat(),
        "ended_at": claim.at.isoformat(),
        "claimed_by": claim.claimed_by,
        "confirmed_by": claim.confirmed_by,
    }


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
        return _cleaned(work, seen, since)
    if seen.provision_state == "clean failed":
        return _clean_again(work, seen, since)
    if seen.provision_state == "manageable" and _times_again(work):
        work.compute.provide(work.server.infra_id)
        return Wait("cleaning again", seconds=15)
    raise NodeFault(f"{seen.provision_state}: {seen.last_error or 'no reason given'}")


def _cleaned(work: Work, seen: ObservedNode, since: datetime) -> Outcome:
    """Available: the lessee of the instance that is gone goes too, if the site has kept it."""
    if seen.lessee:
        work.compute.clear_lessee(work.server.infra_id)
        return Wait("the lessee is taken off", seconds=1)
    return Done({"cleaning": _cleaning(work, since)})


def _clean_again(work: Work, seen: ObservedNode, since: datetime) -> Outcome:
    """A cleaning whose conductor died is begun anew, as often as the policy says; any other failed
    cleaning is the node's fault.
    """
    why = seen.last_error
    if CONDUCTOR_DIED not in why:  # the site forgets its last error soon; its history does not
        why = work.compute.cleaning_since(work.server.infra_id, since).detail or why
    most = policy_of(work.run).recleanings
    if CONDUCTOR_DIED not in why or _times_again(work) >= most:
        raise NodeFault(f"clean failed: {why or 'no reason given'}")
    journal.write(work.run, AGAIN, step=work.step.name, detail=why)
    if seen.maintenance:
        work.compute.end_maintenance(work.server.infra_id)
    work.compute.make_manageable(work.server.infra_id)
    return Wait("the site's conductor had died: cleaning again", seconds=2)


def _times_again(work: Work) -> int:
    """How often this run has begun a cleaning anew."""
    return RunEvent.objects.filter(run=work.run, kind=AGAIN, step=work.step.name).count()


def _cleaning(work: Work, since: datetime) -> dict[str, Any]:
    """The proof of cleaning, as the infrastructure's own history tells it."""
    record = work.compute.cleaning_since(work.server.infra_id, since)
    was_used = record.was_deployed or _was_ever_deployed(work)
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


def _was_ever_deployed(work: Work) -> bool:
    """Whether any work on the service began to deploy, long before this removal perhaps: then a
    server removed behind our back is never taken for one that was never used.
    """
    deploys = RunStep.objects.filter(run__service=work.run.service, name="deploy", attempts__gt=0)
    return work.step.name == "remove" and deploys.exists()


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
        cleaning = never_used(run.ended_at or clock.now(), is_simulated=run.site.is_simulated)
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
