"""What contracts and reservations put on an invoice beside usage: discount, reservation and
minimum lines. See `docs/adr/0012-what-the-billing-policy-leaves-open.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from django.db import connection
from django.db.models import Q, QuerySet

from apps.catalog import selectors as catalog
from apps.catalog.models import Contract
from apps.core.money import ExactMoney, Money, gpu_hours_display, line_amount
from apps.core.periods import Period
from apps.invoicing import rating
from apps.invoicing.models import Document, LineKind
from apps.invoicing.rating import Window
from apps.orders.models import Reservation
from apps.orders.states import TAKES_OR_PAYS, ReservationStatus
from apps.tenancy.selectors import current_tenant

_PRESENCE = """
SELECT EXISTS (
    SELECT FROM public.catalog_contract
    WHERE tenant = %(tenant)s AND currency = %(currency)s AND effective_from < %(until)s
      AND (effective_to IS NULL OR effective_to > %(since)s)
), EXISTS (
    SELECT FROM orders_reservation
    WHERE currency = %(currency)s AND starts_at < %(until)s AND ends_at > %(since)s
)
"""


@dataclass(frozen=True, slots=True)
class Month:
    """What an invoice is made of: a period, how far it is supplied, what is known when."""

    start: datetime
    end: datetime
    supply_end: datetime
    as_of: datetime
    currency: str

    @classmethod
    def of(cls, document: Document) -> "Month":
        """The month of an invoice."""
        return cls(
            document.period_start,
            document.period_end,
            document.supply_end,
            document.as_of,
            document.currency,
        )


@dataclass(frozen=True, slots=True)
class AgreedLine:
    """A line that follows from an agreement; the columns are those of a document's line."""

    kind: LineKind
    amount: Money
    ref: str = ""
    description: str = ""
    columns: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Time of a contract with one discount: versions that follow each other and differ in
    other terms are one stretch.
    """

    period: Period
    percent: Decimal
    contracts: tuple[Contract, ...]


@dataclass(frozen=True, slots=True)
class Presence:
    """Whether the tenant has any contract or reservation that may touch a month."""

    contracts: bool
    reservations: bool


def presence_in(month: Month) -> Presence:
    """Asked in one statement, because most tenants have neither."""
    with connection.cursor() as cursor:
        cursor.execute(
            _PRESENCE,
            {
                "tenant": current_tenant().pk,
                "currency": month.currency,
                "since": month.start,
                "until": month.end,
            },
        )
        return Presence(*cursor.fetchone())


def agreed_lines(
    month: Month, *, usage: Money, usage_lines: int, presence: Presence | None = None
) -> list[AgreedLine]:
    """Discount, reservations, minimum, in the order of the policy.

    `usage` and `usage_lines` say what the month's usage lines are. A minimum is owed when the month
    is over, or by a final invoice.
    """
    presence = presence or presence_in(month)
    versions = contracts_of(month) if presence.contracts else []
    lines: list[AgreedLine] = []
    if usage_lines and (discount := _discount(month, usage, versions)):
        lines.append(discount)
    if presence.reservations:
        lines += [_reservation(month, one) for one in reservations_of(month)]
    so_far = usage + Money.total((line.amount for line in lines), month.currency)
    if minimum := _minimum(month, so_far, versions):
        lines.append(minimum)
    return lines


def contracts_of(month: Month) -> list[Contract]:
    """The versions of this tenant's contracts in force in the month, as known then."""
    return catalog.contract_versions(
        tenant=current_tenant().pk,
        currency=month.currency,
        since=month.start,
        until=month.end,
        as_of=month.as_of,
    )


def reservations_of(month: Month) -> QuerySet[Reservation]:
    """Reservations this tenant pays for in the supplied part of the month."""
    is_charged = Q(status__in=TAKES_OR_PAYS) | Q(
        status=ReservationStatus.EXPIRED, begun_at__isnull=False
    )
    return (
        Reservation.objects.filter(
            is_charged,
            currency=month.currency,
            created_at__lte=month.as_of,
            starts_at__lt=month.supply_end,
            ends_at__gt=month.start,
        )
        .exclude(ended_at__lte=month.start)
        .select_related("project")
        .order_by("starts_at", "serial")
    )


def stretches(month: Month, versions: Sequence[Contract]) -> list[Stretch]:
    """The supplied part of the month under contract, by discount."""
    found: list[Stretch] = []
    for version in versions:
        start = max(version.effective_from, month.start)
        end = min(version.effective_to or month.supply_end, month.supply_end)
        if start >= end:
            continue
        last = found[-1] if found else None
        if last and last.period.end == start and last.percent == version.discount_percent:
            joined = Period(last.period.start, end)
            found[-1] = Stretch(joined, last.percent, (*last.contracts, version))
        else:
            found.append(Stretch(Period(start, end), version.discount_percent, (version,)))
    return [stretch for stretch in found if stretch.percent]


def _discount(month: Month, usage: Money, versions: Sequence[Contract]) -> AgreedLine | None:
    """Minus the percentages of the usage inside each stretch, rounded once."""
    parts = [(stretch, _usage_in(month, stretch, usage)) for stretch in stretches(month, versions)]
    if not parts:
        return None
    exact = sum(
        (Fraction(base.amount) * Fraction(stretch.percent) / 100 for stretch, base in parts),
        Fraction(0),
    )
    contracts = [contract for stretch, _base in parts for contract in stretch.contracts]
    return AgreedLine(
        kind=LineKind.DISCOUNT,
        amount=ExactMoney(-exact, month.currency).rounded_half_up(),
        ref=contracts[-1].code,
        description=" · ".join(f"{_plain(stretch.percent)} %" for stretch, _base in parts),
        columns={
            "contract_id": contracts[-1].pk,
            "terms": {
                "stretches": [
                    {
                        "contract": str(stretch.contracts[-1]),
                        "start": stretch.period.start.isoformat(),
                        "end": stretch.period.end.isoformat(),
                        "percent": _plain(stretch.percent),
                        "usage": str(base),
                    }
                    for stretch, base in parts
                ]
            },
        },
    )


def _usage_in(month: Month, stretch: Stretch, usage: Money) -> Money:
    """What usage lines would charge of the stretch alone."""
    if (stretch.period.start, stretch.period.end) == (month.start, month.supply_end):
        return usage
    window = Window(
        as_of=month.as_of,
        since=stretch.period.start,
        until=stretch.period.end,
        currency=month.currency,
    )
    return Money(rating.total(window), month.currency)


def _reservation(month: Month, reservation: Reservation) -> AgreedLine:
    """The part of the term inside the month, used or not, at the reservation's own price."""
    ends_at = min(reservation.ended_at or reservation.ends_at, reservation.ends_at)
    start, end = max(reservation.starts_at, month.start), min(ends_at, month.supply_end)
    gpu_seconds = Period(start, end).seconds * reservation.gpus
    price = Money(reservation.unit_price, month.currency)
    return AgreedLine(
        kind=LineKind.RESERVATION,
        amount=line_amount(gpu_seconds, price),
        ref=str(reservation.pk),
        description=f"{reservation.name} · {reservation.sku} × {reservation.gpus}",
        columns={
            "service_name": reservation.name,
            "order_number": reservation.number,
            "project_id": reservation.project_id,
            "project_name": reservation.project.name,
            "contract_id": reservation.contract_id,
            "sku": reservation.sku,
            "quantity": reservation.gpus,
            "first_at": start,
            "last_at": end,
            "gpu_seconds": gpu_seconds,
            "gpu_hours": Decimal(gpu_hours_display(gpu_seconds)),
            "price_id": reservation.price_id,
            "price_kind": "fixed",
            "unit_price": reservation.unit_price,
        },
    )


def _minimum(month: Month, so_far: Money, versions: Sequence[Contract]) -> AgreedLine | None:
    """The rest up to the minimum; of a contract in force for a part of the month that part of it.

    Before the month is over only a final invoice asks for it: `supply_end` is then where it stops.
    """
    whole = Period(month.start, month.end).seconds
    parts: list[tuple[Contract, int]] = []
    for version in versions:
        end = min(version.effective_to or month.end, month.end)
        covered = Period(max(version.effective_from, month.start), end).seconds
        if version.minimum_monthly_charge is not None:
            parts.append((version, covered))
    exact = sum(
        (Fraction(one.minimum_monthly_charge or 0) * covered / whole for one, covered in parts),
        Fraction(0),
    )
    minimum = ExactMoney(exact, month.currency).rounded_half_up()
    if so_far >= minimum:
        return None
    contract = parts[-1][0]
    return AgreedLine(
        kind=LineKind.MINIMUM,
        amount=minimum - so_far,
        ref=contract.code,
        description=f"{minimum} - {so_far}",
        columns={
            "contract_id": contract.pk,
            "terms": {
                "minimum": str(minimum),
                "charged": str(so_far),
                "seconds_in_month": whole,
                "parts": [
                    {
                        "contract": str(one),
                        "minimum_monthly_charge": str(
                            Money(one.minimum_monthly_charge or Decimal(0), month.currency)
                        ),
                        "seconds": covered,
                    }
                    for one, covered in parts
                ],
            },
        },
    )


def contract_at(month: Month) -> Contract | None:
    """The contract in force when the supply of the month ends: its payment terms count."""
    versions = [one for one in contracts_of(month) if one.effective_from < month.supply_end]
    return versions[-1] if versions else None


def _plain(number: Decimal) -> str:
    return f"{number.normalize():f}"
