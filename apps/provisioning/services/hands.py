"""The hands of operators on a run: each act with a reason, in a person's name.

Whoever decides about a run that moves or is held ends the claim a worker may still have: what that
worker brings back is no longer stored, and nobody else begins before its lease has run out.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.accounts.models import User
from apps.core import clock
from apps.core.errors import NotFound
from apps.inventory import services as inventory
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.provisioning import blueprints
from apps.provisioning.engine import acts, endings, journal, pauses, runs
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Blueprint, Step
from apps.provisioning.errors import (
    AlreadyGoingBack,
    BeingWorkedAt,
    NeverSkipped,
    NothingToReplace,
    NothingToRetry,
    NothingToSkip,
    ReasonMissing,
    RemovalStays,
    RunEnded,
    TakenOver,
)
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import OPEN, RUN, STEP, RunStatus, StepStatus
from apps.provisioning.words import way_of
from apps.tenancy.context import tenant_by_id, tenant_context


def given(reason: str) -> str:
    """The reason somebody gave. Raises ReasonMissing."""
    if not reason.strip():
        raise ReasonMissing(field="reason")
    return reason.strip()


@transaction.atomic
def retry_step(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Let a held or waiting run go on now: the step it stands at is tried again, or undoing
    goes on. For the platform's side.

    Raises RunEnded, TakenOver, BeingWorkedAt, or NothingToRetry while it is being undone.
    """
    reason = given(reason)
    run = _open_run(run_id, actor)
    if run.status == RunStatus.UNDOING:
        raise NothingToRetry(number=run.order_number)
    _refuse_at_work(run)
    _hand_back(run)
    run.save()
    if run.status == RunStatus.FORWARD:  # the step begins anew, with its whole limit
        _at_work(run).exclude(status=StepStatus.DONE).update(started_at=None, deadline=None)
    journal.write(run, "retry", step=_step(run).name, detail=reason, actor=str(actor))
    acts.record(actor, "run.retried", run, reason=reason)
    return run


def skip_step(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Go on behind the step a run stands at, as if it were done. For the platform's side.

    Raises NeverSkipped for what must be real, and the refusals of `retry_step`.
    """
    reason = given(reason)
    with tenant_context(tenant_by_id(_tenant_of(run_id))), transaction.atomic():
        run = _open_run(run_id, actor)
        step = _step(run)
        if run.status == RunStatus.UNDOING or run.outcome:
            raise NothingToSkip(number=run.order_number)
        if not step.skippable:
            raise NeverSkipped(step=step.label, way=way_of(step))
        _refuse_at_work(run)
        _hand_back(run)
        record = _at_work(run).select_for_update().get()
        STEP.move(record, "skip")
        record.skip_reason, record.ended_at = reason[:500], clock.now()
        record.save(update_fields=["status", "skip_reason", "ended_at"])
        journal.write(run, "skipped", step=step.name, detail=reason, actor=str(actor))
        acts.record(actor, "run.step_skipped", run, reason=reason, after={"step": step.name})
        runs.step_over(run, _blueprint(run))
    return run


def replace_node(*, run_id: UUID, actor: User, reason: str, blames_node: bool) -> Run:
    """Undo what was done, then take another node; the old one is quarantined if it is to blame,
    else cleaned and sold again. For the platform's side.

    Raises NothingToReplace, AlreadyGoingBack, RunEnded or TakenOver.
    """
    reason = given(reason)
    with tenant_context(tenant_by_id(_tenant_of(run_id))), transaction.atomic():
        run = _open_run(run_id, actor)
        blueprint = _blueprint(run)
        if not blueprint.replaces_nodes or run.node_id is None:
            raise NothingToReplace(blueprint=blueprint.name)
        if run.status == RunStatus.UNDOING or run.outcome:
            raise AlreadyGoingBack(number=run.order_number)
        orders.show_condition(service_id=run.service, condition=Condition.REPLACING)
        if blames_node:
            quarantine_node(run, reason)
        journal.write(
            run,
            "another node wanted",
            step=_step(run).name,
            detail="the node is to blame" if blames_node else "the node is not to blame",
            actor=str(actor),
        )
        endings.start_undo(run, endings.REPLACE, reason, actor=str(actor))
        acts.record(
            actor, "run.node_replaced", run, reason=reason, after={"blames_node": blames_node}
        )
    return run


def undo_run(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Give up and undo everything; the customer is told and never charged. For the
    platform's side.

    Raises RemovalStays, RunEnded or TakenOver.
    """
    reason = given(reason)
    with tenant_context(tenant_by_id(_tenant_of(run_id))), transaction.atomic():
        run = _open_run(run_id, actor)
        if _blueprint(run).removes:
            raise RemovalStays(name=run.service_name)
        outcome = run.outcome if run.outcome == endings.CANCELLED else endings.FAILED
        if run.status == RunStatus.UNDOING:
            if run.outcome == endings.REPLACE:
                run.outcome, run.reason = endings.FAILED, reason[:500]
                run.save(update_fields=["outcome", "reason"])
                inventory.release(service=run.service)  # nobody moves to another node any more
                journal.write(run, "undo", detail=reason, actor=str(actor))
        else:
            endings.start_undo(run, outcome, reason, actor=str(actor))
        acts.record(actor, "run.undone", run, reason=reason)
    return run


def take_over(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Hold a run without a timer until its new owner hands it back: by trying again, skipping,
    replacing or undoing. For the platform's side.

    Raises RunEnded. Taking over one's own run again changes nothing.
    """
    reason = given(reason)
    with tenant_context(tenant_by_id(_tenant_of(run_id))), transaction.atomic():
        run = _open_run(run_id)
        if run.status == RunStatus.HELD and run.owner == str(actor):
            return run
        before = run.owner
        if run.status != RunStatus.HELD:
            RUN.move(run, "hold")
            run.held_at = clock.now()
            run.reason = reason[:500]
        pauses.stop(run)
        run.owner, run.next_try_at = str(actor), None
        run.fence += 1
        run.save()
        orders.show_condition(service_id=run.service, condition=Condition.LOOKED_AT)
        journal.write(run, "taken over", step=_step(run).name, detail=reason, actor=str(actor))
        acts.record(
            actor,
            "run.taken_over",
            run,
            reason=reason,
            before={"owner": before},
            after={"owner": run.owner},
        )
    return run


def _tenant_of(run_id: UUID) -> UUID:
    found = Run.objects.filter(pk=run_id).values_list("tenant", flat=True).first()
    if found is None:
        raise NotFound()
    return found


def _open_run(run_id: UUID, actor: User | None = None) -> Run:
    """The run under its row lock; with an actor, one nobody else looks after."""
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    if run.status not in OPEN:
        raise RunEnded(number=run.order_number)
    if actor is not None and run.owner and run.owner != str(actor):
        raise TakenOver(owner=run.owner)
    return run


def _blueprint(run: Run) -> Blueprint:
    return blueprints.get(run.blueprint, run.version)


def _step(run: Run) -> Step:
    return _blueprint(run).step(run.position)


def _at_work(run: Run) -> QuerySet[RunStep]:
    return RunStep.objects.filter(run=run, position=run.position)


def _refuse_at_work(run: Run) -> None:
    """While a worker holds a moving run its call may still have its effect."""
    if run.status == RunStatus.FORWARD and run.lease_until and run.lease_until > clock.now():
        until = run.lease_until.isoformat(timespec="seconds")
        raise BeingWorkedAt(step=_step(run).label, until=until)


def _hand_back(run: Run) -> None:
    """A locked run moves again; the caller saves it. Its deadlines move along when it goes on."""
    now = clock.now()
    if run.status == RunStatus.HELD:
        RUN.move(run, "undo" if run.outcome else "retry")
        run.fence += 1
    if run.try_deadline and run.try_deadline <= (run.stopped_at or now):  # it was used up
        undo = timedelta(minutes=policy_of(run).undo_minutes)
        run.try_deadline = now + undo if run.outcome else None
        run.stopped_at = None
    run.next_try_at, run.held_at, run.owner = now, None, ""
    if not run.outcome:
        run.reason = ""
