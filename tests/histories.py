"""Random histories of one tenant, repeatable by their seed: prices, contracts, reservations,
services with live, imported, late and corrected facts, resizes, suspensions. Run inside a tenant.
"""

import random
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from apps.orders.models import Service, ServiceVersion
from apps.orders.states import ReservationStatus, ServiceState
from apps.tenancy.context import platform_context
from apps.tenancy.models import Tenant
from tests.builders import a_contract, a_fact, a_price, a_reservation, a_service, an_order

ZONES = ("Asia/Seoul", "America/Los_Angeles", "Europe/Berlin", "UTC", "Australia/Lord_Howe")
SKUS = ("sku-a", "sku-b")
STATES = (
    ServiceState.ACTIVE,
    ServiceState.ACTIVE,
    ServiceState.ACTIVE,
    ServiceState.STOPPED,
    ServiceState.SUSPENDED,
    ServiceState.FAILED,
)
BEGIN = datetime(2026, 2, 25, tzinfo=UTC)  # March has clock changes in the zones above
DAYS = 70
MONTHS = ("2026-02", "2026-03", "2026-04", "2026-05")


@dataclass(frozen=True)
class Closing:
    """A month and the instant its invoice is made at."""

    period: str
    at: datetime


def a_history(seed: int, tenant: Tenant) -> list[Closing]:
    """Write the history of that seed and say when its months are closed."""
    dice = random.Random(seed)
    currency = dice.choice(("KRW", "USD"))
    with platform_context():
        tenant.currency, tenant.billing_timezone = currency, dice.choice(ZONES)
        tenant.vat_rate = dice.choice((Decimal("0.10"), Decimal("0.0825"), Decimal(0)))
        tenant.save(update_fields=["currency", "billing_timezone", "vat_rate"])
    for sku in SKUS:
        _prices(dice, sku, currency)
    _contracts(dice, currency)
    for _one in range(dice.choice((0, 0, 1, 2))):
        _reservation(dice, currency)
    for _one in range(dice.randint(1, 4)):
        _service(dice, currency)
    closed = BEGIN + timedelta(days=4)
    closings = []
    for number, period in enumerate(MONTHS):
        month_end = datetime(2026, 3 + number, 1, 12, tzinfo=UTC)
        closed = max(month_end, closed) + timedelta(hours=dice.randint(1, 200))
        closings.append(Closing(period, closed))
    return closings


def _instant(dice: random.Random, *, last: int = DAYS) -> datetime:
    return BEGIN + timedelta(seconds=dice.randrange(last * 86400))


def _amount(dice: random.Random, currency: str) -> Decimal:
    if currency == "KRW":
        return Decimal(dice.randint(0, 9_999_999)) / 1000
    return Decimal(dice.randint(0, 9_999_999)) / 1_000_000


def _prices(dice: random.Random, sku: str, currency: str) -> None:
    edges = sorted(_instant(dice) for _one in range(dice.randint(0, 2)))
    starts: list[Any] = [datetime(2025, 1, 1, tzinfo=UTC), *edges]
    for number, (start, end) in enumerate(zip(starts, [*edges, None], strict=True)):
        a_price(
            _amount(dice, currency), sku=sku, start=start, end=end, code=f"{sku}-L{number}",
            currency=currency,
        )  # fmt: skip
    if dice.random() < 0.4:
        start, end = sorted((_instant(dice), _instant(dice)))
        if start < end:
            a_price(
                _amount(dice, currency), sku=sku, start=start, end=end, code=f"{sku}-C",
                kind="contract", currency=currency,
            )  # fmt: skip


def _contracts(dice: random.Random, currency: str) -> None:
    edges = sorted({_instant(dice) for _one in range(dice.randint(0, 3))})
    ends = [*edges[1:], None] if edges else []
    for start, end in zip(edges, ends, strict=True):
        if dice.random() < 0.2:
            continue
        minimum = dice.choice(
            (None, Decimal(0), _amount(dice, currency).quantize(Decimal(1)) * 500)
        )
        a_contract(
            start=start,
            end=end,
            currency=currency,
            discount_percent=Decimal(dice.choice((0, 5, 5, 12.5))),
            minimum_monthly_charge=minimum,
        )


def _reservation(dice: random.Random, currency: str) -> None:
    start, end = sorted((_instant(dice), _instant(dice)))
    if start == end:
        return
    status = dice.choice((ReservationStatus.ACTIVE, ReservationStatus.EXPIRED, "cancelled"))
    ended = start + (end - start) // 2 if dice.random() < 0.2 else None
    a_reservation(
        sku=dice.choice(SKUS),
        gpus_each=dice.choice((1, 4, 8, 12)),
        starts_at=start,
        ends_at=end,
        ended_at=ended and ended.replace(microsecond=0),
        begun_at=start,
        status=status,
        currency=currency,
        unit_price=_amount(dice, currency),
    )


def _service(dice: random.Random, currency: str) -> None:
    fixed = dice.random() < 0.2
    order = an_order(
        sku=dice.choice(SKUS),
        gpus_each=dice.choice((1, 2, 8, 13)),
        billing_basis=dice.choice(("allocated", "running")),
        currency=currency,
        unit_price=_amount(dice, currency),
        price_rule="fixed" if fixed else "in_force",
        ends_at=_instant(dice) if fixed and dice.random() < 0.5 else None,
    )
    service = a_service(order=order)
    versions = dice.choice((1, 1, 1, 2))
    if versions == 2:
        _resize(dice, service)
    facts: list[Any] = []
    for _one in range(dice.randint(1, 9)):
        _fact(dice, service, facts, versions)


def _resize(dice: random.Random, service: Service) -> None:
    for version, gpus in ((1, service.gpus), (2, dice.choice((4, 16)))):
        sku = service.sku if version == 1 else dice.choice(SKUS)
        ServiceVersion.objects.create(service=service, version=version, sku=sku, gpus=gpus)


def _fact(dice: random.Random, service: Service, facts: list[Any], versions: int) -> None:
    kind = dice.choice(("live", "live", "live", "imported", "corrected"))
    start = _instant(dice)
    length = timedelta(seconds=dice.choice((0, 1, 59, 3600, 86_399, 400_000)))
    is_late = dice.random() < 0.3
    recorded = start + timedelta(days=dice.randint(0, 50) if is_late else 0)
    columns: dict[str, Any] = {"version": dice.randint(1, versions)}
    state: str = dice.choice(STATES)
    end = start + length if kind == "imported" or (dice.random() < 0.3 and kind != "live") else None
    if kind == "corrected":
        free = [fact for fact in facts if not hasattr(fact, "is_replaced")]
        if not free:
            return
        target = dice.choice(free)
        target.is_replaced = True
        recorded = max(recorded, target.recorded_at)
        columns |= {"supersedes": target}
        state = dice.choice(("", ServiceState.ACTIVE, ServiceState.FAILED))
    facts.append(a_fact(service, state, start, end, recorded=recorded, **columns))
