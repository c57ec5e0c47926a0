"""The intent of a step is stored before anything outside is asked."""

from datetime import timedelta

from django.db import transaction

from apps.core import clock
from apps.provisioning import adapters
from apps.provisioning.engine import claims, journal
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.steps import Step, Work
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import STEP


def intend(run: Run, step: Step, *, position: int, undoing: bool = False) -> Work:
    """Store what is about to be done."""
    with transaction.atomic():
        fresh = claims.locked(run)
        record = RunStep.objects.select_for_update().get(run=run, position=position)
        now = clock.now()
        is_first = record.started_at is None
        if not undoing:
            STEP.move(record, "start")
            if is_first:
                limit = step.limit_of(run) if step.limit_of else step.limit
                record.started_at, record.deadline = now, now + limit
                journal.write(run, "started", step=step.name)
            if run.try_deadline is None:
                fresh.try_deadline = now + timedelta(minutes=policy_of(run).try_minutes)
                fresh.save(update_fields=["try_deadline"])
        record.intent_at = now
        record.attempts += 1
        record.save()
    return Work(
        run=fresh,
        step=record,
        site=fresh.site,
        node=fresh.node,
        compute=adapters.compute_of(fresh.site),
        now=now,
    )
