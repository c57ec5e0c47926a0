"""Questions about what is sold and what it costs."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Prefetch, Q, QuerySet

from apps.catalog.errors import NoPrice, UnknownSku
from apps.catalog.models import Contract, Image, Offering, Price, PriceBook, PriceKind, Unit


def visible_offerings() -> QuerySet[Offering]:
    """What is on sale for whoever asks, with GPU model and images (the default image first)."""
    images = Image.objects.filter(is_retired=False).order_by("offeringimage__position", "code")
    return (
        Offering.objects.filter(retired_at=None)
        .select_related("gpu_model")
        .prefetch_related(Prefetch("images", queryset=images))
        .order_by("position", "sku")
    )


def all_offerings() -> QuerySet[Offering]:
    """Every offering, retired ones too: for the console."""
    return Offering.objects.select_related("gpu_model").order_by("position", "sku")


def offering_names() -> dict[UUID, tuple[str, str]]:
    """The English and the Korean name of every offering the asker may see, retired ones too."""
    rows = Offering.objects.values_list("id", "name", "name_ko")
    return {offering: (name, korean) for offering, name, korean in rows}


def image_names() -> dict[str, str]:
    """The name of every image by its code, retired ones too."""
    return dict(Image.objects.values_list("code", "name"))


def offering_by_sku(sku: str) -> Offering:
    """An offering on sale. Raises UnknownSku."""
    offering = visible_offerings().filter(sku=sku).first()
    if offering is None:
        raise UnknownSku(field="sku", sku=sku)
    return offering


def price_in_force(
    *, sku: str, currency: str, at: datetime, tenant: UUID | None, unit: str = Unit.GPU_HOUR
) -> Price:
    """The price of one unit at an instant: a contract beats the list, then the latest start wins.

    Without a tenant only list prices count. Raises NoPrice.
    """
    price = _in_force(currency, at, tenant, unit).filter(sku=sku).first()
    if price is None:
        raise NoPrice(field="sku", sku=sku, currency=currency, at=at, unit=unit)
    return price


def prices_in_force(
    *, currency: str, at: datetime, tenant: UUID | None, unit: str = Unit.GPU_HOUR
) -> dict[str, Price]:
    """The same for every SKU that has a price, in one query: for catalogue pages."""
    found: dict[str, Price] = {}
    for price in _in_force(currency, at, tenant, unit):
        found.setdefault(price.sku, price)
    return found


def next_list_price(*, sku: str, currency: str, at: datetime) -> Price | None:
    """The list price of a GPU-hour that follows after an instant, where one is published."""
    coming = Price.objects.filter(
        sku=sku,
        unit=Unit.GPU_HOUR,
        book__kind=PriceKind.LIST,
        book__currency=currency,
        effective_from__gt=at,
    )
    return coming.select_related("book").order_by("effective_from").first()


def _in_force(currency: str, at: datetime, tenant: UUID | None, unit: str) -> QuerySet[Price]:
    whose = Q(book__kind=PriceKind.LIST)
    if tenant is not None:
        whose |= Q(book__kind=PriceKind.CONTRACT, book__tenant=tenant)
    return (
        Price.objects.filter(whose, book__currency=currency, unit=unit, effective_from__lte=at)
        .filter(Q(effective_to=None) | Q(effective_to__gt=at))
        .select_related("book")
        .order_by("book__kind", "-effective_from")  # "contract" sorts before "list"
    )


def price_books() -> QuerySet[PriceBook]:
    """Every book the asker may see: lists first."""
    return PriceBook.objects.order_by("-kind", "code")


def list_prices(*, book: PriceBook) -> QuerySet[Price]:
    """All versions of a book, each SKU's newest first."""
    return Price.objects.filter(book=book).order_by("sku", "unit", "-effective_from")


def prices_of_sku(*, sku: str, currency: str) -> QuerySet[Price]:
    """All versions of a SKU's prices in every book of a currency."""
    return Price.objects.filter(sku=sku, book__currency=currency).select_related("book")


@dataclass(frozen=True)
class PriceSpan:
    """Time of a SKU without a price; `end` None: for ever."""

    sku: str
    unit: str
    start: datetime
    end: datetime | None


def price_gaps(*, book: PriceBook) -> list[PriceSpan]:
    """Where a book stops having a price it once had: between versions, and after the last one.

    The end of a retired offering's last price is no gap.
    """
    on_sale = set(Offering.objects.filter(retired_at=None).values_list("sku", flat=True))
    versions = Price.objects.filter(book=book).order_by("sku", "unit", "effective_from")
    return [gap for gap in gaps_between(versions) if gap.end is not None or gap.sku in on_sale]


def gaps_between(versions: Iterable[Price]) -> list[PriceSpan]:
    """The gaps in versions ordered by SKU, unit and start."""
    gaps: list[PriceSpan] = []
    last: Price | None = None
    for price in versions:
        if last is not None and (last.sku, last.unit) != (price.sku, price.unit):
            gaps += _after(last)
        elif last is not None and last.effective_to and last.effective_to < price.effective_from:
            gaps.append(PriceSpan(last.sku, last.unit, last.effective_to, price.effective_from))
        last = price
    return gaps + (_after(last) if last is not None else [])


def _after(last: Price) -> list[PriceSpan]:
    if last.effective_to is None:
        return []
    return [PriceSpan(last.sku, last.unit, last.effective_to, None)]


def images_of(sku: str) -> list[Image]:
    """The images an offering can be installed with, its default first."""
    return list(
        Image.objects.filter(offerings__sku=sku, is_retired=False).order_by(
            "offeringimage__position", "code"
        )
    )


def contracts() -> QuerySet[Contract]:
    """Every version of every contract the asker may see, newest first."""
    return Contract.objects.select_related("book").order_by("-effective_from", "-id")


def contract_versions(
    *, tenant: UUID, currency: str, since: datetime, until: datetime, as_of: datetime
) -> list[Contract]:
    """The versions in force in [since, until) that were known at `as_of`, in order."""
    return list(
        Contract.objects.filter(
            Q(effective_to=None) | Q(effective_to__gt=since),
            tenant=tenant,
            currency=currency,
            effective_from__lt=until,
            created_at__lte=as_of,
        ).order_by("effective_from")
    )


def contract_in_force(*, tenant: UUID, currency: str, at: datetime) -> Contract | None:
    """The contract of a tenant at an instant, if there is one."""
    return (
        Contract.objects.filter(
            Q(effective_to=None) | Q(effective_to__gt=at),
            tenant=tenant,
            currency=currency,
            effective_from__lte=at,
        )
        .select_related("book")
        .first()
    )
