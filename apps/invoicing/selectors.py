"""Questions about invoices: documents, what a line follows from, what this month costs so far."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Min, QuerySet
from django.utils.translation import gettext as _

from apps.catalog.models import Price
from apps.core import clock
from apps.core.money import Money, tax
from apps.core.periods import Period, billing_month, month_of, months_of
from apps.inventory.models import Node
from apps.invoicing import late, rating
from apps.invoicing.errors import DocumentNotFound, LineNotFound
from apps.invoicing.models import (
    Document,
    DocumentKind,
    DocumentLine,
    DocumentStatus,
    InvoiceProjection,
    LineKind,
)
from apps.invoicing.rating import RatedLine, Window
from apps.metering import selectors as metering
from apps.metering.selectors import Interval
from apps.orders.models import Fact, PriceRule, Service, ServiceProjection
from apps.tenancy.models import Tenant
from apps.tenancy.selectors import current_tenant


def documents(*, with_drafts: bool = False) -> QuerySet[Document]:
    """This tenant's invoices and credit notes, newest first; customers see issued ones only."""
    found = Document.objects.order_by("-period", "-created_at", "-id")
    return found if with_drafts else found.filter(status=DocumentStatus.ISSUED)


def projected_documents(
    *, period: str = "", currency: str = "", kind: str = "", status: str = ""
) -> QuerySet[InvoiceProjection]:
    """Every tenant's documents for finance's lists, newest first, narrowed by what is given."""
    asked = {"period": period, "currency": currency, "kind": kind, "status": status}
    return InvoiceProjection.objects.filter(
        **{name: value for name, value in asked.items() if value}
    ).order_by("-created_at", "-document")


def document_detail(document_id: UUID, *, with_drafts: bool = False) -> Document:
    """A document of this tenant with its lines and credit notes. Raises DocumentNotFound."""
    document = (
        documents(with_drafts=with_drafts)
        .select_related("corrects")
        .prefetch_related("lines", "credit_notes")
        .filter(pk=document_id)
        .first()
    )
    if document is None:
        raise DocumentNotFound()
    return document


def draft_of(*, period: str, currency: str) -> Document | None:
    """The draft of a month of this tenant, if there is one."""
    return Document.objects.filter(
        kind=DocumentKind.INVOICE, status=DocumentStatus.DRAFT, period=period, currency=currency
    ).first()


def tenants_with_services(*, currency: str, before: datetime) -> list[Tenant]:
    """Tenants of a currency that got a service before an instant; for the platform's side."""
    having = ServiceProjection.objects.filter(created_at__lt=before).values("tenant").distinct()
    return list(Tenant.objects.filter(currency=currency, id__in=having).order_by("slug"))


@dataclass(frozen=True, slots=True)
class Cost:
    """What a month would be invoiced with if it ended at `until`; nothing is stored."""

    period: str
    currency: str
    since: datetime
    until: datetime
    lines: list[RatedLine]
    late_lines: list[RatedLine]
    subtotal: Money
    tax: Money

    @property
    def total(self) -> Money:
        """Subtotal and tax."""
        return self.subtotal + self.tax


def cost_so_far(*, at: datetime | None = None, currency: str | None = None) -> Cost:
    """This tenant's cost of the month `at` (now) falls into, up to then.

    Rated by the invoice's own SQL: at the month's end it equals the invoice. Raises NoPrice.
    """
    known_at = at or clock.now()
    month = month_of(known_at, current_tenant().billing_timezone)
    return cost_of_month(month, as_of=known_at, currency=currency)


def cost_of_month(period: str, *, as_of: datetime, currency: str | None = None) -> Cost:
    """The cost of a month of this tenant as known at `as_of`, with late usage of other months.

    What a final invoice has charged already counts too, and what follows it in the month, once.
    """
    tenant = current_tenant()
    currency = currency or tenant.currency
    month = billing_month(period, tenant.billing_timezone)
    until = max(month.start, min(month.end, as_of.replace(microsecond=0)))
    lines = rating.lines(Window(as_of=as_of, since=month.start, until=until, currency=currency))
    late_lines = [
        line
        for change in late.late_usage(currency=currency, as_of=as_of)
        if change.invoice.period != period
        for line in rating.lines(late_window(change, as_of))
    ]
    subtotal = Money.total(
        (Money(line.amount, currency) for line in [*lines, *late_lines]), currency
    )
    return Cost(
        period=period,
        currency=currency,
        since=month.start,
        until=until,
        lines=lines,
        late_lines=late_lines,
        subtotal=subtotal,
        tax=tax(subtotal, tenant.vat_rate),
    )


def running_not_invoiced(*, at: datetime | None = None) -> Money:
    """What this tenant has used and not been invoiced for yet, before tax, up to `at` (now)."""
    tenant = current_tenant()
    known_at = at or clock.now()
    first = Fact.objects.aggregate(first=Min("start_at"))["first"]
    total = Money.zero(tenant.currency)
    if first is None or first >= known_at:
        return total
    invoiced = set(
        Document.objects.filter(
            kind=DocumentKind.INVOICE, status=DocumentStatus.ISSUED, currency=tenant.currency
        ).values_list("period", flat=True)
    )
    used = Period(first, max(first, known_at.replace(microsecond=0)))
    for period in months_of(used, tenant.billing_timezone):
        if period not in invoiced:
            month = billing_month(period, tenant.billing_timezone)
            until = min(month.end, used.end)
            window = Window(
                as_of=known_at, since=month.start, until=until, currency=tenant.currency
            )
            total += _sum(rating.lines(window), tenant.currency)
    for change in late.late_usage(currency=tenant.currency, as_of=known_at):
        total += _sum(rating.lines(late_window(change, known_at)), tenant.currency)
    return total


@dataclass(frozen=True, slots=True)
class Reduction:
    """Time an issued invoice charged that was none by today's records: it needs a credit note."""

    invoice: Document
    usage: RatedLine
    line: DocumentLine | None  # the invoice's own line of it, if it is there and not credited
    is_credited: bool


def reductions(*, currency: str | None = None, as_of: datetime | None = None) -> list[Reduction]:
    """Everything this tenant was charged too much by what is known at `as_of` (now)."""
    known_at = as_of or clock.now()
    found = []
    for change in late.reduced_usage(
        currency=currency or current_tenant().currency, as_of=known_at
    ):
        for usage in rating.lines(late_window(change, known_at)):
            line = change.invoice.lines.filter(
                service_id=usage.service_id,
                version=usage.version,
                price_code=usage.price_code,
                unit_price=usage.unit_price,
            ).first()
            credited = line is not None and line.corrections.exists()
            found.append(Reduction(change.invoice, usage, line, credited))
    return found


def late_window(change: late.Change, as_of: datetime) -> Window:
    """How the time of a change is rated: exactly its pieces, at the prices of when it happened."""
    return Window(
        as_of=as_of,
        since=change.invoice.period_start,
        until=change.invoice.period_end,
        currency=change.invoice.currency,
        pieces=change.pieces,
    )


def rated_content(document: Document) -> list[tuple[Any, ...]]:
    """What the lines of a draft would say if it were rated now, at its `as_of`: for comparing."""
    window = window_of(document)
    rated = [(LineKind.USAGE.value, line) for line in rating.lines(window)]
    for change in late.late_usage(currency=document.currency, as_of=document.as_of):
        rated += [
            (LineKind.LATE_USAGE.value, line)
            for line in rating.lines(late_window(change, document.as_of))
        ]
    return sorted(
        (
            kind,
            line.service_id,
            line.version,
            line.first_at,
            line.last_at,
            line.price_code,
            line.unit_price,
            line.gpu_seconds,
            line.amount,
        )
        for kind, line in rated
    )


def explain_line(line_id: UUID, *, with_drafts: bool = False) -> dict[str, Any]:
    """Everything a line follows from: document, price, order, service, and each interval with its
    fact.

    The intervals are read again as they were known at the document's `as_of`; their GPU-seconds
    add up to the line's. A correction explains the line it gives back. Raises LineNotFound.
    """
    line = (
        DocumentLine.objects.select_related("document", "corrects", "corrects__document")
        .filter(pk=line_id)
        .first()
    )
    if line is None or (line.document.status == DocumentStatus.DRAFT and not with_drafts):
        raise LineNotFound()
    source = line.corrects or line
    service = Service.objects.select_related("order", "project").get(pk__in=[source.service_id])
    price = Price.objects.select_related("book").filter(pk__in=[source.price_id]).first()
    usage = _usage_of(source)
    seconds = sum(entry["seconds"] for entry in usage)
    currency = line.document.currency
    return {
        "line": line,
        "document": line.document,
        "corrects": line.corrects,
        "service": service,
        "order": service.order,
        "project": service.project,
        "price": price,
        "price_book": price.book if price else None,
        "usage": usage,
        "seconds": seconds,
        "gpu_seconds": seconds * source.quantity,
        "rules": _rules(source, service),
        "arithmetic": (
            f"{seconds} s × {source.quantity} GPU = {source.gpu_seconds} GPU-s; "
            f"{source.gpu_seconds} / 3600 × {_plain(source.unit_price, currency)}"
            f" → {_plain(source.amount, currency)} {currency}"
        ),
    }


def _plain(amount: Decimal | None, currency: str) -> str:
    return str(Money(amount or Decimal(0), currency))


def _usage_of(line: DocumentLine) -> list[dict[str, Any]]:
    """The intervals of a line, one for each fact and price."""
    document, service = line.document, line.service_id
    if line.kind == LineKind.LATE_USAGE:
        period = next(
            change
            for change in late.late_usage(currency=document.currency, as_of=document.as_of)
            if line.first_at is not None
            and change.invoice.period_start <= line.first_at < change.invoice.period_end
        )
        pieces = [piece for piece in period.pieces if piece.service_id == service]
        window = late_window(late.Change(period.invoice, tuple(pieces)), document.as_of)
        facts = {piece.fact_id: piece for piece in pieces}
    else:
        window = window_of(document, services=[service] if service else [])
        facts = {
            piece.fact_id: piece
            for piece in metering.usage(
                since=window.since,
                until=window.until,
                as_of=window.as_of,
                services=window.services,
                currency=window.currency,
            )
        }
    nodes = {fact.node_id for fact in facts.values() if fact.node_id is not None}
    names = dict(Node.objects.filter(pk__in=nodes).values_list("pk", "name"))
    return [
        _entry(piece.start_at, piece.end_at, facts[piece.fact_id], names)
        for piece in rating.priced_pieces(window)
        if (piece.version, piece.price_code, piece.unit_price)
        == (line.version, line.price_code, line.unit_price)
    ]


def _entry(
    start_at: datetime, end_at: datetime, fact: Interval, names: dict[UUID, str]
) -> dict[str, Any]:
    return {
        "start_at": start_at,
        "end_at": end_at,
        "seconds": int((end_at - start_at).total_seconds()),
        "state": fact.state,
        "fact_id": fact.fact_id,
        "source": fact.source,
        "cause": fact.cause,
        "run_id": fact.run_id,
        "recorded_at": fact.recorded_at,
        "node_id": fact.node_id,
        "node": names.get(fact.node_id, "") if fact.node_id else "",
    }


def _rules(line: DocumentLine, service: Service) -> list[str]:
    """The rules of the billing policy that made this line, as sentences."""
    rules = [
        _(
            "Only time in a charged state counts; each second counts once, from start to just "
            "before the end."
        ),
        _("Charged states of the basis “{basis}”: {states}.").format(
            basis=service.order.get_billing_basis_display(),
            states=", ".join(metering.charged_labels(service.order.billing_basis)),
        ),
    ]
    if service.order.price_rule == PriceRule.FIXED:
        rules.append(_("The price was fixed when the order was placed."))
    else:
        rules.append(
            _(
                "The price in force at each second applies; a contract price comes before the list "
                "price."
            )
        )
    rules.append(
        _(
            "Amount = GPU-seconds / 3600 × unit price, rounded once, half up, to the currency's "
            "smallest unit."
        )
    )
    if line.kind == LineKind.LATE_USAGE:
        rules.append(
            _(
                "Usage that turns up after its month was invoiced goes on the next invoice at the "
                "price of then."
            )
        )
    return rules


def window_of(document: Document, services: list[UUID] | None = None) -> Window:
    """What the usage lines of an invoice were rated from: its time, as known at its `as_of`."""
    return Window(
        as_of=document.as_of,
        since=document.period_start,
        until=document.supply_end,
        currency=document.currency,
        services=services,
    )


def _sum(lines: list[RatedLine], currency: str) -> Money:
    return Money(sum((line.amount for line in lines), Decimal(0)), currency)
