"""The engine, as Celery runs it: messages are only wake-ups with a run's id."""

from typing import Any
from uuid import UUID

import structlog
from celery import shared_task
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.provisioning import services, validation
from apps.provisioning.engine import claims, leaks, reconciler, runs, watcher

log = structlog.get_logger(__name__)


def wake_after_commit(run_id: UUID) -> None:
    """Advance a run as soon as this transaction is committed; the sweeper does it if the message is
    lost.
    """
    transaction.on_commit(lambda: _send(run_id))


def wake_fix(finding_id: UUID) -> None:
    """Carry out a fix as soon as this transaction is committed, or when beat comes by."""
    transaction.on_commit(lambda: _send(finding_id, advance_fix))


def _send(run_id: UUID, task: Any = None) -> None:
    try:
        (task or advance_run).apply_async([str(run_id)], retry=False)
    except (
        OSError,
        OperationalError,
    ) as error:  # the broker is away: the row is due and will be swept
        log.warning("run.wake_lost", run=str(run_id), error=str(error))


@shared_task(platform=True, time_limit=80)
def advance_run(run_id: str) -> None:
    """Advance one run as far as it goes."""
    runs.advance(UUID(run_id))


@shared_task(platform=True)
def sweep_runs() -> None:
    """Wake every run that is due and that nobody holds; undo what nobody looked at in time."""
    runs.end_expired_holds()
    services.expire_overrides()
    for run_id in claims.due_runs():
        advance_run.delay(str(run_id))


@shared_task(platform=True)
def sweep_leaks() -> None:
    """Try every leak again whose time has come."""
    for leak_id in leaks.due_leaks():
        retry_leak.delay(str(leak_id))


@shared_task(platform=True)
def retry_leak(leak_id: str) -> None:
    """Try once more to undo what was left."""
    leaks.try_again(UUID(leak_id))


@shared_task(platform=True)
def watch_sites() -> None:
    """Send a look at each site whose time has come."""
    for site_id in watcher.due_sites():
        watch_site.delay(str(site_id))


@shared_task(platform=True)
def watch_site(site_id: str) -> None:
    """Look at one site and wake the runs whose nodes have changed."""
    for run_id in watcher.look(UUID(site_id)):
        advance_run.delay(str(run_id))


@shared_task(platform=True)
def reconcile_sites() -> None:
    """Send each site that is due to be compared, every fix and every trial that is due."""
    for site_id in reconciler.due_sites():
        reconcile_site.delay(str(site_id))
    for finding_id in reconciler.due_fixes():
        advance_fix.delay(str(finding_id))
    for check_id in validation.due_checks():
        advance_check.delay(str(check_id))


@shared_task(platform=True)
def reconcile_site(site_id: str) -> None:
    """Compare one site with what we believe of it."""
    reconciler.look(UUID(site_id))
    for finding_id in reconciler.due_fixes():
        advance_fix.delay(str(finding_id))


@shared_task(platform=True)
def advance_fix(finding_id: str) -> None:
    """Do the next part of a fix."""
    reconciler.advance_fix(UUID(finding_id))


@shared_task(platform=True)
def advance_check(check_id: str) -> None:
    """Do the next part of a trial."""
    validation.advance_check(UUID(check_id))
