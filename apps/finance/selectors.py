"""What finance asks across tenants: public tables only, a constant number of queries a page."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, Min, OuterRef, Q, QuerySet, Subquery, Sum

from apps.catalog.models import Price, PriceBook
from apps.core.money import Money
from apps.core.periods import billing_month
from apps.invoicing import selectors as invoicing
from apps.invoicing.models import DocumentKind, DocumentStatus, InvoiceProjection
from apps.orders.models import ServiceProjection
from apps.tenancy.models import Tenant

# About what this month costs so far, from projections: each service from its hand-over to its
# end, at the price in force at each second; a tenant's contract prices of a SKU replace the list's.
_MONTH_SO_FAR = """
WITH bounds AS (
    SELECT t.id, t.currency,
           date_trunc('month', public.neo_now() AT TIME ZONE t.billing_timezone)
               AT TIME ZONE t.billing_timezone AS begins
    FROM public.tenancy_tenant t
), used AS (
    SELECT s.tenant, s.service, s.sku, s.gpus, b.currency,
           greatest(s.ready_at, b.begins) AS since,
           coalesce(s.ended_at, public.neo_now()) AS until
    FROM public.orders_serviceprojection s
    JOIN bounds b ON b.id = s.tenant
    WHERE s.ready_at IS NOT NULL AND (s.ended_at IS NULL OR s.ended_at > b.begins)
), priced AS (
    SELECT u.*, p.amount,
           extract(epoch FROM least(u.until, coalesce(p.effective_to, u.until))
                   - greatest(u.since, p.effective_from)) AS seconds
    FROM used u
    JOIN public.catalog_pricebook k ON k.currency = u.currency
    JOIN public.catalog_price p ON p.book_id = k.id AND p.sku = u.sku AND p.unit = 'gpu_hour'
    WHERE p.effective_from < u.until AND coalesce(p.effective_to, 'infinity') > u.since
      AND CASE WHEN k.kind = 'contract' THEN k.tenant = u.tenant
          ELSE NOT EXISTS (
              SELECT FROM public.catalog_pricebook k2
              JOIN public.catalog_price p2 ON p2.book_id = k2.id
              WHERE k2.tenant = u.tenant AND k2.currency = u.currency
                AND p2.sku = u.sku AND p2.unit = 'gpu_hour'
                AND p2.effective_from < u.until
                AND coalesce(p2.effective_to, 'infinity') > u.since)
          END
)
SELECT currency,
       count(DISTINCT tenant),
       count(DISTINCT service),
       coalesce(sum(amount * gpus * seconds / 3600), 0)
FROM priced GROUP BY currency ORDER BY currency
"""


@dataclass(frozen=True)
class MonthSoFar:
    """About what a currency's month costs until now; invoices decide."""

    currency: str
    tenants: int
    services: int
    amount: Money


@dataclass(frozen=True)
class DocumentSum:
    """Documents of one currency, kind and status: how many, how much."""

    currency: str
    kind: str
    status: str
    documents: int
    subtotal: Money
    tax: Money
    total: Money


_USED_IN_MONTH = """
    SELECT s.tenant, count(*)
    FROM orders_serviceprojection s
    JOIN tenancy_tenant t ON t.id = s.tenant
    WHERE s.ready_at
        < (%(first)s::date + interval '1 month')::timestamp AT TIME ZONE t.billing_timezone
        AND (s.ended_at IS NULL
            OR s.ended_at > %(first)s::date::timestamp AT TIME ZONE t.billing_timezone)
    GROUP BY s.tenant
"""


@dataclass(frozen=True)
class Closing:
    """A tenant in a month's close: what it has, what is still to do."""

    tenant: Tenant
    state: str  # missing, draft, issued
    document: InvoiceProjection | None
    services: int
    credited: Money | None


def month_so_far() -> list[MonthSoFar]:
    """This month up to now, for each currency: one query over projections."""
    with connection.cursor() as cursor:
        cursor.execute(_MONTH_SO_FAR)
        return [
            MonthSoFar(currency, tenants, services, Money(amount, currency).rounded_half_up())
            for currency, tenants, services, amount in cursor.fetchall()
        ]


def sums(*, period: str = "") -> list[DocumentSum]:
    """Documents summed by currency, kind and status: one query."""
    rows = (
        invoicing.projected_documents(period=period)
        .order_by("currency", "kind", "status")
        .values("currency", "kind", "status")
        .annotate(n=Count("document"), net=Sum("subtotal"), vat=Sum("tax"), gross=Sum("total"))
    )
    return [
        DocumentSum(
            row["currency"],
            row["kind"],
            row["status"],
            row["n"],
            _money(row["net"], row["currency"]),
            _money(row["vat"], row["currency"]),
            _money(row["gross"], row["currency"]),
        )
        for row in rows
    ]


def documents(
    *,
    period: str = "",
    currency: str = "",
    kind: str = "",
    status: str = "",
    tenant: UUID | None = None,
    text: str = "",
) -> QuerySet[Any]:
    """Documents of all tenants with the tenant's name; `text` is looked for in number and name."""
    name = Tenant.objects.filter(id=OuterRef("tenant")).values("name")[:1]
    found = invoicing.projected_documents(
        period=period, currency=currency, kind=kind, status=status
    ).annotate(tenant_name=Subquery(name))
    if tenant:
        found = found.filter(tenant=tenant)
    if text:
        found = found.filter(Q(number__icontains=text) | Q(tenant_name__icontains=text))
    return found


def periods() -> list[str]:
    """Every period there is a document of, newest first."""
    return list(
        InvoiceProjection.objects.order_by("-period").values_list("period", flat=True).distinct()
    )


def first_use() -> datetime | None:
    """When the first service of anybody became ready; None before that."""
    found: datetime | None = ServiceProjection.objects.aggregate(first=Min("ready_at"))["first"]
    return found


def closing(*, period: str) -> list[Closing]:
    """Every tenant that had something running in the month, or has a document of it: three queries.

    The month is each tenant's own, in its billing time zone. Raises NotAMonth.
    """
    billing_month(period, "UTC")
    with connection.cursor() as cursor:
        cursor.execute(_USED_IN_MONTH, {"first": f"{period}-01"})
        used = dict(cursor.fetchall())
    found = list(invoicing.projected_documents(period=period))
    tenants = Tenant.objects.filter(id__in={*used, *(one.tenant for one in found)})
    return [
        _closing(tenant, [one for one in found if one.tenant == tenant.pk], used.get(tenant.pk, 0))
        for tenant in tenants.order_by("currency", "name", "id")
    ]


def _closing(tenant: Tenant, found: Iterable[InvoiceProjection], services: int) -> Closing:
    invoices = [one for one in found if one.kind == DocumentKind.INVOICE]
    notes = [one for one in found if one.kind == DocumentKind.CREDIT_NOTE]
    invoices.sort(key=lambda one: one.status != DocumentStatus.DRAFT)
    document = invoices[0] if invoices else None
    credited = None
    if notes:
        currency = notes[0].currency
        credited = Money.total((_money(one.total, one.currency) for one in notes), currency)
    return Closing(tenant, document.status if document else "missing", document, services, credited)


def books() -> list[Any]:
    """Price books with their tenant's name and how many prices they hold: one query."""
    name = Tenant.objects.filter(id=OuterRef("tenant")).values("name")[:1]
    return list(
        PriceBook.objects.annotate(
            tenant_name=Subquery(name),
            versions=Count("prices"),
            skus=Count("prices__sku", distinct=True),
        ).order_by("-kind", "code")
    )


def running_at(
    versions: Iterable[Price], *, sku: str, unit: str, at: datetime
) -> tuple[Price | None, Price | None]:
    """The version a new one from `at` would end, and the version that follows it."""
    same = sorted(
        (one for one in versions if (one.sku, one.unit) == (sku, unit)),
        key=lambda one: one.effective_from,
    )
    running = next(
        (
            one
            for one in same
            if one.effective_from < at and (one.effective_to is None or one.effective_to > at)
        ),
        None,
    )
    following = next((one for one in same if one.effective_from >= at), None)
    return running, following


def _money(amount: Decimal | None, currency: str) -> Money:
    return Money(amount or Decimal(0), currency)


def currencies() -> list[str]:
    """Every currency there is a document in."""
    return list(
        InvoiceProjection.objects.order_by("currency").values_list("currency", flat=True).distinct()
    )
