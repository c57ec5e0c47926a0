"""Price versions: only added; the one before ends where the new one begins."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import chain, count
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.catalog.errors import (
    BadValue,
    PriceExists,
    PriceGap,
    PriceInThePast,
    PriceNeedsNotice,
    PriceOverlap,
    UnknownCode,
)
from apps.catalog.models import Offering, Price, PriceBook, PriceKind, Unit
from apps.core import clock, outbox, show
from apps.core.money import PRICE_PLACES, parse_currency, parse_decimal
from apps.core.validation import check_fields

LARGEST_PRICE = Decimal(10) ** 12 - 1
YEARS = range(2000, 9000)  # what lies outside cannot be shown in every time zone


@dataclass(frozen=True)
class Version:
    """A price to be added; `effective_to` None: until the next version."""

    sku: str
    unit: str
    amount: Decimal
    effective_from: datetime
    effective_to: datetime | None = None
    code: str = ""


@transaction.atomic
def set_price(
    *,
    book: PriceBook,
    sku: str,
    amount: Decimal | str | int,
    effective_from: datetime,
    actor: Any,
    unit: str = Unit.GPU_HOUR,
    code: str = "",
) -> Price:
    """Let a price hold from a whole second on, now or later; the running version ends there.

    `amount` is for one unit, in the book's currency, with at most six decimals. A first price may
    begin in the past, where nothing can have been charged yet. Raises UnknownCode, NotAnAmount,
    TooManyDecimals, AmountOutOfRange, BadValue, PriceExists, PriceInThePast, PriceNeedsNotice
    or PriceGap.
    """
    version = Version(
        sku=sku,
        unit=unit,
        amount=parse_decimal(amount, field="amount", places=PRICE_PLACES, maximum=LARGEST_PRICE),
        effective_from=effective_from,
        code=code,
    )
    return add_version(book=book, version=version, actor=actor, may_shorten=True)


@transaction.atomic
def save_price_book(
    *,
    code: str,
    name: str,
    currency: str,
    actor: Any,
    kind: str = PriceKind.LIST,
    tenant: UUID | None = None,
) -> PriceBook:
    """Make a book or rename it.

    Its currency and its owner stay. Raises UnknownCurrency or BadValue.
    """
    parse_currency(currency)
    book = PriceBook.objects.select_for_update().filter(code=code).first()
    if book is not None:
        if (book.currency, book.kind, book.tenant) != (currency, kind, tenant):
            raise BadValue(
                field="currency",
                what="currency",
                value=currency,
                rule=_("currency, kind and tenant of a book never change; make another book"),
            )
        book.name = name
        book.save(update_fields=["name"])
    else:
        if (kind == PriceKind.CONTRACT) != (tenant is not None):
            raise BadValue(
                field="tenant",
                what="tenant",
                value=tenant or "",
                rule=_("a contract book has a tenant, a list has none"),
            )
        twin = PriceBook.objects.filter(kind=kind, currency=currency, tenant=tenant).first()
        if twin is not None:
            raise BadValue(
                field="currency",
                what="currency",
                value=currency,
                rule=_("book {code} holds these prices already; use it").format(code=twin.code),
            )
        book = PriceBook(code=code, name=name, currency=currency, kind=kind, tenant=tenant)
        check_fields(book)
        book.save()
    audit.record(actor, "price_book.saved", book, after={"name": name, "currency": currency})
    return book


def add_version(
    *,
    book: PriceBook,
    version: Version,
    actor: Any,
    may_shorten: bool,
    is_known: bool = True,
) -> Price:
    """Check a version against the ones there are, end the running one and store it.

    Locks the book. `may_shorten` also ends a running version that had an end of its own.
    `is_known=False`: customers have seen no price of this SKU yet, so none of its rises needs
    notice.
    """
    _check(version)
    book = PriceBook.objects.select_for_update().get(pk=book.pk)
    same = Price.objects.filter(book=book, sku=version.sku, unit=version.unit)
    start = version.effective_from
    existing = same.filter(effective_from=start).first()
    if existing is not None:
        raise PriceExists(
            field="effective_from",
            sku=version.sku,
            effective_from=start,
            amount=existing.amount,
        )
    running = (
        same.filter(Q(effective_to=None) | Q(effective_to__gt=start), effective_from__lt=start)
        .order_by("-effective_from")
        .first()
    )
    before = _end_running(running, version, may_shorten) if running is not None else None
    if running is None:
        _refuse_gap_before(same.filter(effective_to__lt=start), version)
    if is_known and book.kind == PriceKind.LIST:
        _refuse_sudden_rise(
            same.filter(effective_from__lt=start).order_by("-effective_from").first(), version
        )
    price = Price.objects.create(
        book=book,
        code=version.code or _free_code(book, version.sku),
        sku=version.sku,
        unit=version.unit,
        amount=version.amount,
        effective_from=start,
        effective_to=_end(same.filter(effective_from__gt=start), version),
    )
    audit.record(
        actor,
        "price.set",
        price,
        before={"amount": str(before.amount)} if before else None,
        after={
            "book": book.code,
            "unit": price.unit,
            "amount": str(price.amount),
            "effective_from": start.isoformat(),
        },
    )
    outbox.publish("price.changed", subject=price.pk, sku=price.sku, book=book.code)
    return price


def end_version(*, price: Price, at: datetime) -> None:
    """End a version that had no end.

    Raises PriceInThePast, or BadValue for an end before its start.
    """
    if at < clock.now():
        raise PriceInThePast(field="effective_to", value=at, sku=price.sku)
    if at <= price.effective_from:
        raise BadValue(
            field="effective_to",
            what="effective_to",
            value=at,
            rule=_("it must lie after the start, {start}").format(start=price.effective_from),
        )
    price.effective_to = at
    price.save(update_fields=["effective_to"])


def _check(version: Version) -> None:
    if not Offering.objects.filter(sku=version.sku).exists():
        known = ", ".join(Offering.objects.order_by("sku").values_list("sku", flat=True)) or "-"
        raise UnknownCode(field="sku", what="sku", value=version.sku, known=known)
    if version.unit not in Unit.values:
        raise UnknownCode(
            field="unit", what="unit", value=version.unit, known=", ".join(Unit.values)
        )
    for field, instant in (
        ("effective_from", version.effective_from),
        ("effective_to", version.effective_to),
    ):
        if instant is not None and (instant.tzinfo is None or instant.microsecond):
            raise BadValue(
                field=field,
                what=field,
                value=instant.isoformat(),
                rule=_("give a whole second with its offset, such as 2026-07-01T00:00:00+09:00"),
            )
        if instant is not None and instant.year not in YEARS:
            raise BadValue(
                field=field,
                what=field,
                value=instant.isoformat(),
                rule=_("its year must lie between {first} and {last}").format(
                    first=YEARS[0], last=YEARS[-1]
                ),
            )
    if version.effective_to is not None and version.effective_to <= version.effective_from:
        raise BadValue(
            field="effective_to",
            what="effective_to",
            value=version.effective_to,
            rule=_("it must lie after the start, {start}").format(start=version.effective_from),
        )


def _free_code(book: PriceBook, sku: str) -> str:
    """A code no other version of the book has, so that an invoice tells them apart."""
    base = f"{book.code}/{sku}"
    taken = set(Price.objects.filter(book=book).values_list("code", flat=True))
    numbered = (base[: 60 - len(suffix)] + suffix for suffix in map("/{}".format, count(2)))
    return next(code for code in chain([base[:60]], numbered) if code not in taken)


def _end_running(running: Price, version: Version, may_shorten: bool) -> Price:
    start = version.effective_from
    if running.effective_to is not None and not may_shorten:
        raise PriceOverlap(field="effective_from", sku=version.sku, at=start)
    if start < clock.now():
        raise PriceInThePast(field="effective_from", value=start, sku=version.sku)
    running.effective_to = start
    running.save(update_fields=["effective_to"])
    return running


def _refuse_sudden_rise(previous: Price | None, version: Version) -> None:
    """Open orders are charged the list price in force, so they are told of a rise in time."""
    if previous is None or version.amount <= previous.amount:
        return
    days = settings.NEOCLOUD_PRICE_NOTICE_DAYS
    earliest = clock.now_seconds() + timedelta(days=days)
    if version.effective_from < earliest:
        raise PriceNeedsNotice(
            field="effective_from",
            sku=version.sku,
            before=show.money(previous.amount, previous.book.currency),
            amount=show.money(version.amount, previous.book.currency),
            days=days,
            earliest=earliest,
        )


def _refuse_gap_before(earlier: Any, version: Version) -> None:
    last = earlier.order_by("-effective_to").first()
    ends_here = Price.objects.filter(
        book__in=earlier.values("book"),
        sku=version.sku,
        unit=version.unit,
        effective_to=version.effective_from,
    )
    if last is not None and not ends_here.exists():
        raise PriceGap(
            field="effective_from",
            sku=version.sku,
            start=last.effective_to,
            end=version.effective_from,
        )


def _end(later: Any, version: Version) -> datetime | None:
    following = later.order_by("effective_from").first()
    if following is None:
        return version.effective_to
    starts: datetime = following.effective_from
    if version.effective_to is not None and version.effective_to > starts:
        raise PriceOverlap(field="effective_to", sku=version.sku, at=starts)
    if version.effective_to is not None and version.effective_to < starts:
        raise PriceGap(
            field="effective_to",
            sku=version.sku,
            start=version.effective_to,
            end=starts,
        )
    return starts
