"""Going back: every step that did anything is undone, the highest first, the failed one
included.
"""

from datetime import timedelta

import structlog
from django.db import transaction

from apps.core import clock
from apps.core.errors import FailureKind, OutsideError, Unknown
from apps.provisioning.engine import claims, endings, failpoints, journal, leaks, pauses, watcher
from apps.provisioning.engine.intents import intend
from apps.provisioning.engine.steps import Blueprint, Done, Wait
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import STEP, StepStatus

log = structlog.get_logger(__name__)


def next_to_undo(run: Run) -> RunStep | None:
    """The highest step that did anything and is not undone yet."""
    return (
        RunStep.objects.filter(run=run)
        .exclude(status__in=(StepStatus.PENDING, StepStatus.UNDONE, StepStatus.LEAKED))
        .order_by("-position")
        .first()
    )


def backward(run: Run, blueprint: Blueprint) -> bool:
    """Undo the highest step that is not undone yet; the step that failed is included."""
    record = next_to_undo(run)
    if record is None:
        return endings.all_undone(run, blueprint)
    step = blueprint.step(record.position)
    if step.undo is None:
        return _store_undone(run, record, "")
    work = intend(run, step, position=record.position, undoing=True)
    failpoints.reach(step.name, "undo-intent")
    try:
        outcome = step.undo(work)
    except OutsideError as error:
        return _undo_failed(run, blueprint, record, error)
    except Exception as error:
        log.exception("undo.crashed", step=step.name)
        return _undo_failed(run, blueprint, record, Unknown(f"{type(error).__name__}: {error}"))
    failpoints.reach(step.name, "undo-effect")
    if isinstance(outcome, Wait):
        with transaction.atomic():
            fresh = claims.locked(run)
            is_woken = fresh.next_try_at != run.next_try_at  # while the step was looking
            if not is_woken:
                fresh.next_try_at = clock.now() + timedelta(seconds=outcome.seconds)
                fresh.lease_until = None
                fresh.save(update_fields=["next_try_at", "lease_until"])
            watcher.hurry(fresh.site_id)
            failpoints.reach(step.name, "undo-outcome")
        failpoints.reach(step.name, "undo-commit")
        return is_woken
    return _store_undone(run, record, outcome.detail, outcome)


def _store_undone(run: Run, record: RunStep, detail: str, outcome: Done | None = None) -> bool:
    with transaction.atomic():
        fresh = claims.locked(run)
        record = RunStep.objects.select_for_update().get(pk=record.pk)
        STEP.move(record, "undo")
        record.ended_at = clock.now()
        record.save()
        if outcome is not None:
            if outcome.stored:
                fresh.inputs = {**fresh.inputs, f"undo:{record.name}": outcome.stored}
            if outcome.then is not None:
                outcome.then()
        fresh.next_try_at = clock.now()
        fresh.save(update_fields=["inputs", "next_try_at"])
        journal.write(run, "undone", step=record.name, detail=detail)
        failpoints.reach(record.name, "undo-outcome")
    failpoints.reach(record.name, "undo-commit")
    return True


def _undo_failed(run: Run, blueprint: Blueprint, record: RunStep, error: OutsideError) -> bool:
    """Undo goes on trying; what cannot be undone in time becomes a visible leak and the rest is
    undone.
    """
    log.warning("undo.failed", step=record.name, kind=error.kind, detail=error.detail)
    if error.kind == FailureKind.SITE_UNREACHABLE:
        return pauses.site_silent(run, error.detail)
    with transaction.atomic():
        fresh = claims.locked(run)
        record = RunStep.objects.select_for_update().get(pk=record.pk)
        record.error_kind, record.error = error.kind, error.detail[:1000]
        in_time = fresh.try_deadline is None or clock.now() < fresh.try_deadline
        patient = error.kind in (FailureKind.TRANSIENT, FailureKind.UNKNOWN)
        if patient and in_time:
            record.save()
            wait = min(300, 5 * 2 ** min(record.attempts, 6))
            fresh.next_try_at = clock.now() + timedelta(seconds=wait)
            fresh.lease_until = None
            fresh.save(update_fields=["next_try_at", "lease_until"])
            journal.write(run, "undo failed", step=record.name, detail=error.detail)
            return False
        STEP.move(record, "leak")
        record.ended_at = clock.now()
        record.save()
        leaks.record(fresh, blueprint.step(record.position), record, error.detail)
    return True
