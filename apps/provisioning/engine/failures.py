"""What is done when a step fails, by the kind of failure."""

import random
from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import F

from apps.core import clock
from apps.core.errors import FailureKind, OutsideError
from apps.inventory.models import Site
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.provisioning.engine import claims, endings, journal
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.steps import Step
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import STEP, StepStatus

log = structlog.get_logger(__name__)
SITE_PAUSE = 15.0


def handle(run: Run, step: Step, error: OutsideError) -> bool:
    """A step failed: by its kind it is tried again, moved to another node, held or undone."""
    log.warning("step.failed", step=step.name, kind=error.kind, detail=error.detail)
    _note_failure(run, step, error)
    if error.kind == FailureKind.SITE_UNREACHABLE:
        return site_silent(run, error)
    if error.kind == FailureKind.TRANSIENT:
        return _retry(run, step, error)
    if error.kind == FailureKind.NODE_FAULT:
        return endings.give_up_on_node(run, step, error.detail)
    if error.kind == FailureKind.NO_CAPACITY:
        return endings.give_up(run, f"no capacity: {error.detail}")
    return endings.hold(run, step, error.detail)


def _note_failure(run: Run, step: Step, error: OutsideError) -> None:
    with transaction.atomic():
        claims.locked(run)
        record = RunStep.objects.select_for_update().get(run=run, position=run.position)
        if record.status in (StepStatus.RUNNING, StepStatus.WAITING):
            STEP.move(record, "fail")
        record.error_kind, record.error = error.kind, error.detail[:1000]
        record.save()
        journal.write(run, "failed", step=step.name, detail=f"{error.kind}: {error.detail}")


def _retry(run: Run, step: Step, error: OutsideError) -> bool:
    """Back off: the first wait doubling to the longest, with jitter, until the try's deadline."""
    policy = policy_of(run)
    with transaction.atomic():
        fresh = claims.locked(run)
        record = RunStep.objects.get(run=run, position=fresh.position)
        now = clock.now()
        if fresh.try_deadline and now > fresh.try_deadline:
            late = True
        else:
            late = False
            base = policy.first_wait_seconds * 2 ** min(max(record.attempts - 1, 0), 10)
            wait = min(base, policy.longest_wait_seconds) * random.uniform(0.8, 1.2)  # noqa: S311
            fresh.next_try_at, fresh.lease_until = now + timedelta(seconds=wait), None
            fresh.save(update_fields=["next_try_at", "lease_until"])
            orders.show_condition(
                service_id=run.service,
                condition=Condition.RETRYING,
                detail=f"{step.name}:{record.attempts}",
            )
    if late:
        return endings.give_up(run, f"{step.name}: tried until the deadline; {error.detail}")
    return False


def site_silent(run: Run, error: OutsideError) -> bool:
    """Nobody answers: the run pauses, its deadlines move along, no try is used up."""
    with transaction.atomic():
        site = Site.objects.select_for_update().get(pk=run.site_id)
        site.failing_since = site.failing_since or clock.now()
        site.last_error = error.detail[:1000]
        site.save(update_fields=["failing_since", "last_error"])
    return wait_for_site(run, attempts_back=1)


def wait_for_site(run: Run, *, attempts_back: int = 0) -> bool:
    """The site is known not to answer: nothing is asked until the watcher hears from it again."""
    with transaction.atomic():
        orders.show_condition(service_id=run.service, condition=Condition.DELAYED)
    return pause(run, "site does not answer", attempts_back=attempts_back)


def pause(run: Run, why: str, *, seconds: float = SITE_PAUSE, attempts_back: int = 0) -> bool:
    """Look again after a while; the deadlines of the run and its step move along."""
    moved = timedelta(seconds=seconds)
    with transaction.atomic():
        fresh = claims.locked(run)
        fresh.next_try_at, fresh.lease_until = clock.now() + moved, None
        if fresh.try_deadline:
            fresh.try_deadline += moved
        fresh.save(update_fields=["next_try_at", "lease_until", "try_deadline"])
        RunStep.objects.filter(run=run, deadline__isnull=False, ended_at=None).update(
            deadline=F("deadline") + moved
        )
        if attempts_back:
            RunStep.objects.filter(run=run, position=fresh.position, attempts__gt=0).update(
                attempts=F("attempts") - attempts_back
            )
    log.info("run.paused", why=why)
    return False
