"""One watcher per site: lists all nodes, stores what it saw, wakes the runs whose nodes changed.

No run polls the infrastructure by itself, however many wait.
"""

from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings

from apps.core import clock
from apps.core.errors import OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.inventory.states import SiteStatus
from apps.provisioning import adapters
from apps.provisioning.engine import claims, host_faults
from apps.provisioning.models import Run
from apps.provisioning.states import MOVING

log = structlog.get_logger(__name__)
IDLE_SECONDS = 60
LEASE_SECONDS = 90  # longer than the calls of one look


def due_sites() -> list[UUID]:
    """Active sites to look at now. A run that begins to wait makes its site due (see `hurry`)."""
    return list(
        Site.objects.filter(status=SiteStatus.ACTIVE, watch_due_at__lte=clock.now()).values_list(
            "pk", flat=True
        )
    )


def hurry(site_id: UUID) -> None:
    """A run waits at this site: look within a few seconds, even if it was idle."""
    soon = clock.now() + timedelta(seconds=settings.NEOCLOUD_WATCH_SECONDS)
    Site.objects.filter(pk=site_id, watch_due_at__gt=soon).update(watch_due_at=soon)


def look(site_id: UUID) -> list[UUID]:
    """Look at a site; returns the runs to advance. One at a time per site; a silent site is
    recorded.
    """
    if not inventory.claim_site_watch(site_id=site_id, seconds=LEASE_SECONDS):
        return []
    site = Site.objects.get(pk=site_id)
    try:
        observed = list(adapters.compute_of(site).list_nodes())
    except OutsideError as error:
        inventory.record_site_failure(site=site, error=error.detail)
        _look_again(site_id, settings.NEOCLOUD_WATCH_SECONDS * 3)
        return []
    was_failing = site.failing_since is not None
    inventory.record_site_success(site=site)
    changed = inventory.note_observation(site=site, observed=observed, is_complete=True)
    host_faults.judge(site)
    waiting = Run.objects.filter(site=site_id, status__in=MOVING)
    busy = waiting.exists()
    _look_again(site_id, settings.NEOCLOUD_WATCH_SECONDS if busy else IDLE_SECONDS)
    woken = waiting if was_failing else waiting.filter(node__in=[node.pk for node in changed])
    ids = list(woken.values_list("pk", flat=True))
    claims.wake(ids)
    return ids


def _look_again(site_id: UUID, seconds: float) -> None:
    Site.objects.filter(pk=site_id).update(
        watch_due_at=clock.now() + timedelta(seconds=seconds), watch_lease_until=None
    )
