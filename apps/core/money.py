"""Money: exact amounts with a currency, and the roundings the billing policy allows."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Context, Decimal, Inexact, InvalidOperation
from fractions import Fraction
from typing import overload

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Invalid

MINOR_UNITS = {"EUR": 2, "JPY": 0, "KRW": 0, "USD": 2}
PRICE_PLACES = 6
MAX_DIGITS = 14  # digits before the dot that a NUMERIC(20, 6) column holds
SECONDS_PER_HOUR = 3600

_SYMBOLS = {"EUR": "€", "JPY": "¥", "KRW": "₩", "USD": "$"}
_SYMBOLS_KO = {**_SYMBOLS, "JPY": "JP¥", "USD": "US$"}
_EXACT = Context(prec=400, traps=[Inexact, InvalidOperation])
_PLAIN_NUMBER = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


class CurrencyMismatch(ValueError):
    """Two currencies met in one sum: always a mistake of the program."""


class UnknownCurrency(Invalid):
    """A currency the product does not sell in."""

    code = "unknown_currency"
    message = _("{value} is not a currency we sell in. Choose one of {known}.")


class NotAnAmount(Invalid):
    """Something that is no plain decimal number stands where money is expected."""

    code = "not_an_amount"
    message = _("Write the amount in plain digits with a dot for decimals, such as 38025 or 14.5.")


class TooManyDecimals(Invalid):
    """More decimals than the currency or the price has."""

    code = "too_many_decimals"
    message = _("{value} has {given} decimals; at most {allowed} are allowed here.")


class AmountOutOfRange(Invalid):
    """An amount below or above what is allowed."""

    code = "amount_out_of_range"
    message = _("{value} is out of range: it must be from {minimum} to {maximum}.")


def _exact_decimal(value: object, what: str) -> Decimal:
    """`value` as Decimal when it is exact by nature; TypeError for floats and the like."""
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"{what} must be an int or a Decimal, not {type(value).__name__}")
    return Decimal(value)


@dataclass(frozen=True, slots=True)
class Money:
    """An exact amount in one currency; prices and unrounded sums may have more decimals.

    Floats raise TypeError, mixed currencies raise CurrencyMismatch, an unknown currency raises
    UnknownCurrency. Minus zero does not exist.
    """

    amount: Decimal
    currency: str

    def __post_init__(self) -> None:
        amount = _exact_decimal(self.amount, "an amount of money")
        if not amount.is_finite():
            raise ValueError(f"an amount of money must be finite, not {amount}")
        if self.currency not in MINOR_UNITS:
            raise UnknownCurrency(
                field="currency", value=self.currency, known=", ".join(MINOR_UNITS)
            )
        object.__setattr__(self, "amount", abs(amount) if amount.is_zero() else amount)

    @classmethod
    def of(cls, amount: int | str | Decimal, currency: str) -> Money:
        """Money from a literal of the program; `parse_money` reads what people write."""
        return cls(
            Decimal(amount) if isinstance(amount, str) else _exact_decimal(amount, "an amount"),
            currency,
        )

    @classmethod
    def zero(cls, currency: str) -> Money:
        """Nothing, in that currency."""
        return cls(Decimal(0), currency)

    @classmethod
    def from_minor(cls, units: int, currency: str) -> Money:
        """The reverse of `to_minor`: 1480305 USD cents are 14803.05."""
        return cls(_EXACT.scaleb(Decimal(units), -minor_places(currency)), currency)

    @classmethod
    def total(cls, items: Iterable[Money], currency: str) -> Money:
        """The sum of the items, zero for none."""
        result = cls.zero(currency)
        for item in items:
            result += item
        return result

    def __add__(self, other: Money) -> Money:
        return Money(_EXACT.add(self.amount, self._same(other)), self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(_EXACT.subtract(self.amount, self._same(other)), self.currency)

    def __neg__(self) -> Money:
        return Money(self.amount.copy_negate(), self.currency)

    def __abs__(self) -> Money:
        return Money(self.amount.copy_abs(), self.currency)

    def __bool__(self) -> bool:
        return not self.amount.is_zero()

    @overload
    def __mul__(self, factor: int | Decimal) -> Money: ...
    @overload
    def __mul__(self, factor: Fraction) -> ExactMoney: ...
    def __mul__(self, factor: int | Decimal | Fraction) -> Money | ExactMoney:
        if isinstance(factor, Fraction):
            return ExactMoney(Fraction(self.amount) * factor, self.currency)
        return Money(
            _EXACT.multiply(self.amount, _exact_decimal(factor, "a factor")), self.currency
        )

    __rmul__ = __mul__

    def __lt__(self, other: Money) -> bool:
        return self.amount < self._same(other)

    def __le__(self, other: Money) -> bool:
        return self.amount <= self._same(other)

    def __gt__(self, other: Money) -> bool:
        return self.amount > self._same(other)

    def __ge__(self, other: Money) -> bool:
        return self.amount >= self._same(other)

    def __str__(self) -> str:
        """Plain digits for CSV and API: `38025`, `14803.05`, never `-0`.

        Decimals beyond the minor unit are kept, not rounded: a price of 2.345 USD says `2.345`.
        """
        places = max(minor_places(self.currency), _decimals(self.amount))
        return f"{self.amount:.{places}f}"

    def rounded_half_up(self) -> Money:
        """This amount in whole minor units, halves away from zero."""
        return ExactMoney(Fraction(self.amount), self.currency).rounded_half_up()

    def to_minor(self) -> int:
        """The amount in minor units, as payment services want it.

        Raises ValueError for an amount that is not a whole number of minor units.
        """
        scaled = _EXACT.scaleb(self.amount, minor_places(self.currency))
        units = int(scaled)
        if units != scaled:
            raise ValueError(f"{self} {self.currency} is not a whole number of minor units")
        return units

    def _same(self, other: object) -> Decimal:
        if not isinstance(other, Money):
            raise TypeError(f"money goes with money, not with {type(other).__name__}")
        if other.currency != self.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency} do not mix")
        return other.amount


@dataclass(frozen=True, slots=True)
class ExactMoney:
    """A product that need not have an end in decimals; it is only there to be rounded once."""

    amount: Fraction
    currency: str

    def __add__(self, other: ExactMoney) -> ExactMoney:
        if other.currency != self.currency:
            raise CurrencyMismatch(f"{self.currency} and {other.currency} do not mix")
        return ExactMoney(self.amount + other.amount, self.currency)

    def rounded_half_up(self) -> Money:
        """The amount in whole minor units, halves away from zero."""
        places = minor_places(self.currency)
        return Money.from_minor(_half_away_from_zero(self.amount * 10**places), self.currency)


def minor_places(currency: str) -> int:
    """Decimals of the currency's minor unit. Raises UnknownCurrency."""
    try:
        return MINOR_UNITS[currency]
    except KeyError:
        raise UnknownCurrency(
            field="currency", value=currency, known=", ".join(MINOR_UNITS)
        ) from None


def line_amount(gpu_seconds: int, rate: Money) -> Money:
    """What GPU-seconds cost at `rate` per GPU-hour, rounded once to the minor unit."""
    return (rate * Fraction(gpu_seconds, SECONDS_PER_HOUR)).rounded_half_up()


def gpu_hours_display(gpu_seconds: int) -> str:
    """GPU-hours to show, six places, half-up. Never multiply them."""
    millionths = _half_away_from_zero(Fraction(gpu_seconds * 10**6, SECONDS_PER_HOUR))
    return f"{_EXACT.scaleb(Decimal(millionths), -6):.6f}"


def tax(subtotal: Money, rate: Decimal) -> Money:
    """Tax on a whole invoice, rounded once; `rate` 0.10 is 10 %."""
    return (subtotal * rate).rounded_half_up()


def credit_tax(*, credit: Money, credited_before: Money, rate: Decimal) -> Money:
    """Tax of one credit note of an invoice that was credited `credited_before` already.

    Tax on all credited so far, rounded, minus the tax credited before: crediting a whole
    invoice in parts gives back exactly its tax. Credits are negative.
    """
    return tax(credited_before + credit, rate) - tax(credited_before, rate)


def format_amount(money: Money) -> str:
    """The amount with thousands separators and without its currency: `38,025`, `14,803.05`."""
    places = max(minor_places(money.currency), _decimals(money.amount))
    return f"{money.amount:,.{places}f}"


def format_money(money: Money, lang: str = "en") -> str:
    """The amount as people read it: `₩38,025`, `$14,803.05`; Korean readers see `US$`."""
    symbols = _SYMBOLS_KO if lang.lower().startswith("ko") else _SYMBOLS
    sign = "-" if money.amount < 0 else ""
    return f"{sign}{symbols[money.currency]}{format_amount(abs(money))}"


def parse_currency(value: object, *, field: str = "currency") -> str:
    """A currency code somebody sent. Raises UnknownCurrency naming the field."""
    if isinstance(value, str) and value in MINOR_UNITS:
        return value
    raise UnknownCurrency(field=field, value=value, known=", ".join(MINOR_UNITS))


def parse_decimal(
    value: object,
    *,
    field: str,
    places: int,
    minimum: Decimal = Decimal(0),
    maximum: Decimal = Decimal(10) ** MAX_DIGITS - 1,
) -> Decimal:
    """A plain decimal number somebody sent.

    Takes text, int and Decimal; floats are refused because they are not exact. Raises Invalid
    naming the field and the rule: plain digits, at most `places` decimals, from `minimum` to
    `maximum`.
    """
    number = _read_number(value, field)
    if _decimals(number) > places:
        raise TooManyDecimals(field=field, value=value, given=_decimals(number), allowed=places)
    if not minimum <= number <= maximum:
        raise AmountOutOfRange(field=field, value=value, minimum=minimum, maximum=maximum)
    return number


def parse_money(
    value: object,
    *,
    currency: str,
    field: str,
    places: int | None = None,
    minimum: Decimal = Decimal(0),
) -> Money:
    """An amount somebody sent, in a known currency.

    `places` is the minor unit unless given (prices have six). Raises Invalid naming the field.
    """
    known = parse_currency(currency)
    allowed = minor_places(known) if places is None else places
    return Money(parse_decimal(value, field=field, places=allowed, minimum=minimum), known)


def _read_number(value: object, field: str) -> Decimal:
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        number = Decimal(value)
        if number.is_finite():
            return number
    elif isinstance(value, str):
        text = value.strip()
        if len(text) <= 2 * MAX_DIGITS and _PLAIN_NUMBER.fullmatch(text):
            return Decimal(text)
    raise NotAnAmount(field=field, value=value)


def _decimals(number: Decimal) -> int:
    """Decimals that carry something: 2.3400 has two."""
    exponent = number.normalize(_EXACT).as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def _half_away_from_zero(value: Fraction) -> int:
    size = (2 * abs(value.numerator) + value.denominator) // (2 * value.denominator)
    return size if value >= 0 else -size
