"""Sites: whether they answer, sell and clean; pausing them, importing their nodes."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.catalog.reports import CHANGED, CREATED
from apps.console import cells, reports, selectors
from apps.console.actions import Action, reason_of
from apps.console.views.capacity import capacity_table
from apps.console.views.checks import check_table
from apps.console.views.findings import finding_table
from apps.core import show
from apps.core.answers import changed
from apps.core.errors import NotFound
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.inventory.states import SITE
from apps.provisioning import findings
from apps.provisioning import services as provisioning
from apps.provisioning.states import FindingKind


@needs("node.view")
def site_list(request: HttpRequest) -> HttpResponse:
    """All sites with what they hold and how they answer."""
    columns = [
        Column(_("Site")),
        Column(_("Status")),
        Column(_("Answers")),
        Column(_("Cleans by itself"), hide="md"),
        Column(_("Nodes"), number=True, hide="sm"),
        Column(_("Available"), number=True, hide="md"),
        Column(_("GPUs"), number=True, hide="sm"),
        Column(_("Open runs"), number=True, hide="md"),
        Column(_("Last seen"), hide="sm"),
    ]
    rows = []
    for site in selectors.sites_with_counts():
        counts: Any = site  # annotated with its counts
        rows.append(
            Row(
                [
                    show.stacked(_link(site), show.code(site.code)),
                    show.badge(site.status, site.get_status_display()),
                    answers_badge(site),
                    cleans_badge(site),
                    counts.node_count,
                    counts.free_nodes,
                    counts.gpu_total or 0,
                    counts.open_runs or 0,
                    show.instant(site.last_seen_at),
                ],
                tone="red" if site.failing_since else "",
            )
        )
    table = Table(
        columns,
        rows,
        _("Sites"),
        empty=Empty(
            _("No sites yet"),
            _("A site is a place with servers behind one infrastructure endpoint."),
            icon="building",
        ),
    )
    return render(
        request,
        "console/site_list.html",
        {"table": table, "may_manage": person(request).may("site.manage")},
    )


@needs("node.view")
def site_detail(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """One site: connection, cleaning, capacity, addresses, open runs."""
    site = _site(site_id)
    rows = [row for row in selectors.capacity() if row.site_id == site.pk]
    context = {
        "site": site,
        "status": show.badge(site.status, site.get_status_display()),
        "terms": _terms(site),
        "capacity": capacity_table(selectors.with_queue(rows, site=site.pk)),
        "pools": _pool_table(site, may_edit=person(request).may("site.manage")),
        "runs": cells.run_table(
            selectors.runs(site=site.pk).filter(ended_at=None).order_by("-created_at", "-id")[:20]
        ),
        "look": _look_terms(site),
        "findings": finding_table(
            findings.findings(status="waiting", site=site.pk)[:20],
        ),
        "policies": _policy_rows(site),
        "checks": check_table(
            site.checks.select_related("node").order_by("-started_at", "-id")[:5]
        ),
        "actions": _actions(site) if person(request).may("site.manage") else [],
        "may_manage": person(request).may("site.manage"),
    }
    return render(request, "console/site_detail.html", context)


@require_POST
@needs("site.manage")
def site_act(request: HttpRequest, site_id: UUID, verb: str) -> HttpResponse:
    """Pause or resume a site: with a reason, in the person's name."""
    site = _site(site_id)
    if verb == "pause":
        inventory.pause_site(site=site, actor=person(request), reason=reason_of(request))
        message = _("The site is paused: nothing new is sold there.")
    elif verb == "resume":
        inventory.resume_site(site=site, actor=person(request), reason=reason_of(request))
        message = _("The site sells again.")
    else:
        raise NotFound()
    return changed(request, reverse("console:site_detail", args=[site_id]), message)


@require_POST
@needs("site.manage")
def site_import(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Read the site's nodes and show the difference; keep it only when told to."""
    site = _site(site_id)
    dry_run = request.POST.get("keep") != "1"
    report = provisioning.discover_site(site=site, actor=person(request), dry_run=dry_run)
    context = {
        "site": site,
        "dry_run": dry_run,
        "figures": reports.figures(report),
        "table": reports.table(report),
        "report": report,
        "has_changes": bool(report.counts[CREATED] or report.counts[CHANGED]),
    }
    return render(request, "console/site_import.html", context)


def answers_badge(site: Site) -> Any:
    """Whether the site answers."""
    if site.failing_since:
        return show.badge("failed", _("does not answer"))
    if site.last_seen_at is None:
        return show.badge("unknown", _("never asked"))
    return show.badge("ok", _("answers"))


def cleans_badge(site: Site) -> Any:
    """Whether the site cleans servers by itself; without it nothing is sold."""
    if site.cleans_automatically:
        return show.badge("ok", _("yes"))
    return show.badge("failed", _("no: nothing is sold"))


def _site(site_id: UUID) -> Site:
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    return site


def _link(site: Site) -> Any:
    return show.link(site.shown_name, reverse("console:site_detail", args=[site.pk]))


def _terms(site: Site) -> list[Term]:
    return [
        Term(_("Answers"), answers_badge(site), site.last_error),
        Term(_("Cleans by itself"), cleans_badge(site)),
        Term(_("Last seen"), show.instant(site.last_seen_at, seconds=True)),
        Term(_("Failing since"), show.instant(site.failing_since)),
        Term(_("Driver"), site.driver),
        Term(_("Endpoint"), show.code(site.endpoint)),
        Term(_("Signs in as"), show.code(site.username)),
        Term(_("Servers report to"), show.code(site.call_home_url)),
        Term(_("Works at once on"), site.concurrency),
        Term(_("Between two customers"), _("{n} min").format(n=site.turn_around_minutes)),
        Term(_("Reached from here"), _("yes") if site.is_routable else _("no")),
        Term(_("Time zone"), site.timezone),
        Term(_("Hardware"), _("simulated") if site.is_simulated else _("real")),
        Term(_("Reason of its status"), site.status_reason or show.NOTHING),
    ]


def _look_terms(site: Site) -> list[Term]:
    look = findings.look_of(site)
    seen, done = look.counts, _("{seconds} s").format(seconds=look.seconds)
    return [
        Term(_("Last compared"), show.instant(look.looked_at, seconds=True), look.error),
        Term(_("Took"), done if look.seconds is not None else show.NOTHING),
        Term(_("Next"), show.instant(look.due_at)),
        Term(
            _("Looked at"),
            _("{nodes} nodes, {claims} claims, {ports} ports, {volumes} volumes").format(
                **{name: seen.get(name, 0) for name in ("nodes", "claims", "ports", "volumes")}
            ),
        ),
        Term(
            _("In that look"),
            _("{opened} opened, {closed} closed, {fixes} fixes begun").format(
                **{name: seen.get(name, 0) for name in ("opened", "closed", "fixes")}
            ),
        ),
    ]


def _policy_rows(site: Site) -> list[dict[str, Any]]:
    """Every kind with a fix, and whether a person is asked first."""
    labels = dict(FindingKind.choices)
    return [
        {
            "kind": kind,
            "label": labels[FindingKind(kind)],
            "is_automatic": is_automatic,
            "url": reverse("console:site_policy", args=[site.pk, kind]),
        }
        for kind, is_automatic in findings.policies(site).items()
    ]


def _pool_table(site: Site, *, may_edit: bool) -> Table:
    columns = [
        Column(_("Pool")),
        Column(_("Network")),
        Column(_("Addresses"), wrap=True),
        Column(_("Leased"), number=True),
        Column("VLAN"),
    ]
    rows = []
    for pool in selectors.address_pools(site):
        counts: Any = pool  # annotated with the addresses leased now
        rows.append(
            Row(
                [
                    show.link(pool.name, reverse("console:pool_edit", args=[site.pk, pool.pk]))
                    if may_edit
                    else pool.name,
                    show.stacked(show.code(pool.prefix), pool.gateway),
                    f"{pool.first_address} – {pool.last_address}",
                    counts.leased,
                    f"{pool.vlan_first}–{pool.vlan_last}",
                ]
            )
        )
    empty = Empty(
        _("No address pools"), _("Without one no server can be handed over."), icon="network"
    )
    return Table(columns, rows, _("Address pools"), empty=empty)


def _actions(site: Site) -> list[Action]:
    words = {
        "pause": (
            _("Pause"),
            _("Nothing new is sold here, and runs of this site stand still until it is resumed."),
            "danger",
        ),
        "resume": (_("Resume"), _("The site sells again, and its runs go on."), "primary"),
    }
    return [
        Action(verb, label, reverse("console:site_act", args=[site.pk, verb]), text, tone)
        for verb, (label, text, tone) in words.items()
        if SITE.can(site.status, verb)
    ]
