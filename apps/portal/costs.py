"""What this month costs so far: the invoice's own figures, or the reason why there are none."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from apps.core.money import Money
from apps.core.periods import billing_month, month_of
from apps.invoicing import rating
from apps.invoicing import selectors as invoicing
from apps.invoicing.errors import NoPrice
from apps.invoicing.rating import Window
from apps.invoicing.selectors import Cost
from apps.tenancy.selectors import current_tenant


@dataclass(frozen=True)
class SoFar:
    """The cost, or what keeps it from being known."""

    cost: Cost | None
    problem: str = ""


@dataclass(frozen=True)
class ServiceCost:
    """What one service cost this month so far, before tax."""

    amount: Money
    gpu_seconds: int


def so_far() -> SoFar:
    """This month's cost; a missing price is told instead of hiding the page."""
    try:
        return SoFar(invoicing.cost_so_far())
    except NoPrice as error:
        return SoFar(None, error.detail)


def of_service(service_id: UUID, *, at: datetime) -> ServiceCost | None:
    """One service's cost of the month `at` falls into, up to then; None when it is not known."""
    tenant = current_tenant()
    month = billing_month(month_of(at, tenant.billing_timezone), tenant.billing_timezone)
    window = Window(
        as_of=at,
        since=month.start,
        until=max(month.start, at.replace(microsecond=0)),
        currency=tenant.currency,
        services=[service_id],
    )
    try:
        lines = rating.lines(window)
    except NoPrice:
        return None
    amounts = (Money(line.amount, tenant.currency) for line in lines)
    return ServiceCost(
        Money.total(amounts, tenant.currency), sum(line.gpu_seconds for line in lines)
    )
