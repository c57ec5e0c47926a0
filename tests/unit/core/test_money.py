"""Money: exact, one currency, rounded once."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core import money
from apps.core.errors import Invalid
from apps.core.money import CurrencyMismatch, Money, credit_tax, format_money, line_amount, tax

amounts = st.decimals(
    min_value=-(10**12), max_value=10**12, places=6, allow_nan=False, allow_infinity=False
)
currencies = st.sampled_from(sorted(money.MINOR_UNITS))


def krw(amount: int | str) -> Money:
    return Money.of(amount, "KRW")


def usd(amount: int | str) -> Money:
    return Money.of(amount, "USD")


@pytest.mark.parametrize("wrong", [1.5, True, "1", None])
def test_only_exact_numbers_become_money(wrong):
    with pytest.raises(TypeError):
        Money(wrong, "KRW")


@pytest.mark.parametrize("wrong", [1.5, True, "2", None])
def test_money_is_not_multiplied_by_floats(wrong):
    with pytest.raises(TypeError):
        krw(10) * wrong


def test_a_float_does_not_slip_in_through_the_literal():
    with pytest.raises(TypeError):
        Money.of(0.1, "USD")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["NaN", "Infinity", "-Infinity"])
def test_money_is_finite(wrong):
    with pytest.raises(ValueError, match="finite"):
        usd(wrong)


def test_currencies_do_not_mix():
    for act in (lambda: krw(1) + usd(1), lambda: krw(1) - usd(1), lambda: krw(1) < usd(1)):
        with pytest.raises(CurrencyMismatch):
            act()
    assert krw(1) != usd(1)


def test_money_does_not_mix_with_plain_numbers():
    with pytest.raises(TypeError):
        krw(1) + 1  # type: ignore[operator]


def test_an_unknown_currency_names_the_field_and_the_known_ones():
    with pytest.raises(Invalid) as caught:
        Money(Decimal(1), "XXX")
    assert caught.value.field == "currency"
    assert "KRW" in caught.value.detail


@pytest.mark.parametrize(
    ("amount", "currency", "text"),
    [
        ("38025", "KRW", "38025"),
        ("38025.000000", "KRW", "38025"),
        ("14803.05", "USD", "14803.05"),
        ("14803.1", "USD", "14803.10"),
        ("0", "USD", "0.00"),
        ("-0", "KRW", "0"),
        ("-0.00", "USD", "0.00"),
        ("-110880", "KRW", "-110880"),
        ("2.345", "USD", "2.345"),
        ("1E+7", "KRW", "10000000"),
    ],
)
def test_plain_text_for_files_and_programs(amount, currency, text):
    assert str(Money.of(amount, currency)) == text


def test_people_read_separators_and_a_symbol():
    assert money.format_amount(krw(38025)) == "38,025"
    assert format_money(krw(38025)) == "₩38,025"
    assert format_money(usd("14803.05")) == "$14,803.05"
    assert format_money(-krw(349)) == "-₩349"
    assert format_money(usd("14803.05"), "ko") == "US$14,803.05"


def test_minor_units_for_payment_services():
    assert krw(38025).to_minor() == 38025
    assert usd("14803.05").to_minor() == 1480305
    assert Money.from_minor(1480305, "USD") == usd("14803.05")
    with pytest.raises(ValueError, match="minor units"):
        usd("0.005").to_minor()


@pytest.mark.parametrize(
    ("amount", "rounded"), [("2.345", "2.35"), ("1.005", "1.01"), ("0.125", "0.13"), ("0.0049", 0)]
)
def test_half_a_cent_goes_away_from_zero_both_ways(amount, rounded):
    assert usd(amount).rounded_half_up() == usd(rounded)
    assert (-usd(amount)).rounded_half_up() == -usd(rounded)


def test_an_amount_comes_from_exact_seconds_not_from_shown_hours():
    seconds = 76800
    assert line_amount(seconds, krw(30000)) == krw(640000)
    assert money.gpu_hours_display(seconds) == "21.333333"


def test_shown_hours_have_six_places_rounded_half_up():
    assert money.gpu_hours_display(39580) == "10.994444"
    assert money.gpu_hours_display(-3600) == "-1.000000"
    assert money.gpu_hours_display(0) == "0.000000"


def test_tax_is_taken_once_on_the_subtotal():
    assert tax(krw(7035), Decimal("0.10")) == krw(704)
    assert tax(krw(34568), Decimal("0.10")) == krw(3457)


def test_credit_notes_line_by_line_give_back_the_tax_and_no_more():
    rate = Decimal("0.10")
    credited, taxes = krw(0), []
    for _line in range(4):
        taxes.append(credit_tax(credit=krw(-1005), credited_before=credited, rate=rate))
        credited += krw(-1005)
    assert taxes == [krw(-101), krw(-100), krw(-101), krw(-100)]
    assert Money.total(taxes, "KRW") == -tax(krw(4020), rate)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=20), st.integers(0, 30))
def test_crediting_everything_gives_back_exactly_the_invoice(lines, percent):
    rate = Decimal(percent) / 100
    credited, given_back = krw(0), krw(0)
    for line in lines:
        given_back += credit_tax(credit=krw(-line), credited_before=credited, rate=rate)
        credited -= krw(line)
    assert given_back == -tax(krw(sum(lines)), rate)


@given(amounts, amounts, currencies)
def test_sums_are_exact_and_can_be_undone(a, b, currency):
    x, y = Money(a, currency), Money(b, currency)
    assert x + y - y == x
    assert x + y == y + x
    assert x + -x == Money.zero(currency)
    assert hash(x + y - y) == hash(x)


@given(amounts, currencies)
def test_text_reads_back_as_the_same_money(amount, currency):
    value = Money(amount, currency)
    assert Money.of(str(value), currency) == value
    assert not str(value).startswith("-0") or value


@given(st.integers(-(10**10), 10**10), amounts, currencies)
def test_a_line_is_the_nearest_minor_unit_and_its_credit_the_mirror(seconds, rate, currency):
    charge = line_amount(seconds, Money(rate, currency))
    exact = Fraction(seconds, 3600) * Fraction(rate)
    unit = Fraction(1, 10 ** money.minor_places(currency))
    assert abs(Fraction(charge.amount) - exact) <= unit / 2
    assert line_amount(-seconds, Money(rate, currency)) == -charge


@pytest.mark.parametrize(
    ("value", "code"),
    [
        ("", "not_an_amount"),
        ("1,000", "not_an_amount"),
        ("1e3", "not_an_amount"),
        ("NaN", "not_an_amount"),
        ("١٢", "not_an_amount"),
        ("9" * 1000, "not_an_amount"),
        (1.5, "not_an_amount"),
        (None, "not_an_amount"),
        (True, "not_an_amount"),
        ("1.5", "too_many_decimals"),
        ("-1", "amount_out_of_range"),
        ("100000000000000", "amount_out_of_range"),
    ],
)
def test_a_bad_amount_names_the_field_and_the_rule(value, code):
    with pytest.raises(Invalid) as caught:
        money.parse_money(value, currency="KRW", field="unit_price")
    assert (caught.value.field, caught.value.code) == ("unit_price", code)
    assert "{" not in caught.value.detail


def test_good_amounts_are_read_exactly():
    assert money.parse_money(" 38025 ", currency="KRW", field="amount") == krw(38025)
    assert money.parse_money("2.345", currency="USD", field="price", places=6) == usd("2.345")
    assert money.parse_money("5.000", currency="KRW", field="amount") == krw(5)
