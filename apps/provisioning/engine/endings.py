"""How a try ends when it does not succeed: another node, a person, or everything undone."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.core import clock
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.notices import services as notices
from apps.orders import services as orders
from apps.orders.models import Condition, IfUnavailable
from apps.provisioning import blueprints
from apps.provisioning.engine import claims, journal
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Blueprint, Step
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import RUN, RunStatus, StepStatus

log = structlog.get_logger(__name__)
REPLACE = "replace"
LOOK_FOR_A_NODE = timedelta(seconds=15)
FAILED = "failed"
CANCELLED = "cancelled"


def give_up_on_node(run: Run, step: Step, reason: str) -> bool:
    """The node is to blame: quarantine it, undo what was done on it, then take another
    or give up.
    """
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status != RunStatus.FORWARD:
            return True
        blueprint = blueprints.get(run.blueprint, run.version)
        replaces = blueprint.replaces_nodes
        allowed = int(run.wanted["max_replacements"]) if replaces else 0
        outcome = REPLACE if fresh.replacements < allowed else FAILED
        orders.show_condition(  # locks the service, which goes before its nodes
            service_id=run.service,
            condition=Condition.REPLACING if outcome == REPLACE else Condition.LOOKED_AT,
        )
        if blueprint.risks_node:
            quarantine_node(fresh, f"{step.name}: {reason}")
        start_undo(fresh, outcome, f"{step.name}: {reason}")
    return True


def give_up(run: Run, reason: str) -> bool:
    """Undo everything; the customer is told and pays nothing. A removal is never given up: a person
    looks.
    """
    blueprint = blueprints.get(run.blueprint, run.version)
    if blueprint.removes:
        return hold(run, blueprint.step(run.position), reason)
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status == RunStatus.FORWARD:
            start_undo(fresh, FAILED, reason)
    return True


def start_undo(run: Run, outcome: str, reason: str, *, actor: str = "") -> None:
    """Turn a locked run around; inside the caller's transaction, in the run's tenant."""
    RUN.move(run, "undo")
    run.outcome, run.reason = outcome, reason[:500]
    run.next_try_at = clock.now()
    run.held_at = None
    run.save()
    keeps = blueprints.get(run.blueprint, run.version).keeps_node
    if outcome != REPLACE and not keeps:  # capacity and quota are returned; the node is cleaned
        inventory.release(service=run.service)
    journal.write(run, "undo", detail=reason, actor=actor)


def hold(run: Run, step: Step, reason: str) -> bool:
    """Nobody foresaw this: keep everything and let a person look. A server that runs on is not
    held up.
    """
    if not blueprints.get(run.blueprint, run.version).risks_node:
        return give_up(run, f"{step.name}: {reason}")
    with transaction.atomic():
        fresh = claims.locked(run)
        RUN.move(fresh, "hold")
        now = clock.now()
        fresh.reason, fresh.held_at = f"{step.name}: {reason}"[:500], now
        fresh.next_try_at = now + timedelta(hours=policy_of(run).hold_hours)
        fresh.lease_until = None
        fresh.save()
        orders.show_condition(service_id=run.service, condition=Condition.LOOKED_AT)
        journal.write(run, "held", step=step.name, detail=reason)
        notices.tell_operators(
            kind="run.held",
            dedup_key=f"run.held:{run.pk}:{fresh.fence}",
            subject=_("{order}: {step} needs a person"),
            body=_("The run of {order} stopped at {step}: {reason}"),
            link=f"/runs/{run.pk}/",
            order=run.order_number,
            step=step.label,
            reason=reason,
        )
    return False


def all_undone(run: Run, blueprint: Blueprint) -> bool:
    """Everything is undone: go on with another node, or end."""
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.outcome == REPLACE:
            return _replace(fresh, blueprint)
        _end_undone(fresh, blueprint)
    return False


def _end_undone(run: Run, blueprint: Blueprint) -> None:
    RUN.move(run, "undone")
    run.ended_at, run.next_try_at, run.lease_until = clock.now(), None, None
    run.save()
    blueprint.on_undone(run)
    journal.write(run, "ended", detail=run.reason)


def _replace(run: Run, blueprint: Blueprint) -> bool:
    before = run.node_id
    wanted_in = blueprint.wanted_in
    if not orders.lock_wanted(service_id=run.service, states=wanted_in):  # ended: no other node
        run.outcome = CANCELLED
        _end_undone(run, blueprint)
        return False
    try:
        with transaction.atomic():
            allocation = inventory.replace_allocation(
                service=run.service,
                resource_class=run.wanted["resource_class"],
                traits=run.wanted["traits"],
            )
    except OutOfCapacity as error:
        if run.wanted.get("if_unavailable") == IfUnavailable.QUEUE:
            return _wait_for_a_node(run, error.detail)
        run.outcome, run.reason = FAILED, f"{run.reason}; {error.detail}"[:500]
        _end_undone(run, blueprint)
        return False
    _begin_again(run, allocation.node_id)
    orders.describe_service(
        service_id=run.service, node_id=allocation.node_id, node_name=allocation.node.name
    )
    journal.write(run, "replaced", detail=f"{before} → {allocation.node.name}")
    return True


def _wait_for_a_node(run: Run, why: str) -> bool:
    """The order chose to wait: its quota stays, the bad node stays out of the pool,
    look again soon.
    """
    run.next_try_at = clock.now() + LOOK_FOR_A_NODE
    run.lease_until = None
    run.save(update_fields=["next_try_at", "lease_until"])
    orders.show_condition(service_id=run.service, condition=Condition.IN_QUEUE)
    if journal.last(run, "waits for a node") is None:
        journal.write(run, "waits for a node", detail=why)
    return False


def _begin_again(run: Run, node_id: UUID) -> None:
    RUN.move(run, "replace")
    run.node_id = node_id
    run.outcome = ""
    run.replacements += 1
    run.position = 0
    run.inputs = {}
    run.try_deadline = None
    run.next_try_at = clock.now()
    run.save()
    RunStep.objects.filter(run=run).exclude(status=StepStatus.LEAKED).update(
        status=StepStatus.PENDING,
        attempts=0,
        started_at=None,
        deadline=None,
        ended_at=None,
        intent_at=None,
        output={},
        evidence=[],
    )
