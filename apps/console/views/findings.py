"""Findings: where belief and reality differ, the one click for each, what was accepted."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.audit.models import AuditEntry
from apps.console import cells
from apps.console.actions import Action, reason_of
from apps.console.finding_words import GUIDES, RUNBOOK
from apps.console.views.runs import site_choices
from apps.core import filters, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory.models import Site
from apps.provisioning import findings, tasks
from apps.provisioning.models import Finding
from apps.provisioning.states import FINDING, FindingKind, FindingStatus
from apps.tenancy.models import Tenant

STATUSES = (("waiting", gettext_lazy("Open or being fixed")), *FindingStatus.choices)
TONES = {
    FindingStatus.OPEN: "red",
    FindingStatus.FIXING: "azure",
    FindingStatus.FIXED: "green",
    FindingStatus.GONE: "secondary",
    FindingStatus.ACCEPTED: "yellow",
}
ACTS = {
    "finding.opened": gettext_lazy("Found"),
    "finding.fix_asked": gettext_lazy("Fix asked for"),
    "finding.fix_done": gettext_lazy("Fix carried out"),
    "finding.fix_failed": gettext_lazy("Fix without success"),
    "finding.fixed": gettext_lazy("Confirmed as fixed"),
    "finding.gone": gettext_lazy("No longer seen"),
    "finding.accepted": gettext_lazy("Accepted"),
}


@needs("node.view")
def finding_list(request: HttpRequest) -> HttpResponse:
    """Findings by status, site and kind."""
    chosen = [
        filters.choice(request, "status", _("Status"), _("Every status"), STATUSES),
        filters.choice(request, "site", _("Site"), _("Every site"), site_choices()),
        filters.choice(request, "kind", _("Kind"), _("Every kind"), FindingKind.choices),
        filters.text(request, _("Node, address or identity")),
    ]
    status, site, kind, text = (item.value for item in chosen)
    page = paginate(
        findings.findings(status=status, site=UUID(site) if site else None, kind=kind, text=text),
        keys=("-last_seen_at", "-id"),
        cursor=request.GET.get("cursor", ""),
    )
    listing = filters.Listing(finding_table(page.items), chosen, page.next)
    return drawn(request, "console/finding_list.html", {"listing": listing})


@needs("node.view")
def finding_detail(request: HttpRequest, finding_id: UUID) -> HttpResponse:
    """One finding: what we believed, what was seen, what it means, what was done about it."""
    finding = findings.finding_by_id(finding_id)
    context = {
        "finding": finding,
        "status": status_badge(finding),
        "terms": _terms(finding),
        "guide": GUIDES[finding.kind],
        "runbook": reverse("console:runbook", args=[RUNBOOK]),
        "events": _event_table(finding),
        "actions": _actions(finding) if person(request).may("node.act") else [],
    }
    part = live(
        request,
        busy=finding.status == FindingStatus.FIXING,
        ended=finding.closed_at is not None,
    )
    if is_live(request):
        return live_answer(
            request, "console/finding_detail.html#live", context, part, has_actions=True
        )
    return render(request, "console/finding_detail.html", {**context, "part": part})


@require_POST
@needs("node.act")
def finding_act(request: HttpRequest, finding_id: UUID, verb: str) -> HttpResponse:
    """Begin the fix, or accept: in the person's name."""
    actor = person(request)
    if verb == "fix":
        findings.fix_finding(
            finding_id=finding_id, actor=actor, reason=request.POST.get("reason", "")[:300]
        )
        tasks.wake_fix(finding_id)
        message = _("The fix has begun; the next look at the site confirms it.")
    elif verb == "accept":
        findings.accept_finding(finding_id=finding_id, actor=actor, reason=reason_of(request))
        message = _("Accepted: it comes back when it changes.")
    else:
        raise NotFound()
    return changed(request, reverse("console:finding_detail", args=[finding_id]), message)


@require_POST
@needs("site.manage")
def site_look(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Compare a site now."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    findings.look_now(site=site, actor=person(request))
    return changed(
        request,
        reverse("console:site_detail", args=[site_id]),
        _("The site is being compared; what differs shows here in a minute."),
    )


@require_POST
@needs("site.manage")
def site_policy(request: HttpRequest, site_id: UUID, kind: str) -> HttpResponse:
    """Turn fixing without a person on or off, for one kind at one site."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    is_automatic = request.POST.get("automatic") == "1"
    findings.set_fix_policy(site=site, kind=kind, is_automatic=is_automatic, actor=person(request))
    return changed(request, reverse("console:site_detail", args=[site_id]), _("Decided."))


def status_badge(finding: Finding) -> Any:
    """How a finding stands."""
    return show.badge(
        finding.status,
        finding.get_status_display(),
        tone=TONES[FindingStatus(finding.status)],
    )


def finding_table(rows: Iterable[Finding], *, empty: Empty | None = None) -> Table:
    """Findings with what was believed, what was seen, and the one click."""
    return Table(
        [
            Column(_("Finding"), wrap=True),
            Column(_("Status")),
            Column(_("Expected"), wrap=True, hide="md"),
            Column(_("Seen"), wrap=True, hide="sm"),
            Column(_("Fix"), hide="md"),
            Column(_("Since"), hide="sm"),
        ],
        [
            Row(
                [
                    show.stacked(
                        show.link(
                            finding.get_kind_display(),
                            reverse("console:finding_detail", args=[finding.pk]),
                        ),
                        f"{finding.subject} · {finding.site.shown_name}",
                    ),
                    status_badge(finding),
                    finding.believed or show.NOTHING,
                    finding.seen or show.NOTHING,
                    _fix_word(finding),
                    show.instant(finding.first_seen_at),
                ],
                tone="red" if finding.status == FindingStatus.OPEN else "",
            )
            for finding in rows
        ],
        _("Findings"),
        empty=empty
        or Empty(
            _("No findings"),
            _("What we believe and what the sites say agree."),
            icon="circle-check",
        ),
    )


def _fix_word(finding: Finding) -> Any:
    fix = findings.fix_of(finding)
    return fix.label if fix is not None else _("a person decides")


def _terms(finding: Finding) -> list[Term]:
    owner = Tenant.objects.filter(id=finding.tenant).first() if finding.tenant else None
    owned = cells.tenant_link(owner.id, owner.name) if owner is not None else show.NOTHING
    return [
        Term(
            _("Site"),
            show.link(
                finding.site.shown_name, reverse("console:site_detail", args=[finding.site_id])
            ),
        ),
        Term(_("Node"), cells.node_link(finding.node) if finding.node else show.NOTHING),
        Term(_("About"), show.code(finding.subject)),
        Term(_("Expected"), finding.believed or show.NOTHING),
        Term(_("Seen"), finding.seen or show.NOTHING),
        Term(_("Tenant"), owned),
        Term(_("Service"), show.code(finding.service)),
        Term(_("First seen"), show.instant(finding.first_seen_at, seconds=True)),
        Term(_("Last seen"), show.instant(finding.last_seen_at, seconds=True)),
        Term(_("Looks"), finding.looks),
        Term(_("Fix"), _fix_word(finding)),
        Term(_("Fix tried"), finding.fix_tries),
        Term(_("Closed"), show.instant(finding.closed_at)),
        Term(_("Decided by"), finding.closed_by or finding.fix_by or show.NOTHING),
    ]


def _event_table(finding: Finding) -> Table:
    entries = AuditEntry.objects.filter(subject_type="finding", subject_id=str(finding.pk))
    rows = [
        Row(
            [
                show.instant(entry.at, seconds=True),
                ACTS.get(entry.action, entry.action),
                entry.reason or (entry.after or {}).get("done") or show.NOTHING,
                entry.actor_name,
            ]
        )
        for entry in entries.order_by("-id")[:50]
    ]
    columns = [
        Column(_("When")),
        Column(_("What happened")),
        Column(_("Detail"), wrap=True),
        Column(_("By")),
    ]
    return Table(columns, rows, _("History"))


def _actions(finding: Finding) -> list[Action]:
    found = []
    fix = findings.fix_of(finding)
    address = "console:finding_act"
    if fix is not None and FINDING.can(finding.status, "fix"):
        url = reverse(address, args=[finding.pk, "fix"])
        found.append(
            Action("fix", str(fix.label), url, str(fix.text), "primary", reason="optional")
        )
    if FINDING.can(finding.status, "accept"):
        url = reverse(address, args=[finding.pk, "accept"])
        text = _("It may stay as it is. It comes back when it changes.")
        found.append(Action("accept", _("Accept"), url, text, "secondary"))
    return found
