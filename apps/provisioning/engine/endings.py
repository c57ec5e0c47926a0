"""How a try ends when it does not succeed: another node, a person, or everything undone."""

from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.core import clock
from apps.core.errors import FailureKind
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation
from apps.inventory.selectors import live_allocation
from apps.notices import services as notices
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.orders.queues import queue_length
from apps.provisioning import blueprints
from apps.provisioning.engine import claims, journal, pauses
from apps.provisioning.engine.policies import decision, policy_of, replacements_allowed
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Blueprint, Step
from apps.provisioning.models import Leak, Run, RunStep, Then
from apps.provisioning.states import RUN, RunStatus, StepStatus

log = structlog.get_logger(__name__)
REPLACE = "replace"
LOOK_FOR_A_NODE = timedelta(minutes=5)
FAILED = "failed"
CANCELLED = "cancelled"


def follow(run: Run, step: Step, then: str, reason: str) -> bool:
    """Do what the policy says of a step that cannot go on.

    A removal is never given up, whatever the policy: a person looks, or its node is quarantined.
    """
    if then == Then.HOLD:
        return hold(run, step, reason)
    if then == Then.REPLACE:
        return give_up_on_node(run, step, reason)
    if blueprints.get(run.blueprint, run.version).removes:
        return hold(run, step, reason)
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status == RunStatus.FORWARD:
            start_undo(fresh, FAILED, f"{step.name}: {reason}")
    return True


def give_up_on_node(run: Run, step: Step, reason: str) -> bool:
    """The node is to blame: quarantine it, undo what was done on it, then take another
    or do what comes after the last one.
    """
    policy = policy_of(run)
    blueprint = blueprints.get(run.blueprint, run.version)
    replaces = blueprint.replaces_nodes
    allowed = replacements_allowed(policy, run) if replaces else 0
    is_last = run.replacements >= allowed
    if replaces and is_last and policy.after_last_try == Then.HOLD:
        return hold(run, step, f"the last of {run.replacements + 1} nodes: {reason}")
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status != RunStatus.FORWARD:
            return True
        outcome = FAILED if is_last else REPLACE
        orders.show_condition(  # locks the service, which goes before its nodes
            service_id=run.service,
            condition=Condition.LOOKED_AT if is_last else Condition.REPLACING,
        )
        if blueprint.risks_node:
            quarantine_node(fresh, f"{step.name}: {reason}")
        start_undo(fresh, outcome, f"{step.name}: {reason}")
    return True


def start_undo(run: Run, outcome: str, reason: str, *, actor: str = "") -> None:
    """Turn a locked run around; inside the caller's transaction, in the run's tenant."""
    RUN.move(run, "undo")
    now = clock.now()
    run.outcome, run.reason, run.owner = outcome, reason[:500], ""
    run.next_try_at, run.held_at, run.stopped_at = now, None, None
    run.try_deadline = now + timedelta(minutes=policy_of(run).undo_minutes)
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
        return follow(run, step, Then.UNDO, reason)
    with transaction.atomic():
        fresh = claims.locked(run)
        RUN.move(fresh, "hold")
        now = clock.now()
        fresh.reason, fresh.held_at = f"{step.name}: {reason}"[:500], now
        fresh.next_try_at = _until_undone(fresh, now)
        fresh.lease_until = None
        pauses.stop(fresh)
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


def _until_undone(run: Run, now: datetime) -> datetime | None:
    """When a held run is undone by itself; a removal never is: it would leave the server."""
    if blueprints.get(run.blueprint, run.version).removes:
        return None
    return now + timedelta(hours=policy_of(run).hold_hours)


def all_undone(run: Run, blueprint: Blueprint) -> bool:
    """Everything is undone: go on with another node, or end."""
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.outcome == REPLACE:
            leak = Leak.objects.filter(run=run.pk, gone_at=None).first()
            if leak is not None:  # it still takes the service's place at the site
                return hold(run, blueprint.named(leak.step), f"not undone: {leak.what}")
            return _replace(fresh, blueprint)
        _end_undone(fresh, blueprint)
    return False


def go_on_without_leak(run: Run) -> None:
    """A locked run that was held for its last leak takes another node now."""
    is_waiting = run.status == RunStatus.HELD and run.outcome == REPLACE and not run.owner
    if is_waiting and not Leak.objects.filter(run=run.pk, gone_at=None).exists():
        RUN.move(run, "undo")
        run.next_try_at, run.held_at = clock.now(), None
        run.save()


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
    if run.node_id is None:  # it waits in the queue, which gives it its node
        given = live_allocation(run.service)
        return _go_on_with(run, before, given) if given else _wait(run)
    if _queues(run) and queue_length(
        site_id=run.site_id, resource_class=run.wanted["resource_class"]
    ):
        return _enter_queue(run, blueprint, "others wait")
    try:
        with transaction.atomic():
            allocation = inventory.replace_allocation(
                service=run.service,
                resource_class=run.wanted["resource_class"],
                traits=run.wanted["traits"],
                left_at=journal.last(run, "undo"),
            )
    except OutOfCapacity as error:
        if _queues(run):
            return _enter_queue(run, blueprint, error.detail)
        if decision(policy_of(run), FailureKind.NO_CAPACITY, run) == Then.HOLD:
            return hold(run, blueprint.step(0), error.detail)
        run.outcome, run.reason = FAILED, f"{run.reason}; {error.detail}"[:500]
        _end_undone(run, blueprint)
        return False
    blueprint.on_node_left(run)
    return _go_on_with(run, before, allocation)


def _queues(run: Run) -> bool:
    return decision(policy_of(run), FailureKind.NO_CAPACITY, run) == Then.QUEUE


def _go_on_with(run: Run, before: UUID | None, allocation: Allocation) -> bool:
    _begin_again(run, allocation.node_id)
    orders.describe_service(
        service_id=run.service, node_id=allocation.node_id, node_name=allocation.node.name
    )
    journal.write(run, "replaced", detail=f"{before or '-'} → {allocation.node.name}")
    return True


def _enter_queue(run: Run, blueprint: Blueprint, why: str) -> bool:
    """The order chose to wait: its quota stays, its node is left, its place is the old one."""
    orders.wait_for_node(service_id=run.service, left_at=journal.last(run, "undo"))
    blueprint.on_node_left(run)
    run.node = None
    journal.write(run, "waits for a node", detail=why)
    return _wait(run)


def _wait(run: Run) -> bool:
    """Until the queue wakes it; it looks by itself, too, in case that call is lost."""
    run.next_try_at, run.lease_until = clock.now() + LOOK_FOR_A_NODE, None
    run.save(update_fields=["node", "next_try_at", "lease_until"])
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
    RunStep.objects.filter(run=run).update(  # what leaked of the last node is a row of its own
        status=StepStatus.PENDING,
        attempts=0,
        started_at=None,
        deadline=None,
        ended_at=None,
        intent_at=None,
        output={},
        evidence=[],
        error_kind="",
        error="",
        skip_reason="",
    )
