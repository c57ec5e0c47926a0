"""Standing still: held, queued, at a silent or a paused site, a run's deadlines do not run."""

from datetime import timedelta

import structlog
from django.db import transaction
from django.db.models import F

from apps.core import clock
from apps.inventory.models import Site
from apps.orders import services as orders
from apps.orders.models import Condition
from apps.provisioning.engine import claims
from apps.provisioning.models import Run, RunStep

log = structlog.get_logger(__name__)
LOOK_AGAIN = timedelta(seconds=15)


def stop(run: Run) -> None:
    """The deadlines of a locked run stand still from now on; the caller saves it."""
    run.stopped_at = run.stopped_at or clock.now()


def go_on(run: Run) -> None:
    """The deadlines of a run that stood still move along by as long as it did."""
    with transaction.atomic():
        fresh = claims.locked(run)
        if fresh.stopped_at is None:
            return
        stood = max(clock.now() - fresh.stopped_at, timedelta(0))
        if fresh.try_deadline:
            fresh.try_deadline += stood
        RunStep.objects.filter(run=run, deadline__isnull=False, ended_at=None).update(
            deadline=F("deadline") + stood
        )
        fresh.stopped_at = None
        fresh.save(update_fields=["try_deadline", "stopped_at"])


def site_silent(run: Run, detail: str) -> bool:
    """Nobody answers: the run pauses and no try is used up."""
    with transaction.atomic():
        site = Site.objects.select_for_update().get(pk=run.site_id)
        site.failing_since = site.failing_since or clock.now()
        site.last_error = detail[:1000]
        site.save(update_fields=["failing_since", "last_error"])
    return wait_for_site(run, "site does not answer", attempts_back=1)


def wait_for_site(run: Run, why: str, *, attempts_back: int = 0) -> bool:
    """The site is silent or paused: nothing is asked of it until that has ended."""
    with transaction.atomic():
        fresh = claims.locked(run)
        orders.show_condition(service_id=run.service, condition=Condition.DELAYED)
        stop(fresh)
        fresh.next_try_at, fresh.lease_until = clock.now() + LOOK_AGAIN, None
        fresh.save(update_fields=["stopped_at", "next_try_at", "lease_until"])
        if attempts_back:
            RunStep.objects.filter(run=run, position=fresh.position, attempts__gt=0).update(
                attempts=F("attempts") - attempts_back
            )
    log.info("run.paused", why=why)
    return False
