"""Reservations of all tenants, what each holds, and the operator's hold on them."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.console.views.orders import tenant_choices
from apps.core import filters, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.orders import selectors as orders
from apps.orders import services
from apps.orders.models import ReservationProjection
from apps.orders.states import RESERVATION, ReservationStatus
from apps.tenancy.context import tenant_by_id, tenant_context


@needs("order.view")
def reservation_list(request: HttpRequest) -> HttpResponse:
    """Reservations by status, tenant and text, newest first."""
    status = filters.choice(
        request, "status", _("Status"), _("Every status"), list(ReservationStatus.choices)
    )
    tenant = filters.choice(request, "tenant", _("Tenant"), _("Every tenant"), tenant_choices())
    text = filters.text(request, _("Number, name or SKU"))
    page = paginate(
        selectors.reservations(
            status=status.value,
            tenant=UUID(tenant.value) if tenant.value else None,
            text=text.value,
        ),
        keys=("-created_at", "-reservation"),
        cursor=request.GET.get("cursor", ""),
    )
    found = filters.Listing(_table(page.items), [status, tenant, text], page.next)
    return drawn(request, "console/reservation_list.html", {"listing": found})


@needs("order.view")
def reservation_detail(request: HttpRequest, reservation_id: UUID) -> HttpResponse:
    """One reservation: its term, the nodes it holds, who lives on them."""
    row = selectors.reservations().filter(reservation=reservation_id).first()
    if row is None:
        raise NotFound()
    context = {
        "reservation": row,
        "status": cells.reservation_badge(row),
        "terms": [
            Term(_("Tenant"), cells.tenant_link(row.tenant, row.tenant_name)),
            Term(_("Offering"), show.code(row.sku)),
            Term(_("Site"), row.site_code),
            Term(_("Servers"), row.quantity),
            Term(_("GPUs"), row.gpus),
            Term(_("From"), show.instant(row.starts_at)),
            Term(_("Until"), show.instant(row.ends_at)),
            Term(_("Placed"), show.instant(row.created_at)),
        ],
        "holds": _holds(row),
        "actions": _actions(row) if person(request).may("service.operate") else [],
    }
    return render(request, "console/reservation_detail.html", context)


@require_POST
@needs("service.operate")
def reservation_act(request: HttpRequest, reservation_id: UUID, verb: str) -> HttpResponse:
    """Suspend or resume: with a reason, in the person's name."""
    decisions = {
        "suspend": (services.suspend_reservation, _("The reservation is suspended.")),
        "resume": (services.resume_reservation, _("The reservation serves again.")),
    }
    row = orders.projected_reservation(reservation_id)
    if verb not in decisions:
        raise NotFound()
    decide, message = decisions[verb]
    with tenant_context(tenant_by_id(row.tenant)):
        decide(reservation_id=reservation_id, actor=person(request), reason=reason_of(request))
    return changed(request, reverse("console:reservation_detail", args=[reservation_id]), message)


def _table(rows: list[ReservationProjection]) -> Table:
    columns = [
        Column(_("Reservation")),
        Column(_("Status")),
        Column(_("Tenant"), hide="sm"),
        Column(_("Servers"), hide="md"),
        Column(_("GPUs"), number=True),
        Column(_("From"), hide="md"),
        Column(_("Until"), hide="sm"),
    ]
    drawn_rows = [
        Row(
            [
                show.stacked(cells.reservation_link(row), row.name),
                cells.reservation_badge(row),
                cells.tenant_link(row.tenant, row.tenant_name),  # type: ignore[attr-defined]
                show.stacked(f"{row.quantity} × {row.sku}", row.site_code),
                row.gpus,
                show.instant(row.starts_at),
                show.instant(row.ends_at),
            ]
        )
        for row in rows
    ]
    empty = Empty(_("No reservation fits"), icon="calendar")
    return Table(columns, drawn_rows, _("Reservations"), empty=empty)


def _holds(row: ReservationProjection) -> Table:
    columns = [
        Column(_("Node")),
        Column(_("Status")),
        Column(_("From"), hide="sm"),
        Column(_("Until"), hide="sm"),
        Column(_("Service")),
    ]
    names = selectors.service_names(row.tenant)
    rows = [
        Row(
            [
                cells.node_link(hold.node),
                cells.node_badge(hold.node),
                show.instant(hold.during.lower),
                show.instant(hold.during.upper),
                show.link(
                    names.get(hold.service, hold.service),
                    reverse("console:service_detail", args=[hold.service]),
                )
                if hold.service
                else _("nobody"),
            ],
            tone="" if hold.is_able else "red",
        )
        for hold in selectors.holds_of_reservation(row.pk)
    ]
    return Table(columns, rows, _("Held nodes"), empty=Empty(_("Nothing is held"), icon="server"))


def _actions(row: ReservationProjection) -> list[Action]:
    words = {
        "suspend": (
            _("Suspend"),
            _("No server can be taken from it; its capacity stays held. The customer reads the "
              "reason."),
            "danger",
        ),
        "resume": (_("Resume"), _("Servers can be taken from it again."), "primary"),
    }  # fmt: skip
    return [
        Action(verb, label, reverse("console:reservation_act", args=[row.pk, verb]), text, tone)
        for verb, (label, text, tone) in words.items()
        if RESERVATION.can(row.status, verb)
    ]
