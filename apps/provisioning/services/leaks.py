"""What people do about leaks: look after one, try it now, close it by their word."""

from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.core import clock
from apps.core.errors import NotFound
from apps.provisioning.engine import acts, endings, journal, leaks
from apps.provisioning.errors import LeakGone
from apps.provisioning.models import Leak, Run
from apps.provisioning.services.hands import given


@transaction.atomic
def assign_leak(*, leak_id: UUID, actor: User) -> Leak:
    """The actor looks after it from now on. Raises LeakGone or NotFound."""
    run, leak = _open_leak(leak_id)
    if leak.owner != str(actor):
        before, leak.owner = leak.owner, str(actor)
        leak.save(update_fields=["owner"])
        journal.write(run, "leak assigned", step=leak.step, detail=leak.what, actor=str(actor))
        acts.record(
            actor, "leak.assigned", leak, before={"owner": before}, after={"owner": leak.owner}
        )
    return leak


@transaction.atomic
def retry_leak(*, leak_id: UUID, actor: User, reason: str) -> Leak:
    """Try to undo it now instead of at its time. Raises LeakGone or NotFound."""
    reason = given(reason)
    run, leak = _open_leak(leak_id)
    leak.next_try_at = clock.now()
    leak.save(update_fields=["next_try_at"])
    journal.write(run, "leak retried", step=leak.step, detail=reason, actor=str(actor))
    acts.record(actor, "leak.retried", leak, reason=reason)
    return leak


@transaction.atomic
def close_leak(*, leak_id: UUID, actor: User, reason: str) -> Leak:
    """Somebody saw to it by hand: it is not tried again. Its node stays in quarantine.

    Raises LeakGone or NotFound.
    """
    reason = given(reason)
    run, leak = _open_leak(leak_id)
    leaks.end(run, leak, f"closed by {actor}: {reason}", actor=str(actor))
    endings.go_on_without_leak(run)
    acts.record(actor, "leak.closed", leak, reason=reason)
    return leak


def _open_leak(leak_id: UUID) -> tuple[Run, Leak]:
    """The run and its leak, locked in that order."""
    found = Leak.objects.filter(pk=leak_id).first()
    if found is None:
        raise NotFound()
    run = Run.objects.select_for_update().get(pk=found.run_id)
    leak = Leak.objects.select_for_update().get(pk=leak_id)
    if leak.gone_at is not None:
        raise LeakGone(how=leak.gone_how)
    return run, leak
