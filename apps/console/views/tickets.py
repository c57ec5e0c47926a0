"""Tickets: work on hardware, opened, carried on and closed."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells
from apps.console.actions import reason_of
from apps.console.node_forms import TICKET_KINDS, RackForm, TicketForm, TicketUpdateForm
from apps.core import filters, show
from apps.core.answers import blame, changed, drawn
from apps.core.errors import AppError, NotFound
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory import services
from apps.inventory.models import Node, Site, Ticket

STATUSES = (("open", gettext_lazy("Open")), ("closed", gettext_lazy("Closed")))


@needs("node.view")
def ticket_list(request: HttpRequest) -> HttpResponse:
    """Tickets by status and kind, newest first."""
    chosen = [
        filters.choice(request, "status", _("Status"), _("Every status"), STATUSES),
        filters.choice(request, "kind", _("Kind"), _("Every kind"), TICKET_KINDS),
        filters.text(request, _("Node or title")),
    ]
    status, kind, text = (item.value for item in chosen)
    found = Ticket.objects.select_related("node__site")
    if status:
        found = found.filter(closed_at__isnull=status == "open")
    if kind:
        found = found.filter(category=kind)
    if text:
        found = found.filter(node__name__icontains=text) | found.filter(title__icontains=text)
    page = paginate(found, keys=("-opened_at", "-id"), cursor=request.GET.get("cursor", ""))
    listing = filters.Listing(_table(page.items), chosen, page.next)
    return drawn(request, "console/ticket_list.html", {"listing": listing})


@needs("node.view")
def ticket_detail(request: HttpRequest, ticket_id: UUID) -> HttpResponse:
    """One ticket, and how the work goes on."""
    ticket = _ticket(ticket_id)
    context: dict[str, Any] = {"ticket": ticket, "status": _badge(ticket), "terms": _terms(ticket)}
    if ticket.closed_at is None and person(request).may("node.act"):
        context["form"] = TicketUpdateForm(
            initial={name: getattr(ticket, name) for name in ("category", "action", "detail")}
        )
    return render(request, "console/ticket_detail.html", context)


@require_POST
@needs("node.act")
def ticket_open(request: HttpRequest, node_id: UUID) -> HttpResponse:
    """Begin work on a node."""
    node = Node.objects.filter(pk=node_id).first()
    if node is None:
        raise NotFound()
    form = TicketForm(request.POST)
    if form.is_valid():
        try:
            ticket = services.open_ticket(node=node, actor=person(request), **form.cleaned_data)
        except AppError as error:
            blame(form, error)
        else:
            url = reverse("console:ticket_detail", args=[ticket.pk])
            return changed(request, url, _("The ticket is open."))
    context = {"node": node, "form": form}
    return render(request, "console/ticket_open.html", context, status=422)


@require_POST
@needs("node.act")
def ticket_update(request: HttpRequest, ticket_id: UUID) -> HttpResponse:
    """Say how the work goes on."""
    ticket = _ticket(ticket_id)
    form = TicketUpdateForm(request.POST)
    if not form.is_valid():
        context = {"ticket": ticket, "status": _badge(ticket), "terms": _terms(ticket)}
        context["form"] = form
        return render(request, "console/ticket_detail.html", context, status=422)
    services.update_ticket(ticket=ticket, actor=person(request), **form.cleaned_data)
    return changed(request, reverse("console:ticket_detail", args=[ticket_id]), _("Kept."))


@require_POST
@needs("node.act")
def ticket_close(request: HttpRequest, ticket_id: UUID) -> HttpResponse:
    """End the work on a ticket, saying what was done."""
    ticket = _ticket(ticket_id)
    services.close_ticket(ticket=ticket, actor=person(request), resolution=reason_of(request))
    url = reverse("console:node_detail", args=[ticket.node_id])
    return changed(request, url, _("The ticket is closed."))


@require_POST
@needs("node.act")
def rack_act(request: HttpRequest, site_id: UUID) -> HttpResponse:
    """Cordon a whole rack, or lift the cordon of all its nodes."""
    site = Site.objects.filter(pk=site_id).first()
    if site is None:
        raise NotFound()
    racks = sorted(set(site.nodes.exclude(rack="").values_list("rack", flat=True)))
    form = RackForm(request.POST, racks=racks)
    if not form.is_valid():
        context = {"site": site, "form": form}
        return render(request, "console/rack_act.html", context, status=422)
    is_cordoned = form.cleaned_data["verb"] == "cordon"
    changed_nodes = services.cordon_rack(
        site=site,
        rack=form.cleaned_data["rack"],
        actor=person(request),
        reason=form.cleaned_data["reason"],
        is_cordoned=is_cordoned,
    )
    message = _("{count} nodes changed.").format(count=len(changed_nodes))
    return changed(request, f"{reverse('console:node_map')}?site={site.pk}", message)


def _ticket(ticket_id: UUID) -> Ticket:
    ticket = Ticket.objects.select_related("node__site").filter(pk=ticket_id).first()
    if ticket is None:
        raise NotFound()
    return ticket


def _badge(ticket: Ticket) -> Any:
    return show.badge("done", _("closed")) if ticket.closed_at else show.badge("open", _("open"))


def _table(tickets: Any) -> Table:
    kinds = dict(TICKET_KINDS)
    columns = [
        Column(_("Ticket"), wrap=True),
        Column(_("Status")),
        Column(_("Kind"), hide="md"),
        Column(_("In hand"), wrap=True, hide="md"),
        Column(_("Opened"), hide="sm"),
        Column(_("Closed"), hide="lg"),
    ]
    rows = [
        Row(
            [
                show.stacked(
                    show.link(ticket.title, reverse("console:ticket_detail", args=[ticket.pk])),
                    f"{ticket.node.name} · {ticket.node.site.name}",
                ),
                _badge(ticket),
                kinds.get(ticket.category, ticket.category),
                ticket.action or ticket.resolution or show.NOTHING,
                show.instant(ticket.opened_at),
                show.instant(ticket.closed_at),
            ]
        )
        for ticket in tickets
    ]
    return Table(columns, rows, _("Tickets"), empty=Empty(_("No tickets"), icon="tool"))


def _terms(ticket: Ticket) -> list[Term]:
    return [
        Term(_("Node"), cells.node_link(ticket.node)),
        Term(_("Site"), ticket.node.site.name),
        Term(_("Kind"), dict(TICKET_KINDS).get(ticket.category, ticket.category)),
        Term(_("What is done about it"), ticket.action or show.NOTHING),
        Term(_("More"), ticket.detail or show.NOTHING),
        Term(_("Opened"), show.instant(ticket.opened_at)),
        Term(_("Last changed"), show.instant(ticket.updated_at)),
        Term(_("Closed"), show.instant(ticket.closed_at)),
        Term(_("What was done"), ticket.resolution or show.NOTHING),
    ]
