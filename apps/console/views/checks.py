"""“Validate this site”: the report of a check by component, its trial, the history of checks."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells
from apps.core import show
from apps.core.answers import changed
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory.models import Site
from apps.provisioning import services as provisioning
from apps.provisioning.models import SiteCheck
from apps.provisioning.validation.rows import ITEMS


@require_POST
@needs("site.manage")
def site_validate(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Ask the site now: does it answer, may we, does it clean; with a trial when asked to."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    with_trial = request.POST.get("trial") == "1"
    check = provisioning.validate_site(site=site, actor=person(request), with_trial=with_trial)
    message = _("Asked; the trial goes on by itself.") if with_trial else _("Asked.")
    return changed(request, reverse("console:check_detail", args=[check.pk]), message)


@needs("node.view")
def check_detail(request: HttpRequest, check_id: UUID) -> HttpResponse:
    """What was asked of each component, what came, how long it took, and the way out."""
    check = SiteCheck.objects.select_related("site", "node").filter(pk=check_id).first()
    if check is None:
        raise NotFound()
    context = {
        "check": check,
        "site": check.site,
        "status": check_badge(check),
        "terms": _terms(check),
        "table": _row_table(check),
    }
    part = live(request, busy=bool(check.stage), ended=not check.stage)
    if is_live(request):
        return live_answer(request, "console/check_detail.html#live", context, part)
    return render(request, "console/check_detail.html", {**context, "part": part})


def check_badge(check: SiteCheck) -> Any:
    """How a check stands."""
    if check.stage:
        return show.badge("running", _("trial: {stage}").format(stage=ITEMS[check.stage].label))
    if check.is_good:
        return show.badge("ok", _("good"))
    return show.badge("failed", _("not good"))


def check_table(checks: Any) -> Table:
    """The checks of a site, newest first."""
    columns = [
        Column(_("When")),
        Column(_("Result")),
        Column(_("Not good"), number=True, hide="sm"),
        Column(_("Trial"), hide="sm"),
        Column(_("Took"), number=True, hide="md"),
        Column(_("Asked by"), hide="md"),
    ]
    rows = [
        Row(
            [
                show.link(
                    show.instant(check.started_at),
                    reverse("console:check_detail", args=[check.pk]),
                ),
                check_badge(check),
                sum(row["ok"] is False for row in check.rows),
                cells.node_link(check.node) if check.node else show.NOTHING,
                show.duration(check.ended_at - check.started_at)
                if check.ended_at
                else show.NOTHING,
                check.actor or _("the engine"),
            ]
        )
        for check in checks
    ]
    empty = Empty(_("Not checked yet"), _("Ask it before you sell there."), icon="circle-check")
    return Table(columns, rows, _("Checks"), empty=empty)


def _terms(check: SiteCheck) -> list[Term]:
    took = show.duration(check.ended_at - check.started_at) if check.ended_at else show.NOTHING
    return [
        Term(_("Asked"), show.instant(check.started_at, seconds=True)),
        Term(_("By"), check.actor or _("the engine")),
        Term(_("Took"), took),
        Term(_("Tried on"), cells.node_link(check.node) if check.node else show.NOTHING),
    ]


def _row_table(check: SiteCheck) -> Table:
    columns = [
        Column(_("Component"), hide="sm"),
        Column(_("What was asked"), wrap=True),
        Column(_("Result")),
        Column(_("Answer"), wrap=True),
        Column(_("Seconds"), number=True, hide="md"),
        Column(_("Way out"), wrap=True, hide="md"),
    ]
    verdicts = {
        True: show.badge("ok", _("good")),
        False: show.badge("failed", _("not good")),
        None: show.badge("unknown", _("nobody can say")),
    }
    rows = []
    for one in check.rows:
        item = ITEMS[one["item"]]
        rows.append(
            Row(
                [
                    item.component,
                    show.stacked(item.label, one["about"]) if one["about"] else item.label,
                    verdicts[one["ok"]],
                    one["detail"] or show.NOTHING,
                    f"{one['seconds']:.2f}",
                    item.way_out if one["ok"] is not True else show.NOTHING,
                ],
                tone="red" if one["ok"] is False else "",
            )
        )
    return Table(columns, rows, _("What the site said"))
