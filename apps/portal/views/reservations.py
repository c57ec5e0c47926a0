"""Capacity for a term: what is reserved, reserving more, ordering servers under it."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from apps.accounts import selectors as accounts
from apps.accounts.access import needs, person
from apps.catalog import selectors as catalog
from apps.core import clock
from apps.core.paging import paginate
from apps.inventory import selectors as inventory
from apps.orders import selectors, services
from apps.orders.models import Quote
from apps.orders.states import RESERVATION, ReservationStatus
from apps.portal import terms
from apps.portal.answers import cleaned, go
from apps.portal.cells import service_table
from apps.portal.forms import BookForm, TermForm, UnderForm


@require_GET
@needs("order.view")
def reservation_list(request: HttpRequest) -> HttpResponse:
    """Every reservation, newest first."""
    page = paginate(selectors.reservations(), cursor=request.GET.get("cursor", ""))
    context = {
        "table": terms.reservation_table(page.items),
        "page": page,
        "may_order": person(request).may("order.place"),
    }
    return render(request, "portal/reservation_list.html", context)


@require_http_methods(["GET", "POST"])
@needs("order.place")
def reservation_new(request: HttpRequest) -> HttpResponse:
    """Which capacity, from which day to which; a quote follows."""
    offerings = list(catalog.visible_offerings())
    choices = {
        "offerings": [(one.sku, terms.offering_words(one)) for one in offerings],
        "sites": [(site.code, terms.site_words(site)) for site in inventory.active_sites()],
    }
    if request.method == "GET":
        asked = {name: request.GET[name] for name in ("offering", "site") if name in request.GET}
        form = TermForm(initial=asked, **choices)
        return render(request, "portal/reservation_new.html", {"form": form})
    data = cleaned(TermForm(request.POST, **choices))
    made = services.quote_reservation(
        actor=person(request),
        offering_sku=data["offering"],
        site_code=data["site"],
        quantity=data["quantity"],
        starts_at=data["starts_on"],
        ends_at=data["ends_on"],
    )
    return go(request, reverse("portal:quote_detail", args=[made.pk]))


def booking_page(request: HttpRequest, made: Quote) -> HttpResponse:
    """The frozen terms of a reservation, and what else it needs; nothing is agreed yet."""
    placed = selectors.reservations().filter(quote=made.pk).first()
    if placed is not None:
        return redirect("portal:reservation_detail", placed.pk)
    form = BookForm(projects=accounts.projects_of(person(request)))
    context = {
        "quote": made,
        "form": form,
        "terms": terms.booking_terms(made),
        "months": terms.month_table(made),
        "free": terms.free_for(made),
        "is_over": made.valid_until <= clock.now(),
        "needs_approval": selectors.needs_approval(made, person(request)),
        "has_projects": bool(form.fields["project"].choices),  # type: ignore[attr-defined]
    }
    return render(request, "portal/reservation_quote.html", context)


@require_POST
@needs("order.place")
def reservation_book(request: HttpRequest, quote_id: UUID) -> HttpResponse:
    """Confirm: the quote becomes a reservation."""
    actor = person(request)
    data = cleaned(BookForm(request.POST, projects=accounts.projects_of(actor)))
    made = services.place_reservation(
        actor=actor, quote_id=quote_id, project_id=UUID(data["project"]), name=data["name"]
    )
    told = _("{number} is booked.")
    if made.status == ReservationStatus.REQUESTED:
        told = _("{number} waits for approval; its servers are held until then.")
    return go(
        request,
        reverse("portal:reservation_detail", args=[made.pk]),
        told.format(number=made.number),
    )


@require_GET
@needs("order.view")
def reservation_detail(request: HttpRequest, reservation_id: UUID) -> HttpResponse:
    """One reservation: its term, what is in use of it, servers on it, ordering under it."""
    reservation = selectors.reservation_by_id(reservation_id)
    actor = person(request)
    now = clock.now()
    is_open = selectors.open_reservations().filter(pk=reservation.pk).exists()
    used = selectors.in_use(reservation)
    context = {
        "reservation": reservation,
        "badge": terms.reservation_badge(reservation),
        "terms": terms.reservation_terms(reservation, used),
        "used": used,
        "table": service_table(selectors.services_of_reservation(reservation.pk)[:100]),
        "approval": selectors.approval_of_reservation(reservation.pk),
        "may_cancel": actor.may("order.cancel")
        and RESERVATION.can(reservation.status, "cancel")
        and reservation.starts_at > now,
        "may_order": actor.may("order.place") and is_open,
        "form": UnderForm(most=reservation.quantity),
    }
    return render(request, "portal/reservation_detail.html", context)


@require_POST
@needs("order.place")
def reservation_order(request: HttpRequest, reservation_id: UUID) -> HttpResponse:
    """Ask for the terms of servers under a reservation: a quote follows."""
    reservation = selectors.reservation_by_id(reservation_id)
    data = cleaned(UnderForm(request.POST, most=reservation.quantity))
    made = services.make_quote(
        actor=person(request),
        offering_sku=reservation.sku,
        site_code=reservation.site_code,
        quantity=data["quantity"],
        ends_at=reservation.ends_at if data["at_end"] == UnderForm.ENDS else None,
        reservation_id=reservation.pk,
    )
    return go(request, reverse("portal:quote_detail", args=[made.pk]))


@require_POST
@needs("order.cancel")
def reservation_cancel(request: HttpRequest, reservation_id: UUID) -> HttpResponse:
    """Give a reservation up before it begins."""
    made = services.cancel_reservation(
        reservation_id=reservation_id,
        actor=person(request),
        reason=request.POST.get("reason", ""),
    )
    told = _("{number} is cancelled; nothing is charged.").format(number=made.number)
    return go(request, reverse("portal:reservation_detail", args=[made.pk]), told)
