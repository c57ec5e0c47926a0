"""Advancing runs, one step at a time.

Before each external call the intent is stored, after it the outcome, both under the fence of the
claim. Nothing sleeps here: what waits is a row with `next_try_at`.
"""

import time
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction

from apps.core import clock
from apps.core.errors import AppError, NoCapacity, OutsideError, Unknown
from apps.inventory.errors import OutOfCapacity
from apps.inventory.states import SiteStatus
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.provisioning import blueprints
from apps.provisioning.engine import (
    claims,
    endings,
    failpoints,
    failures,
    journal,
    pauses,
    undoing,
    watcher,
)
from apps.provisioning.engine.intents import intend
from apps.provisioning.engine.steps import LOOK_AGAIN, Blueprint, Done, Outcome, Step, Wait
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import RUN, STEP, RunStatus
from apps.tenancy.context import tenant_by_id, tenant_context

log = structlog.get_logger(__name__)
LONGEST_LOOK = 300.0  # seconds between the looks of a run that nothing wakes
BUDGET_SECONDS = 12.0  # a worker gives a run back after this, at the next step


def advance(run_id: UUID) -> bool:
    """Advance a run as far as it goes now; False when it could not be claimed."""
    run = claims.claim(run_id)
    if run is None:
        log.info("run.not_due", run=str(run_id))  # repeated, late, or another's
        return False
    if failpoints.is_armed():
        failpoints.reach(*_claimed(run))
    began = time.monotonic()
    tenant = tenant_by_id(run.tenant)
    with (
        tenant_context(tenant),
        structlog.contextvars.bound_contextvars(run=str(run.pk), order=run.order_number),
    ):
        try:
            while _advance_once(run) and time.monotonic() - began < BUDGET_SECONDS:
                pass
            claims.give_back(run)
        except claims.LostClaim:
            claims.give_back(run)  # where a person took the run over; another's claim stays
            log.info("run.claim_lost")
        except Exception:
            log.exception("run.crashed")
            claims.put_off(run, seconds=60)
    return True


def _claimed(run: Run) -> tuple[str, str]:
    """The step the claim is for, and the failpoint."""
    steps = blueprints.get(run.blueprint, run.version).steps
    if run.status == RunStatus.FORWARD:
        return steps[min(run.position, len(steps) - 1)].name, "claim"
    record = undoing.next_to_undo(run)
    return record.name if record else "", "undo-claim"


def _advance_once(run: Run) -> bool:
    """One step forward or back; True when there is more to do at once."""
    fresh = claims.current(run)
    if fresh.site.status != SiteStatus.ACTIVE:
        return pauses.wait_for_site(run, "site is paused")
    if fresh.site.failing_since is not None:  # the watcher finds out when it answers again
        return pauses.wait_for_site(run, "site does not answer")
    if fresh.stopped_at is not None:
        pauses.go_on(run)
        return True
    blueprint = blueprints.get(fresh.blueprint, fresh.version)
    if fresh.status == RunStatus.FORWARD:
        return _forward(fresh, blueprint)
    if fresh.status == RunStatus.UNDOING:
        return undoing.backward(fresh, blueprint)
    return False


def _forward(run: Run, blueprint: Blueprint) -> bool:
    step = blueprint.step(run.position)
    work = intend(run, step, position=run.position)
    failpoints.reach(step.name, "intent")
    if work.step.deadline and work.now > work.step.deadline:
        return failures.late(run, step)
    try:
        outcome = step.do(work)
    except OutsideError as error:
        return failures.handle(run, step, error)
    except AppError as error:
        return failures.handle(run, step, _as_outside(error))
    except Exception as error:
        log.exception("step.crashed", step=step.name)
        return failures.handle(run, step, Unknown(f"{type(error).__name__}: {error}"))
    failpoints.reach(step.name, "effect")
    try:
        return _store(run, blueprint, step, outcome)
    except AppError as error:  # what the step wanted to store was refused: another act came first
        log.info("step.overtaken", step=step.name, detail=error.detail)
        claims.put_off(run, seconds=2)
        return False


def _as_outside(error: AppError) -> OutsideError:
    if isinstance(error, OutOfCapacity):
        return NoCapacity(error.detail)
    return Unknown(f"{error.code}: {error.detail}")


def _store(run: Run, blueprint: Blueprint, step: Step, outcome: Outcome) -> bool:
    """Store what came of a step going forward."""
    if isinstance(outcome, Wait):
        return _store_wait(run, step, outcome)
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status != RunStatus.FORWARD:  # cancelled while we were outside
            return True
        record = RunStep.objects.select_for_update().get(run=run, position=fresh.position)
        finish_record(record, outcome)
        fresh.inputs = {**fresh.inputs, step.name: outcome.stored}
        journal.write(run, "done", step=step.name, detail=outcome.detail)
        if outcome.then is not None:
            outcome.then()
        is_last = step_over(fresh, blueprint)
        failpoints.reach(step.name, "outcome")
    failpoints.reach(step.name, "commit")
    return not is_last


def step_over(run: Run, blueprint: Blueprint) -> bool:
    """Let a locked run go on behind the step it stands at; True when that was the last one."""
    run.position += 1
    is_last = run.position == len(blueprint.steps)
    if is_last:
        RUN.move(run, "succeed")
        run.ended_at, run.next_try_at, run.lease_until = clock.now(), None, None
        blueprint.on_success(run)
        journal.write(run, "succeeded")
    else:
        run.next_try_at = clock.now()
    run.save()
    if not is_last:
        _show_progress(run)
    return is_last


def finish_record(record: RunStep, outcome: Done) -> None:
    """Store what came of a locked step that is at work."""
    STEP.move(record, "finish")
    record.ended_at = clock.now()
    record.output, record.evidence = outcome.stored, outcome.evidence
    record.error_kind = record.error = ""
    record.save()


def _until_next_look(outcome: Wait, looks: int) -> timedelta:
    """Who only waits to be woken looks less and less often: the look is for a wake-up that was
    lost.
    """
    if outcome.seconds < LOOK_AGAIN:
        return timedelta(seconds=outcome.seconds)
    return timedelta(seconds=min(outcome.seconds * 2 ** min(looks - 1, 10), LONGEST_LOOK))


def _store_wait(run: Run, step: Step, outcome: Wait) -> bool:
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.status != RunStatus.FORWARD:
            return True
        record = RunStep.objects.select_for_update().get(run=run, position=fresh.position)
        STEP.move(record, "wait")
        if record.error_kind:
            _show_progress(fresh)  # no longer retrying or delayed
        record.error_kind = record.error = ""
        record.save()
        wake = clock.now() + _until_next_look(outcome, record.attempts)
        if record.deadline:
            wake = min(wake, record.deadline + timedelta(seconds=1))
        is_woken = fresh.next_try_at != run.next_try_at  # while the step was looking
        fresh.next_try_at = clock.now() if is_woken else wake
        fresh.lease_until = fresh.lease_until if is_woken else None
        fresh.save(update_fields=["next_try_at", "lease_until"])
        if record.attempts == 1:
            journal.write(run, "waits", step=step.name, detail=outcome.detail)
        watcher.hurry(fresh.site_id)
        _show_progress(fresh, outcome.shows)
        failpoints.reach(step.name, "outcome")
    failpoints.reach(step.name, "commit")
    return is_woken


def _show_progress(run: Run, shows: str = "") -> None:
    usual = blueprints.get(run.blueprint, run.version).shows
    condition = shows or (Condition.REPLACING if run.replacements else usual)
    orders.show_condition(service_id=run.service, condition=condition, run=run.pk)


def end_expired_holds() -> None:
    """Undo what was held for a person longer than its policy allows."""
    expired = Run.objects.filter(status=RunStatus.HELD, next_try_at__lte=clock.now())
    for run in expired[:100]:
        with tenant_context(tenant_by_id(run.tenant)), transaction.atomic():
            fresh = Run.objects.select_for_update(skip_locked=True).filter(pk=run.pk).first()
            if fresh is None or fresh.status != RunStatus.HELD or fresh.next_try_at is None:
                continue
            if fresh.next_try_at <= clock.now():
                outcome = fresh.outcome if fresh.outcome == endings.CANCELLED else endings.FAILED
                endings.start_undo(fresh, outcome, f"nobody decided in time: {fresh.reason}")
