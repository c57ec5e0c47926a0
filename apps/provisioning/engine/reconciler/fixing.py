"""Carrying out a fix: asked for by policy or a person, done as a job, confirmed by a later look.

What is done stands in the finding; a worker that dies in between is followed by another one, and
every fix is safe to repeat.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import AppError, OutsideError, SiteUnreachable, Transient
from apps.inventory.models import Site
from apps.provisioning import adapters
from apps.provisioning.engine.reconciler import recording
from apps.provisioning.engine.reconciler.acts import Again, Work
from apps.provisioning.engine.reconciler.fixes import FIXES
from apps.provisioning.models import Finding, FixPolicy, SiteLook
from apps.provisioning.states import FINDING, FindingStatus

log = structlog.get_logger(__name__)
LEASE = timedelta(seconds=180)
LONGEST = timedelta(hours=8)  # cleaning real disks takes hours
MOST_BY_ITSELF = 3  # times a fix is asked for by policy; then a person looks


# ---------------------------------------------------------------------- asking
def begin(finding: Finding, actor: User | None, *, reason: str = "") -> None:
    """Ask for the fix of a locked finding. Raises WrongStatus when one is under way."""
    FINDING.move(finding, "fix")
    now = clock.now()
    finding.fix_by = str(actor) if actor is not None else ""
    finding.fix_by_id = actor.pk if actor is not None else None
    finding.fix_began_at = finding.next_try_at = now
    finding.fix_tries += 1
    finding.acted_at, finding.lease_until, finding.detail = None, None, ""
    finding.save()
    audit.record(actor, "finding.fix_asked", finding, reason=reason, after={"fix": finding.fix})


def ask_by_policy(site: Site, *, seen_at: datetime) -> int:
    """Ask for what a look just saw and what may be done without a person; how many."""
    rules = dict(FixPolicy.objects.filter(site=None).values_list("kind", "is_automatic")) | dict(
        FixPolicy.objects.filter(site=site).values_list("kind", "is_automatic")
    )
    asked = 0
    with transaction.atomic():
        waiting = (
            Finding.objects.select_for_update(skip_locked=True)
            .filter(site=site, status=FindingStatus.OPEN, closed_at=None)
            .filter(looks__gte=recording.SURE, fix_tries__lt=MOST_BY_ITSELF, last_seen_at=seen_at)
            .exclude(fix="")
        )
        for finding in waiting:
            if rules.get(finding.kind, FIXES[finding.fix].is_safe):
                begin(finding, None)
                asked += 1
    return asked


# ---------------------------------------------------------------------- doing
def due_fixes(limit: int = 100) -> list[UUID]:
    """Fixes whose time has come and that nobody is at."""
    now = clock.now()
    return list(
        Finding.objects.filter(
            Q(lease_until=None) | Q(lease_until__lt=now),
            status=FindingStatus.FIXING,
            next_try_at__lte=now,
        )
        .order_by("next_try_at")
        .values_list("pk", flat=True)[:limit]
    )


def advance_fix(finding_id: UUID) -> None:
    """Do the next part of a fix; outside any transaction, under a lease."""
    finding = _claim(finding_id)
    if finding is None:
        return
    try:
        compute = adapters.compute_of(finding.site)
        outcome = FIXES[finding.fix].act(Work(finding, compute, _person(finding)))
    except (Transient, SiteUnreachable) as error:
        _later(finding, error.detail, seconds=30)
    except (OutsideError, AppError) as error:
        _refused(finding, error.detail)
    except Exception as error:
        log.exception("fix.crashed", finding=str(finding.pk))
        _refused(finding, f"{type(error).__name__}: {error}")
    else:
        if isinstance(outcome, Again):
            _later(finding, outcome.detail, seconds=outcome.seconds)
        else:
            _done(finding, outcome)


def _claim(finding_id: UUID) -> Finding | None:
    now = clock.now()
    with transaction.atomic():
        finding = (
            Finding.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("site", "node")
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=finding_id)
            .filter(status=FindingStatus.FIXING, next_try_at__lte=now)
            .first()
        )
        if finding is not None:
            finding.lease_until = now + LEASE
            finding.save(update_fields=["lease_until"])
    return finding


def _person(finding: Finding) -> User | None:
    if finding.fix_by_id is None:
        return None
    person: User | None = User.objects.filter(pk=finding.fix_by_id).first()
    return person


def _later(finding: Finding, detail: str, *, seconds: float) -> None:
    now = clock.now()
    if finding.fix_began_at and now - finding.fix_began_at > LONGEST:
        _refused(finding, f"given up: {detail}")
        return
    _store(finding, detail=detail, next_try_at=now + timedelta(seconds=seconds), lease_until=None)


def _done(finding: Finding, detail: str) -> None:
    with transaction.atomic():
        _store(finding, detail=detail, acted_at=clock.now(), next_try_at=None, lease_until=None)
        audit.record(
            _person(finding),
            "finding.fix_done",
            finding,
            after={"fix": finding.fix, "done": detail},
        )
        SiteLook.objects.filter(site=finding.site_id).update(due_at=clock.now())


def _refused(finding: Finding, detail: str) -> None:
    """It cannot be done like this: a person has to look."""
    with transaction.atomic():
        fresh = Finding.objects.select_for_update().get(pk=finding.pk)
        if fresh.status != FindingStatus.FIXING:
            return
        FINDING.move(fresh, "reopen")
        fresh.detail, fresh.next_try_at, fresh.lease_until = detail[:1000], None, None
        fresh.save()
        audit.record(_person(finding), "finding.fix_failed", fresh, reason=detail[:1000])


def _store(finding: Finding, **columns: Any) -> None:
    columns["detail"] = str(columns["detail"])[:1000]
    Finding.objects.filter(pk=finding.pk, status=FindingStatus.FIXING).update(**columns)
