"""One look at a site: ask, compare, record, mend what policy allows. One at a time per site."""

import time
from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Q

from apps.core import clock, secrets
from apps.core.errors import OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.inventory.states import SiteStatus
from apps.provisioning import adapters
from apps.provisioning.engine.reconciler import fixing, recording
from apps.provisioning.engine.reconciler.cleaning import unclean_nodes
from apps.provisioning.engine.reconciler.picture import observe, picture_of
from apps.provisioning.engine.reconciler.rules import differences
from apps.provisioning.models import Finding, SiteLook
from apps.provisioning.states import FindingStatus

log = structlog.get_logger(__name__)
LEASE = timedelta(seconds=180)  # longer than Celery's hard limit
SOON = timedelta(seconds=5)  # after the grace time, when something was seen for the first time


def due_sites() -> list[UUID]:
    """Sites to look at now: those that sell, and paused ones that ever answered."""
    worth = Q(status=SiteStatus.ACTIVE) | Q(last_seen_at__isnull=False)
    new = Site.objects.filter(worth, look=None)
    SiteLook.objects.bulk_create((SiteLook(site=site) for site in new), ignore_conflicts=True)
    now = clock.now()
    return list(
        SiteLook.objects.filter(Q(lease_until=None) | Q(lease_until__lt=now), due_at__lte=now)
        .filter(site__in=Site.objects.filter(worth))
        .order_by("due_at")
        .values_list("site_id", flat=True)
    )


def hurry(site_id: UUID) -> None:
    """Look at the site as soon as somebody can."""
    SiteLook.objects.update_or_create(site_id=site_id, defaults={"due_at": clock.now()})


def look(site_id: UUID) -> recording.Tally | None:
    """Compare a site with what we believe of it; None when another does, or it does not answer."""
    mine = _claim(site_id)
    if mine is None:
        return None
    began = time.monotonic()
    site = Site.objects.get(pk=site_id)
    try:
        compute = adapters.compute_of(site)
        reality = observe(compute, adapters.network_of(site), adapters.volumes_of(site))
    except (OutsideError, LookupError) as error:
        _end(mine, began, error=getattr(error, "detail", str(error)))
        return None
    inventory.note_observation(site=site, observed=reality.nodes.values(), is_complete=True)
    picture = picture_of(site, reality)
    checked = dict(mine.checked)
    found = [*differences(picture), *unclean_nodes(picture, compute, checked)]
    tally = recording.record(picture, found)
    mine.checked = {
        str(node.pk): checked[str(node.pk)] for node in picture.nodes if str(node.pk) in checked
    }
    mine.counts = {
        "nodes": len(reality.nodes),
        "claims": len(reality.claims or ()),
        "ports": len(reality.ports or ()),
        "volumes": len(reality.volumes or ()),
        "differences": len(found),
        "opened": len(tally.opened),
        "closed": tally.closed,
        "fixes": fixing.ask_by_policy(site, seen_at=picture.now),
    }
    is_fixing = Finding.objects.filter(site=site, status=FindingStatus.FIXING).exists()
    _end(mine, began, error="; ".join(reality.unsaid), soon=tally.is_unsure or is_fixing)
    log.info("site.reconciled", site=site.code, **mine.counts)
    return tally


def _claim(site_id: UUID) -> SiteLook | None:
    now = clock.now()
    with transaction.atomic():
        mine = (
            SiteLook.objects.select_for_update(skip_locked=True)
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), site=site_id, due_at__lte=now)
            .first()
        )
        if mine is not None:
            mine.lease_until = now + LEASE
            mine.save(update_fields=["lease_until"])
    return mine


def _end(mine: SiteLook, began: float, *, error: str = "", soon: bool = False) -> None:
    now = clock.now()
    wait = timedelta(seconds=settings.NEOCLOUD_RECONCILE_SECONDS)
    if soon:
        wait = min(wait, recording.grace() + SOON)
    mine.seconds = round(time.monotonic() - began, 3)
    mine.error = secrets.redact_text(error)[:1000]
    mine.looked_at, mine.due_at, mine.lease_until = now, now + wait, None
    mine.save()
