"""Price books: what each SKU costs from when until when, and adding a version."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any
from uuid import UUID

from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs, person
from apps.catalog import selectors as catalog
from apps.catalog import services
from apps.catalog.models import Price, PriceBook, Unit
from apps.core import clock, show
from apps.core.answers import blame, changed
from apps.core.errors import AppError, NotFound
from apps.core.tables import Column, Empty, Row, Table
from apps.finance import cells, selectors
from apps.finance.forms import PriceForm
from apps.invoicing import previews
from apps.tenancy.models import Tenant


@dataclass(frozen=True)
class Timeline:
    """The versions of one SKU's price, newest first."""

    sku: str
    unit: str
    table: Table


@needs("catalog.view")
def price_books(request: HttpRequest) -> HttpResponse:
    """The list prices of each currency, and the contracts."""
    columns = [
        Column(_("Price book")),
        Column(_("Kind")),
        Column(_("Tenant"), hide="sm"),
        Column(_("Currency")),
        Column("SKU", number=True),
        Column(_("Versions"), number=True),
    ]
    rows = [
        Row(
            [
                show.stacked(
                    show.link(book.name, reverse("finance:price_book", args=[book.pk])),
                    show.code(book.code),
                ),
                book.get_kind_display(),
                book.tenant_name or _("everybody"),
                book.currency,
                book.skus,
                book.versions,
            ]
        )
        for book in selectors.books()
    ]
    empty = Empty(
        _("No price books"), _("They come with the catalogue file on the console."), icon="tag"
    )
    table = Table(columns, rows, _("Price books"), empty=empty)
    return render(request, "finance/price_books.html", {"table": table})


@needs("catalog.view")
def price_book(request: HttpRequest, book_id: UUID) -> HttpResponse:
    """A book with every version of its prices, and the form of a new one."""
    return _page(request, _book(book_id))


@needs("price.manage")
def price_add(request: HttpRequest, book_id: UUID) -> HttpResponse:
    """Add a version: first what it would end is shown, then it is kept."""
    book = _book(book_id)
    form = PriceForm(request.POST or None, skus=_skus(book))
    if request.method != "POST" or not form.is_valid():
        return _page(request, book, form, status=422 if request.method == "POST" else 200)
    versions = list(catalog.list_prices(book=book))
    known = list(catalog.prices_of_sku(sku=form.cleaned_data["sku"], currency=book.currency))
    keep = request.POST.get("keep") == "1"
    try:
        with transaction.atomic():
            price = services.set_price(
                book=book,
                sku=form.cleaned_data["sku"],
                unit=form.cleaned_data["unit"],
                amount=form.cleaned_data["amount"],
                effective_from=form.instant,
                code=form.cleaned_data["code"],
                actor=person(request),
            )
            if not keep:
                transaction.set_rollback(True)
    except AppError as error:
        blame(form, error)
        return _page(request, book, form, status=422)
    if keep:
        url = f"{reverse('finance:price_book', args=[book.pk])}#row-{price.pk}"
        return changed(request, url, _("The new price is kept."))
    ends, follows = selectors.running_at(
        versions, sku=price.sku, unit=price.unit, at=price.effective_from
    )
    preview = {
        "price": price,
        "amount": show.money(price.amount, book.currency),
        "ends": ends,
        "ends_amount": show.money(ends.amount, book.currency) if ends else "",
        "follows": follows,
        "effects": _effect_table(price, known),
    }
    return _page(request, book, form, preview=preview)


def _effect_table(price: Price, known: Sequence[Price]) -> Table:
    """Who pays the new price, and how much more or less."""
    columns = [
        Column(_("Tenant")),
        Column(_("GPUs"), number=True),
        Column(_("Now"), number=True, hide="sm"),
        Column(_("Then"), number=True, hide="sm"),
        Column(_("Difference"), number=True),
    ]
    rows = [
        Row(
            [
                cells.tenant_link(one.tenant.pk, one.tenant.name),
                one.gpus,
                show.money(one.before) if one.before else show.NOTHING,
                show.money(one.after),
                show.money(one.difference),
            ]
        )
        for one in previews.effects_of_price(price=price, before=known)
    ]
    empty = Empty(_("Nobody uses this SKU at that price now"), icon="users")
    return Table(columns, rows, _("For a month of 730 hours, before tax"), empty=empty)


def _page(
    request: HttpRequest,
    book: PriceBook,
    form: PriceForm | None = None,
    *,
    preview: dict[str, Any] | None = None,
    status: int = 200,
) -> HttpResponse:
    now = clock.now()
    versions = list(catalog.list_prices(book=book))
    tenant = Tenant.objects.filter(pk=book.tenant).first() if book.tenant else None
    if form is None and person(request).may("price.manage"):
        form = PriceForm(skus=_skus(book))
    context = {
        "book": book,
        "book_tenant": tenant,
        "timelines": [
            Timeline(sku, str(Unit(unit).label), _version_table(book, list(group), now))
            for (sku, unit), group in groupby(versions, key=lambda one: (one.sku, one.unit))
        ],
        "gaps": _gap_table(book),
        "form": form if person(request).may("price.manage") else None,
        "preview": preview,
    }
    return render(request, "finance/price_book.html", context, status=status)


def _book(book_id: UUID) -> PriceBook:
    book = PriceBook.objects.filter(pk=book_id).first()
    if book is None:
        raise NotFound()
    return book


def _skus(book: PriceBook) -> list[tuple[str, str]]:
    offerings = {one.sku: show.local(one, "name") for one in catalog.all_offerings()}
    known = Price.objects.filter(book=book).order_by("sku").values_list("sku", flat=True).distinct()
    names = offerings | {sku: offerings.get(sku, sku) for sku in known}
    return [(sku, f"{sku} · {name}") for sku, name in names.items()]


def _version_table(book: PriceBook, versions: Sequence[Price], now: Any) -> Table:
    columns = [
        Column(_("Valid from")),
        Column(_("Valid until")),
        Column(_("Price"), number=True),
        Column(_("Status")),
    ]
    rows = [
        Row(
            [
                show.instant(price.effective_from, seconds=True),
                show.instant(price.effective_to, seconds=True) if price.effective_to else _("open"),
                show.stacked(show.money(price.amount, book.currency), show.code(price.code)),
                cells.standing(price, now),
            ],
            id=str(price.pk),
        )
        for price in versions
    ]
    return Table(columns, rows, _("Versions"))


def _gap_table(book: PriceBook) -> Table | None:
    gaps = catalog.price_gaps(book=book)
    if not gaps:
        return None
    units = dict(Unit.choices)
    columns = [Column("SKU"), Column(_("Unit")), Column(_("From")), Column(_("Until"))]
    rows = [
        Row(
            [
                show.code(gap.sku),
                units.get(Unit(gap.unit), gap.unit),
                show.instant(gap.start, seconds=True),
                show.instant(gap.end, seconds=True) if gap.end else _("open"),
            ],
            tone="red",
        )
        for gap in gaps
    ]
    return Table(columns, rows, _("Time without a price"))
