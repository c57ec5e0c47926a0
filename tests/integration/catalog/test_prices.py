"""Prices in force, new versions, and who may see which."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from apps.audit.models import AuditEntry
from apps.catalog import selectors, services
from apps.catalog.errors import (
    BadValue,
    NoPrice,
    PriceExists,
    PriceGap,
    PriceInThePast,
    PriceNeedsNotice,
    UnknownCode,
    UnknownSku,
)
from apps.catalog.models import Offering, Price, PriceBook
from apps.core import clock
from apps.core.errors import Invalid
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.inventory.builders import an_offering

SKU = "bm.h200.8x"
SEOUL = ZoneInfo("Asia/Seoul")
JANUARY = datetime(2026, 1, 1, tzinfo=SEOUL)


@pytest.fixture
def book(platform: None) -> PriceBook:
    """The won list with a price of 5400 since January."""
    an_offering(SKU)
    book = services.save_price_book(code="list-krw", name="List", currency="KRW", actor=None)
    services.set_price(book=book, sku=SKU, amount=Decimal(5400), effective_from=JANUARY, actor=None)
    return book


def soon(days: int = 1) -> datetime:
    return clock.now_seconds() + timedelta(days=days)


def force(at: datetime, tenant: Any = None, currency: str = "KRW") -> Decimal:
    return selectors.price_in_force(sku=SKU, currency=currency, at=at, tenant=tenant).amount


def test_a_price_holds_from_its_start_to_its_end(book: PriceBook) -> None:
    change = soon()
    services.set_price(book=book, sku=SKU, amount="5000.5", effective_from=change, actor=None)
    assert force(JANUARY) == 5400
    assert force(change - timedelta(seconds=1)) == 5400
    assert force(change) == Decimal("5000.5")
    assert selectors.price_gaps(book=book) == []


def test_without_a_price_the_sku_the_currency_and_the_instant_are_named(book: PriceBook) -> None:
    with pytest.raises(NoPrice, match=r"No KRW price for bm\.h200\.8x .* 2025-12-31 23:59:59 KST"):
        force(JANUARY - timedelta(seconds=1))
    with pytest.raises(NoPrice, match="No USD price"):
        force(JANUARY, currency="USD")


def test_a_contract_beats_a_newer_list_price_for_its_tenant_only(
    book: PriceBook, acme: Any, globex: Any
) -> None:
    with platform_context():
        contract = services.save_price_book(
            code="acme", name="Acme", currency="KRW", kind="contract", tenant=acme.pk, actor=None
        )
        services.set_price(
            book=contract, sku=SKU, amount="4800", effective_from=JANUARY, actor=None
        )
        change = soon(31)
        services.set_price(book=book, sku=SKU, amount="6000", effective_from=change, actor=None)
        assert force(change, acme.pk) == 4800
        assert force(change, globex.pk) == 6000
        assert force(change) == 6000
        prices = selectors.prices_in_force(currency="KRW", at=change, tenant=acme.pk)
        assert prices[SKU].amount == 4800
    with tenant_context(acme):
        assert force(change, acme.pk) == 4800
        assert selectors.price_books().count() == 2
    with tenant_context(globex):
        assert not PriceBook.objects.filter(kind="contract").exists()
        assert not Price.objects.filter(amount=4800).exists()
        assert force(change, acme.pk) == 6000


def test_a_change_is_audited_with_both_amounts(book: PriceBook) -> None:
    services.set_price(book=book, sku=SKU, amount="5000", effective_from=soon(), actor=None)
    entry = AuditEntry.objects.filter(action="price.set").order_by("-id")[0]
    assert entry.before == {"amount": "5400.000000"}
    assert entry.after is not None
    assert entry.after["amount"] == "5000"


def test_a_list_price_rises_no_sooner_than_its_notice(book: PriceBook) -> None:
    with pytest.raises(PriceNeedsNotice) as told:
        services.set_price(book=book, sku=SKU, amount="5401", effective_from=soon(29), actor=None)
    assert told.value.field == "effective_from"
    assert told.value.facts["earliest"] == pytest.approx(soon(30), abs=timedelta(minutes=1))
    assert "₩5,400 and may rise to ₩5,401 no sooner than" in told.value.detail
    assert "30 days before" in told.value.detail
    assert Price.objects.get().effective_to is None
    services.set_price(book=book, sku=SKU, amount="5401", effective_from=soon(31), actor=None)


def test_each_version_gets_a_code_of_its_own(book: PriceBook) -> None:
    for days in (1, 2):
        services.set_price(
            book=book, sku=SKU, amount=str(100 - days), effective_from=soon(days), actor=None
        )
    codes = list(Price.objects.order_by("effective_from").values_list("code", flat=True))
    first = f"{book.code}/{SKU}"
    assert codes == [first, f"{first}/2", f"{first}/3"]


def test_ending_a_price_first_is_no_way_round_the_notice(book: PriceBook) -> None:
    Price.objects.update(effective_to=soon(1))
    ends = Price.objects.get().effective_to
    with pytest.raises(PriceNeedsNotice):
        services.set_price(book=book, sku=SKU, amount="5401", effective_from=ends, actor=None)
    assert Price.objects.count() == 1


def test_the_operator_sets_how_long_the_notice_is(book: PriceBook, settings: Any) -> None:
    settings.NEOCLOUD_PRICE_NOTICE_DAYS = 0
    services.set_price(book=book, sku=SKU, amount="5401", effective_from=soon(), actor=None)
    assert force(soon(1)) == 5401


def test_a_contract_price_is_agreed_and_needs_no_notice(book: PriceBook, acme: Any) -> None:
    with platform_context():
        contract = services.save_price_book(
            code="acme", name="Acme", currency="KRW", kind="contract", tenant=acme.pk, actor=None
        )
        for amount, start in (("4800", JANUARY), ("9000", soon())):
            services.set_price(
                book=contract, sku=SKU, amount=amount, effective_from=start, actor=None
            )
        assert force(soon(1), acme.pk) == 9000


def test_a_version_between_two_ends_where_the_next_begins(book: PriceBook) -> None:
    services.set_price(book=book, sku=SKU, amount="5000", effective_from=soon(30), actor=None)
    middle = services.set_price(
        book=book, sku=SKU, amount="5200", effective_from=soon(10), actor=None
    )
    assert middle.effective_to == Price.objects.get(amount=5000).effective_from
    assert force(soon(31)) == 5000


@pytest.mark.parametrize(
    ("change", "error", "says"),
    [
        ({"effective_from": datetime(2026, 2, 1, tzinfo=UTC)}, PriceInThePast, "from now on"),
        ({"effective_from": JANUARY}, PriceExists, "later start"),
        ({"effective_from": JANUARY.replace(microsecond=1)}, BadValue, "whole second"),
        ({"effective_from": JANUARY.replace(tzinfo=None)}, BadValue, "offset"),
        ({"effective_from": JANUARY.replace(year=1)}, BadValue, "between 2000 and 8999"),
        ({"effective_from": JANUARY.replace(year=9999)}, BadValue, "between 2000 and 8999"),
        ({"amount": "-1"}, Invalid, "from 0 to"),
        ({"amount": "1.0000001"}, Invalid, "at most 6"),
        ({"amount": "1000000000000"}, Invalid, "999999999999"),
        ({"amount": 1.5}, Invalid, "plain digits"),
        ({"amount": "NaN"}, Invalid, "plain digits"),
        ({"sku": "bm.none"}, UnknownCode, "Known: bm.h200.8x"),
        ({"unit": "gpu_day"}, UnknownCode, "gpu_hour"),
    ],
)
def test_a_bad_price_is_refused_and_nothing_changes(
    book: PriceBook, change: dict[str, Any], error: type[Exception], says: str
) -> None:
    given: dict[str, Any] = {"sku": SKU, "amount": "5000", "effective_from": soon()} | change
    with pytest.raises(error, match=says):
        services.set_price(book=book, actor=None, **given)
    assert Price.objects.get().effective_to is None


def test_a_new_version_leaves_no_gap_after_one_that_ended(book: PriceBook) -> None:
    price = Price.objects.get()
    price.effective_to = soon(1)
    price.save(update_fields=["effective_to"])
    (gap,) = selectors.price_gaps(book=book)
    assert (gap.sku, gap.start, gap.end) == (SKU, price.effective_to, None)
    with pytest.raises(PriceGap, match="start the later one sooner"):
        services.set_price(book=book, sku=SKU, amount="1", effective_from=soon(5), actor=None)
    services.set_price(
        book=book, sku=SKU, amount="1", effective_from=price.effective_to, actor=None
    )
    assert selectors.price_gaps(book=book) == []


def test_the_database_itself_refuses_two_prices_at_a_time_and_a_changed_amount(
    book: PriceBook,
) -> None:
    price = Price.objects.get()
    with pytest.raises(IntegrityError), transaction.atomic():
        Price.objects.create(
            book=book, code="x", sku=SKU, amount=1, effective_from=JANUARY + timedelta(days=1)
        )
    with pytest.raises(DatabaseError), transaction.atomic():
        Price.objects.filter(pk=price.pk).update(amount=1)


def test_a_book_keeps_its_currency_and_stays_the_only_one(book: PriceBook) -> None:
    with pytest.raises(BadValue, match="never change"):
        services.save_price_book(code="list-krw", name="List", currency="USD", actor=None)
    with pytest.raises(BadValue, match="list-krw holds these"):
        services.save_price_book(code="other", name="List", currency="KRW", actor=None)
    with pytest.raises(Invalid, match="BTC"):
        services.save_price_book(code="btc", name="List", currency="BTC", actor=None)


def test_a_retired_offering_is_sold_no_more(book: PriceBook) -> None:
    assert selectors.offering_by_sku(SKU).sku == SKU
    for _again in range(2):
        services.retire_offering(sku=SKU, actor=None, reason="sold out")
    with pytest.raises(UnknownSku, match="no offering bm"):
        selectors.offering_by_sku(SKU)
    assert AuditEntry.objects.filter(action="offering.retired").count() == 1
    with pytest.raises(UnknownSku):
        services.retire_offering(sku="bm.none", actor=None)


def test_an_offering_for_one_tenant_is_hidden_from_the_others(
    platform: None, acme: Any, globex: Any
) -> None:
    with platform_context():
        an_offering(SKU)
        services.save_offering(sku=SKU, actor=None, is_for_all=False, audience=["acme"])
        assert selectors.visible_offerings().count() == 1
    with tenant_context(acme):
        assert [o.sku for o in selectors.visible_offerings()] == [SKU]
    with tenant_context(globex):
        assert not selectors.visible_offerings()


def test_lists_ask_a_constant_number_of_questions(
    book: PriceBook, django_assert_num_queries: Any
) -> None:
    for number in range(5):
        an_offering(f"bm.more.{number}")
    with django_assert_num_queries(2):
        assert [o.gpu_model.code for o in selectors.visible_offerings() if not o.images.all()]
    with django_assert_num_queries(1):
        assert selectors.prices_in_force(currency="KRW", at=JANUARY, tenant=None)
    assert Offering.objects.count() == 6
