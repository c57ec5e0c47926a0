"""Findings: opened once, counted while they are seen, closed by themselves when they are gone."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.audit import services as audit
from apps.inventory.models import Site
from apps.notices import services as notices
from apps.provisioning.engine.reconciler.picture import Picture
from apps.provisioning.engine.reconciler.rules import Difference, looked_at
from apps.provisioning.models import Finding
from apps.provisioning.states import FINDING, FindingStatus

SURE = 2  # looks; a difference seen once may be a race


@dataclass
class Tally:
    """What a look came to."""

    opened: list[Finding] = field(default_factory=list)
    seen: int = 0
    closed: int = 0
    is_unsure: bool = False  # something was seen for the first time: look again soon


def grace() -> timedelta:
    """Between two looks that count."""
    return timedelta(seconds=settings.NEOCLOUD_GRACE_SECONDS)


@transaction.atomic
def record(picture: Picture, found: Iterable[Difference]) -> Tally:
    """Keep what a look found."""
    tally = Tally()
    waiting = Finding.objects.select_for_update().filter(site=picture.site, closed_at=None)
    known = {(one.kind, one.subject): one for one in waiting.order_by("pk")}
    for difference in {(str(one.kind), one.subject): one for one in found}.values():
        finding = known.pop((str(difference.kind), difference.subject), None)
        if finding is None:
            _first_seen(picture, difference, tally)
        else:
            _seen_again(finding, difference, picture.now, tally)
    could_see = looked_at(picture)
    for finding in known.values():
        if finding.kind in could_see and finding.node_id not in picture.busy:
            _not_seen(finding, picture.now, tally)
    if tally.opened:
        tell(picture.site, tally.opened)
    return tally


def _first_seen(picture: Picture, difference: Difference, tally: Tally) -> None:
    finding = Finding.objects.create(
        site=picture.site,
        kind=difference.kind,
        subject=difference.subject[:120],
        node=difference.node,
        tenant=difference.tenant,
        service=difference.service,
        believed=difference.believed[:300],
        seen=difference.seen[:300],
        fix=difference.fix,
        looks=SURE if difference.at_once else 1,
        first_seen_at=picture.now,
        last_seen_at=picture.now,
    )
    if difference.at_once:
        _opened(finding, tally)
    else:
        tally.is_unsure = True


def _seen_again(finding: Finding, difference: Difference, now: datetime, tally: Tally) -> None:
    was_unsure = finding.looks < SURE
    if was_unsure and now - finding.last_seen_at < grace():
        tally.is_unsure = True
        return
    has_changed = finding.seen != difference.seen[:300]
    finding.looks += 1
    finding.last_seen_at = now
    finding.believed, finding.seen = difference.believed[:300], difference.seen[:300]
    finding.node, finding.fix = difference.node, difference.fix
    finding.tenant, finding.service = difference.tenant, difference.service
    if finding.status == FindingStatus.ACCEPTED and has_changed:
        FINDING.move(finding, "reopen")  # what was accepted was something else
    elif _has_failed(finding, now):
        FINDING.move(finding, "reopen")
        finding.detail = f"{finding.detail} · it is still so after the fix"[:1000]
        finding.acted_at = None
        audit.record(None, "finding.fix_failed", finding, reason=finding.detail)
    finding.save()
    tally.seen += 1
    if was_unsure:
        _opened(finding, tally)


def _has_failed(finding: Finding, now: datetime) -> bool:
    """The fix was carried out, its effect had time, and the thing is still as it was."""
    return (
        finding.status == FindingStatus.FIXING
        and finding.acted_at is not None
        and now - finding.acted_at > grace()
    )


def _opened(finding: Finding, tally: Tally) -> None:
    tally.opened.append(finding)
    audit.record(
        None,
        "finding.opened",
        finding,
        after={"kind": finding.kind, "believed": finding.believed, "seen": finding.seen},
    )


def tell(site: Site, opened: list[Finding]) -> None:
    """Tell operators once what a look opened, however much it is."""
    first = opened[0]
    notices.tell_operators(
        kind="finding.opened",
        dedup_key=f"finding:{first.pk}",
        subject=_("{site}: {count} findings, first {thing}"),
        body=_("{what}: {thing}. Expected: {believed}. Seen: {seen}."),
        link=f"/findings/{first.pk}/",
        site=site.name,
        count=len(opened),
        thing=first.subject,
        what=first.get_kind_display(),
        believed=first.believed,
        seen=first.seen,
    )


def _not_seen(finding: Finding, now: datetime, tally: Tally) -> None:
    if finding.looks < SURE:
        finding.delete()  # a race, never told to anybody
        return
    if finding.status == FindingStatus.FIXING and finding.next_try_at is not None:
        return  # on its way: the fix says when it is over
    if finding.status == FindingStatus.FIXING:
        FINDING.move(finding, "fixed")
        finding.closed_by = finding.fix_by
    elif finding.status == FindingStatus.OPEN:
        FINDING.move(finding, "vanish")
    finding.closed_at = now
    finding.save()
    tally.closed += 1
    audit.record(None, f"finding.{finding.status}", finding, reason=finding.detail)
