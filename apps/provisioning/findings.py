"""What people do about findings, and the questions about them."""

from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import NotFound
from apps.inventory.models import Site
from apps.provisioning.engine.reconciler import fixing, looking
from apps.provisioning.engine.reconciler.fixes import FIXES, Fix
from apps.provisioning.engine.reconciler.recording import SURE
from apps.provisioning.errors import NoFix, ReasonMissing
from apps.provisioning.models import Finding, FixPolicy, SiteLook
from apps.provisioning.states import FINDING, FindingKind, FindingStatus


# ---------------------------------------------------------------------- questions
def findings(
    *, status: str = "", site: UUID | None = None, kind: str = "", text: str = ""
) -> QuerySet[Finding]:
    """Findings that two looks agree on, newest first; `status` may also be `waiting`."""
    found = Finding.objects.filter(looks__gte=SURE).select_related("site", "node")
    if status == "waiting":
        found = found.filter(status__in=(FindingStatus.OPEN, FindingStatus.FIXING), closed_at=None)
    elif status:
        found = found.filter(status=status)
    if site:
        found = found.filter(site=site)
    if kind:
        found = found.filter(kind=kind)
    if text:
        found = found.filter(subject__icontains=text)
    return found.order_by("-last_seen_at", "-id")


def finding_by_id(finding_id: UUID) -> Finding:
    """One finding. Raises NotFound."""
    found = findings().filter(pk=finding_id).first()
    if found is None:
        raise NotFound()
    return found


def look_of(site: Site) -> SiteLook:
    """The last comparison of a site; an empty one where there was none yet."""
    return SiteLook.objects.filter(site=site).first() or SiteLook(site=site, due_at=clock.now())


def fix_of(finding: Finding) -> Fix | None:
    """What the button does; None where only a person can tell."""
    return FIXES.get(finding.fix)


def policies(site: Site | None) -> dict[str, bool]:
    """Which kinds are fixed without a person: as decided for the site, else for all, else as is
    safe.
    """
    by_default = {str(kind): any_safe(str(kind)) for kind in FindingKind}
    rows = list(FixPolicy.objects.filter(Q(site=None) | Q(site=site)))
    rows.sort(key=lambda row: row.site_id is not None)
    return by_default | {row.kind: row.is_automatic for row in rows}


def any_safe(kind: str) -> bool:
    """Is there a fix of this kind that is safe without a person?"""
    return kind in SAFE_KINDS


SAFE_KINDS = (
    FindingKind.POWER,
    FindingKind.ORPHAN_ADDRESS,
    FindingKind.LESSEE,
    FindingKind.ORPHAN_CLAIM,
)


# ---------------------------------------------------------------------- acts
def _locked(finding_id: UUID) -> Finding:
    found = Finding.objects.select_for_update().filter(pk=finding_id, looks__gte=SURE).first()
    if found is None:
        raise NotFound()
    return found


@transaction.atomic
def fix_finding(*, finding_id: UUID, actor: User, reason: str = "") -> Finding:
    """Begin the one fix of a finding; the job does it and a later look confirms it.

    Raises NotFound, NoFix or WrongStatus.
    """
    finding = _locked(finding_id)
    if finding.fix not in FIXES:
        raise NoFix(subject=finding.subject)
    fixing.begin(finding, actor, reason=reason)
    return finding


@transaction.atomic
def accept_finding(*, finding_id: UUID, actor: User, reason: str) -> Finding:
    """It may stay as it is; it comes back when it changes. Raises ReasonMissing or WrongStatus."""
    if not reason.strip():
        raise ReasonMissing(field="reason")
    finding = _locked(finding_id)
    FINDING.move(finding, "accept")
    finding.closed_by, finding.detail = str(actor), reason.strip()[:1000]
    finding.save(update_fields=["status", "closed_by", "detail"])
    audit.record(actor, "finding.accepted", finding, reason=reason)
    return finding


@transaction.atomic
def look_now(*, site: Site, actor: User) -> None:
    """Let the site be compared at once."""
    looking.hurry(site.pk)
    audit.record(actor, "site.look_asked", site)


@transaction.atomic
def set_fix_policy(*, site: Site | None, kind: str, is_automatic: bool, actor: User) -> FixPolicy:
    """Decide whether a kind of finding is fixed without a person, at a site or everywhere."""
    if kind not in FindingKind.values:
        raise NotFound(field="kind")
    policy = FixPolicy.objects.filter(site=site, kind=kind).first()
    before: dict[str, Any] | None = None
    if policy is not None:
        before = {"is_automatic": policy.is_automatic}
    policy = policy or FixPolicy(site=site, kind=kind)
    policy.is_automatic = is_automatic
    policy.save()
    subject = site if site is not None else policy
    audit.record(
        actor,
        "fix_policy.set",
        subject,
        before=before,
        after={"kind": kind, "is_automatic": is_automatic},
    )
    return policy
