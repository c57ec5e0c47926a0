"""Whom a change of prices or terms touches, and by how much, before it is kept."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction

from django.db.models import Count, Q, Sum

from apps.catalog.models import Contract, Price, PriceKind
from apps.core.money import ExactMoney, Money
from apps.invoicing.models import Document, DocumentKind, DocumentStatus, LineKind
from apps.orders.models import ServiceProjection
from apps.orders.states import ServiceState
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant

MONTH_HOURS = 730  # of a year's twelfth: previews compare months of equal length
_USING = (ServiceState.PROVISIONING, ServiceState.ACTIVE, ServiceState.STOPPED,
          ServiceState.SUSPENDED)  # fmt: skip
_MINIMUM_BASE = (LineKind.USAGE, LineKind.RESERVATION)


@dataclass(frozen=True, slots=True)
class PriceEffect:
    """What a new price means for a tenant that uses the SKU now, for a month of 730 hours."""

    tenant: Tenant
    services: int
    gpus: int
    before: Money | None  # None: the SKU had no price for this tenant
    after: Money

    @property
    def difference(self) -> Money:
        """More (or less) in such a month."""
        return self.after - self.before if self.before else self.after


@dataclass(frozen=True, slots=True)
class TermsEffect:
    """What the last issued invoice's month would have cost with the old and the new terms."""

    period: str
    before: Money
    after: Money

    @property
    def difference(self) -> Money:
        """More (or less) for that month."""
        return self.after - self.before


def effects_of_price(*, price: Price, before: Iterable[Price]) -> list[PriceEffect]:
    """The tenants whose servers of the SKU would be charged by the price from its start on.

    `before` are the versions of all books without the new one. Fixed prices of orders are not told
    apart: such orders keep theirs.
    """
    book, known = price.book, [one for one in before if one.unit == price.unit]
    found = []
    for tenant, services, gpus in _users(price):
        own = [one for one in known if one.book.tenant == tenant.pk]
        if book.kind == PriceKind.LIST and _at(own, price.effective_from):
            continue  # a contract price comes first
        general = [one for one in known if one.book.kind == PriceKind.LIST]
        last = _at(own, price.effective_from) or _at(general, price.effective_from)
        found.append(
            PriceEffect(
                tenant,
                services,
                gpus,
                _month(gpus, last.amount, book.currency) if last else None,
                _month(gpus, price.amount, book.currency),
            )
        )
    return found


def effect_of_terms(*, tenant: Tenant, old: Contract | None, new: Contract) -> TermsEffect | None:
    """The last issued invoice of the tenant under both terms; None before the first one."""
    with tenant_context(tenant):
        invoice = (
            Document.objects.filter(
                kind=DocumentKind.INVOICE, status=DocumentStatus.ISSUED, currency=new.currency
            )
            .order_by("-period")
            .first()
        )
        if invoice is None:
            return None
        sums = dict(invoice.lines.order_by().values_list("kind").annotate(sum=Sum("amount")))
    return TermsEffect(
        invoice.period, _charged(sums, old, new.currency), _charged(sums, new, new.currency)
    )


def _charged(sums: dict[str, Decimal], terms: Contract | None, currency: str) -> Money:
    usage = Fraction(sums.get(LineKind.USAGE, 0))
    base = sum((Fraction(sums.get(kind, 0)) for kind in _MINIMUM_BASE), Fraction(0))
    if terms is not None:
        base -= usage * Fraction(terms.discount_percent) / 100
        base = max(base, Fraction(terms.minimum_monthly_charge or 0))
    late = Fraction(sums.get(LineKind.LATE_USAGE, 0))
    return ExactMoney(base + late, currency).rounded_half_up()


def _users(price: Price) -> list[tuple[Tenant, int, int]]:
    using = ServiceProjection.objects.filter(
        Q(ended_at=None) | Q(ended_at__gt=price.effective_from),
        sku=price.sku,
        state__in=[str(state) for state in _USING],
    )
    if price.book.tenant is not None:
        using = using.filter(tenant=price.book.tenant)
    sums = {
        row["tenant"]: (row["services"], row["all_gpus"])
        for row in using.order_by()
        .values("tenant")
        .annotate(services=Count("service"), all_gpus=Sum("gpus"))
    }
    tenants = Tenant.objects.filter(pk__in=sums, currency=price.book.currency).order_by("name")
    return [(tenant, *sums[tenant.pk]) for tenant in tenants]


def _at(prices: Iterable[Price], instant: datetime) -> Price | None:
    for one in prices:
        ends = one.effective_to
        if one.effective_from <= instant and (ends is None or ends > instant):
            return one
    return None


def _month(gpus: int, amount: Decimal, currency: str) -> Money:
    return (Money(amount, currency) * Fraction(gpus * MONTH_HOURS)).rounded_half_up()
