"""What can be ordered, on which terms; from the catalog to a confirmed order."""

from datetime import timedelta
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
from apps.inventory import selectors as inventory
from apps.orders import selectors as orders
from apps.orders import services
from apps.orders.services.quoting import is_booking
from apps.orders.states import OrderStatus
from apps.portal import cells, offers, terms
from apps.portal.answers import cleaned, go
from apps.portal.forms import PlaceForm, QuoteForm
from apps.portal.views.reservations import booking_page


@require_GET
@needs("catalog.view")
def offering_list(request: HttpRequest) -> HttpResponse:
    """Every offering with its price now and what is really free."""
    shown = offers.all_offers()
    return render(request, "portal/catalog.html", {"offers": shown, "charges": cells.charges()})


@require_GET
@needs("catalog.view")
def offering_detail(request: HttpRequest, sku: str) -> HttpResponse:
    """One offering: hardware, price, availability, what is charged when, and how to order it."""
    offer = offers.offer_of(sku)
    form = QuoteForm(sites=offer.site_choices, most=offer.offering.max_quantity)
    context = {
        "offer": offer,
        "next_price": offers.next_price(offer),
        "sites": offers.site_views(offer),
        "form": form,
        "charges": cells.charges(),
        "may_order": person(request).may("order.place"),
    }
    return render(request, "portal/offering.html", context)


@require_http_methods(["GET", "POST"])
@needs("order.place")
def quote(request: HttpRequest, sku: str) -> HttpResponse:
    """Ask for terms: POST makes a quote and leads to it."""
    if request.method == "GET":
        return redirect("portal:offering", sku)
    offering = catalog.offering_by_sku(sku)
    sites = [(site.code, site.name) for site in inventory.active_sites()]
    data = cleaned(QuoteForm(request.POST, sites=sites, most=offering.max_quantity))
    made = services.make_quote(
        actor=person(request),
        offering_sku=sku,
        site_code=data["site"],
        quantity=data["quantity"],
        starts_at=data["starts_at"],
        ends_at=data["ends_at"],
        accepts_recall=data["accepts_recall"],
    )
    return go(request, reverse("portal:quote_detail", args=[made.pk]))


@require_GET
@needs("order.place")
def quote_detail(request: HttpRequest, quote_id: UUID) -> HttpResponse:
    """The frozen terms, and what else the order needs; nothing is agreed yet."""
    actor = person(request)
    made = orders.quote_by_id(quote_id)
    if is_booking(made):
        return booking_page(request, made)
    placed = orders.orders().filter(quote=made.pk).first()
    if placed is not None:
        return redirect("portal:order_detail", placed.pk)
    offering = catalog.offering_by_sku(made.sku)
    form = PlaceForm(
        quote=made,
        projects=accounts.projects_of(actor),
        images=offering.images.all(),
        keys=accounts.ssh_keys_of(actor),
    )
    context = {
        "quote": made,
        "offering": offering,
        "form": form,
        "terms": [*cells.quote_terms(made), *terms.extra_terms(made)],
        "choices": terms.choices_for(made),
        "is_over": made.valid_until <= clock.now(),
        "charges": cells.charges(),
        "needs_approval": orders.needs_approval(made, actor),
        "has_projects": bool(form.fields["project"].choices),  # type: ignore[attr-defined]
    }
    return render(request, "portal/quote.html", context)


@require_POST
@needs("order.place")
def place(request: HttpRequest, quote_id: UUID) -> HttpResponse:
    """Confirm: the quote becomes an order."""
    actor = person(request)
    made = orders.quote_by_id(quote_id)
    data = cleaned(
        PlaceForm(
            request.POST,
            quote=made,
            projects=accounts.projects_of(actor),
            images=catalog.offering_by_sku(made.sku).images.all(),
            keys=accounts.ssh_keys_of(actor),
        )
    )
    order = services.place_order(
        actor=actor,
        quote_id=made.pk,
        project_id=UUID(data["project"]),
        name=data["name"],
        image_code=data["image"],
        ssh_key_ids=[UUID(key) for key in data.get("ssh_keys", [])],
        ssh_public_keys=data["pasted"].splitlines(),
        if_unavailable=data["if_unavailable"],
        patience=timedelta(days=data["queue_days"]) if data["queue_days"] else None,
    )
    told = _("{number} is placed.")
    if order.status == OrderStatus.PLACED:
        told = _("{number} is placed and waits for approval.")
    elif order.status == OrderStatus.SCHEDULED:
        told = _("{number} is scheduled.")
    told = told.format(number=order.number)
    return go(request, reverse("portal:order_detail", args=[order.pk]), told)
