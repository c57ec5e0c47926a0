"""Claiming a run: a lease says how long, a fence says who.

Every claim raises the fence; a worker whose lease ran out finds another fence and can no longer
write.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.db.models import Q

from apps.core import clock
from apps.provisioning.models import Run
from apps.provisioning.states import MOVING

LEASE = timedelta(seconds=90)  # longer than the task's hard limit, which is longer than any step


class LostClaim(Exception):
    """Somebody else holds the run now: stop without a word."""


def claim(run_id: UUID) -> Run | None:
    """Take a due run for LEASE, or None when it is not due, held by another, or ended."""
    now = clock.now()
    with transaction.atomic():
        run = (
            Run.objects.select_for_update(skip_locked=True)
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=run_id, next_try_at__lte=now)
            .filter(status__in=MOVING)
            .first()
        )
        if run is None or _site_is_full(run):
            return None
        run.fence += 1
        run.lease_until = now + LEASE
        run.save(update_fields=["fence", "lease_until"])
    return run


def _site_is_full(run: Run) -> bool:
    """As many runs of the site are at work as it takes at once; the sweeper comes again."""
    at_work = Run.objects.filter(site=run.site_id, lease_until__gt=clock.now()).count()
    return at_work >= run.site.concurrency


def due_runs(limit: int = 100) -> list[UUID]:
    """Runs whose time has come and which nobody holds, longest due first."""
    now = clock.now()
    return list(
        Run.objects.filter(
            Q(lease_until=None) | Q(lease_until__lt=now), status__in=MOVING, next_try_at__lte=now
        )
        .order_by("next_try_at")
        .values_list("pk", flat=True)[:limit]
    )


def current(run: Run) -> Run:
    """The run as it is now, if the claim still holds and nobody took the run over; raises
    LostClaim.
    """
    fresh = Run.objects.select_related("site", "node").filter(_mine(run)).first()
    if fresh is None:
        raise LostClaim
    return fresh


def locked(run: Run) -> Run:
    """The run's row, locked, if the claim still holds and nobody took the run over; raises
    LostClaim.
    """
    fresh = (
        Run.objects.select_for_update(of=("self",))
        .select_related("site", "node")
        .filter(_mine(run))
        .first()
    )
    if fresh is None:
        raise LostClaim
    return fresh


def _mine(run: Run) -> Q:
    """Claimed by us, and still moving: what a person holds, no worker writes."""
    return Q(pk=run.pk, fence=run.fence, status__in=MOVING)


def give_back(run: Run) -> None:
    """End the lease early: nobody has to wait for it to run out."""
    Run.objects.filter(pk=run.pk, fence=run.fence).update(lease_until=None)


def put_off(run: Run, *, seconds: float) -> None:
    """Give the run back and let nobody touch it for a while: something unforeseen happened here."""
    Run.objects.filter(_mine(run)).update(
        lease_until=None, next_try_at=clock.now() + timedelta(seconds=seconds)
    )


def wake(run_ids: list[UUID]) -> None:
    """Let waiting runs look again now: something about their node or their guest has changed."""
    if run_ids:
        Run.objects.filter(pk__in=run_ids, status__in=MOVING).update(next_try_at=clock.now())
