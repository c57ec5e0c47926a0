"""The hands of operators on a run: each act with a reason, in a person's name."""

from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import NotFound
from apps.provisioning.engine import endings, journal
from apps.provisioning.errors import NothingToRetry, ReasonMissing, RunEnded
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import OPEN, RUN, RunStatus, StepStatus
from apps.tenancy.context import tenant_by_id, tenant_context


def given(reason: str) -> str:
    """The reason somebody gave. Raises ReasonMissing."""
    if not reason.strip():
        raise ReasonMissing(field="reason")
    return reason.strip()


def _open_run(run_id: UUID) -> Run:
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    if run.status not in OPEN:
        raise RunEnded(number=run.order_number)
    return run


@transaction.atomic
def retry_step(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Try the step at work again now: ends a hold, cuts a back-off short. For the
    platform's side.
    """
    reason = given(reason)
    run = _open_run(run_id)
    if run.status == RunStatus.HELD:
        RUN.move(run, "retry")
    elif run.status != RunStatus.FORWARD:
        raise NothingToRetry(number=run.order_number)
    run.next_try_at, run.held_at, run.try_deadline, run.reason = clock.now(), None, None, ""
    run.save()
    RunStep.objects.filter(run=run, position=run.position).exclude(status=StepStatus.DONE).update(
        started_at=None, deadline=None
    )
    journal.write(run, "retry", detail=reason, actor=str(actor))
    audit.record(actor, "run.retried", run, reason=reason)
    return run


def undo_run(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Give up and undo everything; the customer is told and never charged. For the
    platform's side.
    """
    reason = given(reason)
    tenant = tenant_by_id(_tenant_of(run_id))
    with tenant_context(tenant), transaction.atomic():
        run = _open_run(run_id)
        if run.status == RunStatus.UNDOING:
            if run.outcome == endings.REPLACE:
                run.outcome, run.reason = endings.FAILED, reason
                run.save(update_fields=["outcome", "reason"])
        else:
            endings.start_undo(run, endings.FAILED, reason, actor=str(actor))
        audit.record(actor, "run.undone", run, reason=reason)
    return run


def _tenant_of(run_id: UUID) -> UUID:
    found = Run.objects.filter(pk=run_id).values_list("tenant", flat=True).first()
    if found is None:
        raise NotFound()
    return found
