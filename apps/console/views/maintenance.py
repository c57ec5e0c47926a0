"""Planned work on nodes: made, announced to the customers it touches, ended."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.console.node_forms import MaintenanceForm
from apps.core import filters, show
from apps.core.answers import blame, changed, drawn
from apps.core.errors import AppError, Invalid, NotFound
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory import selectors as inventory
from apps.inventory import services
from apps.inventory.models import Maintenance, Node, Site

STATUSES = (("open", gettext_lazy("Planned or under way")), ("ended", gettext_lazy("Over")))


@needs("node.view")
def maintenance_list(request: HttpRequest) -> HttpResponse:
    """Planned work, latest first."""
    status = filters.choice(request, "status", _("Status"), _("Every status"), STATUSES)
    found = inventory.maintenances()
    if status.value:
        found = found.filter(ended_at__isnull=status.value == "open")
    page = paginate(found, keys=("-starts_at", "-id"), cursor=request.GET.get("cursor", ""))
    listing = filters.Listing(_table(page.items), [status], page.next)
    context = {
        "listing": listing,
        "sites": Site.objects.order_by("name") if person(request).may("node.act") else [],
    }
    return drawn(request, "console/maintenance_list.html", context)


@needs("node.act")
def maintenance_plan(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Plan work on nodes of a site; nobody is told yet."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    form = MaintenanceForm(request.POST or None, initial={"nodes": request.GET.get("node", "")})
    if request.method == "POST" and form.is_valid():
        given = dict(form.cleaned_data)
        try:
            nodes = _nodes(site, given.pop("nodes"))
            work = services.plan_maintenance(site=site, nodes=nodes, actor=person(request), **given)
        except AppError as error:
            blame(form, error)
        else:
            url = reverse("console:maintenance_detail", args=[work.pk])
            return changed(request, url, _("Planned. Announce it to the customers it touches."))
    status = 422 if form.errors else 200
    context = {"site": site, "form": form}
    return render(request, "console/maintenance_plan.html", context, status=status)


@needs("node.view")
def maintenance_detail(request: HttpRequest, maintenance_id: UUID) -> HttpResponse:
    """One piece of work: its nodes, whom it touches, who was told."""
    work = inventory.maintenances().filter(pk=maintenance_id).first()
    if work is None:
        raise NotFound()
    context = {
        "work": work,
        "status": _badge(work),
        "terms": _terms(work),
        "nodes": cells.node_table(
            selectors.with_holders(selectors.nodes().filter(maintenances=work.pk)).order_by("name")
        ),
        "actions": _actions(work) if person(request).may("node.act") else [],
    }
    return render(request, "console/maintenance_detail.html", context)


@require_POST
@needs("node.act")
def maintenance_act(request: HttpRequest, maintenance_id: UUID, verb: str) -> HttpResponse:
    """Announce the work, or end it."""
    work = Maintenance.objects.filter(pk=maintenance_id).first()
    if work is None:
        raise NotFound()
    if verb == "announce":
        told = services.announce_maintenance(maintenance=work, actor=person(request))
        message = _("Announced to the customers of {count} services.").format(count=told)
    elif verb == "end":
        services.end_maintenance(maintenance=work, actor=person(request), reason=reason_of(request))
        message = _("The work is over. Lift the cordons of its nodes when they are ready.")
    else:
        raise NotFound()
    return changed(request, reverse("console:maintenance_detail", args=[maintenance_id]), message)


def _nodes(site: Site, text: str) -> list[Node]:
    """The nodes somebody named. Raises Invalid naming those there are none of."""
    words = [line.strip() for line in text.splitlines() if line.strip()]
    racks = {word.removeprefix("rack:") for word in words if word.startswith("rack:")}
    names = {word for word in words if not word.startswith("rack:")}
    found = list(
        (site.nodes.filter(rack__in=racks) | site.nodes.filter(name__in=names))
        .exclude(status="retired")
        .order_by("pk")
    )
    missing = names - {node.name for node in found}
    missing |= {f"rack:{rack}" for rack in racks - {node.rack for node in found}}
    if missing:
        raise Invalid(
            _("Not at this site: {names}."), field="nodes", names=", ".join(sorted(missing))[:300]
        )
    return found


def _badge(work: Maintenance) -> Any:
    if work.ended_at:
        return show.badge("done", _("over"))
    if work.announced_at:
        return show.badge("waiting", _("announced"), tone="azure")
    return show.badge("draft", _("not announced"))


def _table(works: Any) -> Table:
    columns = [
        Column(_("Work"), wrap=True),
        Column(_("Status")),
        Column(_("Begins")),
        Column(_("Ends"), hide="sm"),
        Column(_("Nodes"), number=True, hide="md"),
        Column(_("Services"), number=True, hide="md"),
    ]
    rows = [
        Row(
            [
                show.stacked(
                    show.link(work.title, reverse("console:maintenance_detail", args=[work.pk])),
                    work.site.name,
                ),
                _badge(work),
                show.instant(work.starts_at),
                show.instant(work.ends_at),
                work.node_count,
                work.service_count,
            ]
        )
        for work in works
    ]
    empty = Empty(_("No planned work"), icon="calendar")
    return Table(columns, rows, _("Planned work"), empty=empty)


def _terms(work: Any) -> list[Term]:
    return [
        Term(
            _("Site"),
            show.link(work.site.name, reverse("console:site_detail", args=[work.site_id])),
        ),
        Term(_("Begins"), show.instant(work.starts_at)),
        Term(_("Ends"), show.instant(work.ends_at)),
        Term(_("Kind"), _("retirement") if work.is_retirement else _("planned work")),
        Term(_("Nodes"), work.node_count),
        Term(_("Services it touches"), work.service_count),
        Term(_("Announced"), show.instant(work.announced_at)),
        Term(_("Over"), show.instant(work.ended_at)),
        Term(_("Notes for operators"), work.detail or show.NOTHING),
    ]


def _actions(work: Maintenance) -> list[Action]:
    if work.ended_at:
        return []
    address = "console:maintenance_act"
    again = _("Tells whom it has not told yet; each customer learns of its own service only.")
    return [
        Action(
            "announce",
            _("Announce"),
            reverse(address, args=[work.pk, "announce"]),
            again,
            "primary",
            reason="",
        ),
        Action(
            "end",
            _("End the work"),
            reverse(address, args=[work.pk, "end"]),
            _("Who was told learns that it is over, or that it is cancelled."),
            "warning",
        ),
    ]
