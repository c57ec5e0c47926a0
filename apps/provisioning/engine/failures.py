"""What is done when a step fails, by the kind of failure."""

import random
from datetime import timedelta

import structlog
from django.db import transaction

from apps.core import clock
from apps.core.errors import FailureKind, OutsideError
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.provisioning.engine import claims, endings, journal, pauses
from apps.provisioning.engine.policies import decision, policy_of
from apps.provisioning.engine.steps import Step
from apps.provisioning.models import Run, RunStep, Then
from apps.provisioning.states import STEP, StepStatus

log = structlog.get_logger(__name__)


def handle(run: Run, step: Step, error: OutsideError) -> bool:
    """A step failed: by its kind and the policy it is tried again, moved, held or undone."""
    log.warning("step.failed", step=step.name, kind=error.kind, detail=error.detail)
    _note_failure(run, step, error)
    if error.kind == FailureKind.SITE_UNREACHABLE:
        return pauses.site_silent(run, error.detail)
    if error.kind == FailureKind.TRANSIENT:
        return _retry(run, step, error, Condition.RETRYING)
    then = decision(policy_of(run), error.kind, run)
    if then == Then.QUEUE:
        return _retry(run, step, error, Condition.IN_QUEUE)
    return endings.follow(run, step, then, error.detail)


def late(run: Run, step: Step) -> bool:
    """A step took longer than its limit: that is a fault of the node."""
    return endings.follow(
        run, step, decision(policy_of(run), FailureKind.NODE_FAULT, run), step.late
    )


def _note_failure(run: Run, step: Step, error: OutsideError) -> None:
    with transaction.atomic():
        claims.locked(run)
        record = RunStep.objects.select_for_update().get(run=run, position=run.position)
        if record.status in (StepStatus.RUNNING, StepStatus.WAITING):
            STEP.move(record, "fail")
        record.error_kind, record.error = error.kind, error.detail[:1000]
        record.save()
        journal.write(run, "failed", step=step.name, detail=f"{error.kind}: {error.detail}")


def _retry(run: Run, step: Step, error: OutsideError, condition: str) -> bool:
    """Back off: the first wait doubling to the longest, with jitter, until the try's deadline."""
    policy = policy_of(run)
    with transaction.atomic():
        fresh = claims.locked(run)
        record = RunStep.objects.get(run=run, position=fresh.position)
        now = clock.now()
        is_last = bool(fresh.try_deadline and now > fresh.try_deadline)
        if not is_last:
            base = policy.first_wait_seconds * 2 ** min(max(record.attempts - 1, 0), 10)
            wait = min(base, policy.longest_wait_seconds) * random.uniform(0.8, 1.2)  # noqa: S311
            fresh.next_try_at, fresh.lease_until = now + timedelta(seconds=wait), None
            fresh.save(update_fields=["next_try_at", "lease_until"])
            orders.show_condition(
                service_id=run.service,
                condition=condition,
                detail=f"{step.name}:{record.attempts}",
            )
    if is_last:
        reason = f"tried until the deadline; {error.detail}"
        return endings.follow(run, step, policy.after_last_try, reason)
    return False
