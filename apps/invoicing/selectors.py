"""Questions about invoices: documents, what a line follows from, what this month costs so far."""

from collections import Counter
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db.models import Case, IntegerField, Min, OuterRef, QuerySet, Subquery, Sum, When
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from apps.catalog.models import Contract, Price, PriceRule
from apps.core import clock
from apps.core.money import Money, tax
from apps.core.periods import Period, billing_month, month_of, months_of
from apps.inventory.models import Node
from apps.invoicing import agreements, late, rating
from apps.invoicing.agreements import AgreedLine, Month, Presence
from apps.invoicing.errors import DocumentNotFound, LineNotFound
from apps.invoicing.models import (
    Document,
    DocumentKind,
    DocumentLine,
    DocumentStatus,
    InvoiceProjection,
    InvoiceRun,
    InvoiceRunTenant,
    LineKind,
)
from apps.invoicing.rating import PricedPiece, RatedLine, Window
from apps.metering import selectors as metering
from apps.metering.selectors import Interval
from apps.orders.models import Fact, Reservation, Service
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


def invoice_runs() -> QuerySet[InvoiceRun]:
    """Every invoice run, newest first."""
    return InvoiceRun.objects.order_by("-started_at", "-id")


def run_tenants(*, run_id: UUID) -> QuerySet[InvoiceRunTenant]:
    """The tenants of a run with their names: those that need somebody first."""
    name = Tenant.objects.filter(id=OuterRef("tenant")).values("name")[:1]
    return (
        InvoiceRunTenant.objects.filter(run=run_id)
        .annotate(
            tenant_name=Subquery(name),
            rank=Case(
                When(status="refused", then=0),
                When(status="drafted", then=1),
                When(status__in=("waiting", "approved"), then=2),
                default=3,
                output_field=IntegerField(),
            ),
        )
        .order_by("rank", "tenant_name", "id")
    )


@dataclass(frozen=True, slots=True)
class Cost:
    """What a month would be invoiced with if it ended at `until`; nothing is stored."""

    period: str
    currency: str
    since: datetime
    until: datetime
    lines: list[RatedLine]
    agreed_lines: list[AgreedLine]
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
    so_far = Month(month.start, month.end, until, as_of, currency)
    presence = agreements.presence_in(so_far)
    lines = rating.lines(
        Window(
            as_of=as_of,
            since=month.start,
            until=until,
            currency=currency,
            is_reserved=presence.reservations,
        )
    )
    late_lines = [
        line
        for change in late.late_usage(currency=currency, as_of=as_of)
        if change.invoice.period != period
        for line in rating.lines(late_window(change, as_of))
    ]
    agreed = _agreed_so_far(so_far, lines, presence)
    subtotal = _sum([*lines, *late_lines], currency) + Money.total(
        (line.amount for line in agreed), currency
    )
    return Cost(
        period=period,
        currency=currency,
        since=month.start,
        until=until,
        lines=lines,
        agreed_lines=agreed,
        late_lines=late_lines,
        subtotal=subtotal,
        tax=tax(subtotal, tenant.vat_rate),
    )


def _agreed_so_far(
    month: Month, lines: list[RatedLine], presence: Presence | None = None
) -> list[AgreedLine]:
    """Discount and reservations up to now; a minimum is owed only when the month is over."""
    agreed = agreements.agreed_lines(
        month, usage=_sum(lines, month.currency), usage_lines=len(lines), presence=presence
    )
    is_over = month.supply_end >= month.end
    return [line for line in agreed if is_over or line.kind != LineKind.MINIMUM]


def running_not_invoiced(*, at: datetime | None = None) -> Money:
    """What this tenant has used and not been invoiced for yet, before tax, up to `at` (now)."""
    tenant = current_tenant()
    known_at = at or clock.now()
    first = min(
        (
            start
            for start in (
                Fact.objects.aggregate(first=Min("start_at"))["first"],
                Reservation.objects.aggregate(first=Min("starts_at"))["first"],
            )
            if start is not None
        ),
        default=None,
    )
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
            lines = rating.lines(window)
            total += _sum(lines, tenant.currency)
            so_far = Month(month.start, month.end, until, known_at, tenant.currency)
            total += Money.total(
                (line.amount for line in _agreed_so_far(so_far, lines)), tenant.currency
            )
    for change in late.late_usage(currency=tenant.currency, as_of=known_at):
        total += _sum(rating.lines(late_window(change, known_at)), tenant.currency)
    return total


@dataclass(frozen=True, slots=True)
class Reduction:
    """Time an issued invoice charged that was none by today's records: it needs a credit note."""

    invoice: Document
    usage: RatedLine
    line: DocumentLine | None  # the invoice's own line of it, if it is there
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
            given = line.corrections.aggregate(sum=Sum("amount"))["sum"] if line else None
            is_credited = given is not None and -given >= usage.amount
            found.append(Reduction(change.invoice, usage, line, is_credited))
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


def rated_content(document: Document) -> Counter[tuple[Any, ...]]:
    """What the lines of a draft would say if it were rated now, at its `as_of`: for comparing."""
    window = window_of(document)
    rated = [(LineKind.USAGE.value, line) for line in rating.lines(window)]
    for change in late.late_usage(currency=document.currency, as_of=document.as_of):
        rated += [
            (LineKind.LATE_USAGE.value, line)
            for line in rating.lines(late_window(change, document.as_of))
        ]
    usage = [line for kind, line in rated if kind == LineKind.USAGE]
    agreed = agreements.agreed_lines(
        Month.of(document), usage=_sum(usage, document.currency), usage_lines=len(usage)
    )
    return Counter(
        [
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
        ]
        + [
            (
                line.kind.value,
                None,
                1,
                line.columns.get("first_at"),
                line.columns.get("last_at"),
                "",
                line.columns.get("unit_price"),
                line.columns.get("gpu_seconds", 0),
                line.amount.amount,
            )
            for line in agreed
        ]
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
    if source.service_id is None:
        return _explain_agreed(line, source)
    service = Service.objects.select_related("order", "project").get(pk__in=[source.service_id])
    price = Price.objects.select_related("book").filter(pk__in=[source.price_id]).first()
    usage = _usage_of(source)
    seconds = sum(entry["seconds"] for entry in usage)
    gpu_seconds = sum(entry["seconds"] * entry["gpus"] for entry in usage)
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
        "gpu_seconds": gpu_seconds,
        "reservation": None,
        "contract": None,
        "rules": _rules(source, service),
        "arithmetic": _spelled_out(usage, source, currency),
    }


def _spelled_out(usage: list[dict[str, Any]], line: DocumentLine, currency: str) -> str:
    """Seconds by GPUs charged, GPU-seconds, amount: as one would check it on paper."""
    seconds: dict[int, int] = {}
    for entry in usage:
        seconds[entry["gpus"]] = seconds.get(entry["gpus"], 0) + entry["seconds"]
    sums = " + ".join(f"{time} s × {gpus} GPU" for gpus, time in sorted(seconds.items()))
    return f"{sums} = {line.gpu_seconds} GPU-s; " + _priced_out(line, currency)


def _priced_out(line: DocumentLine, currency: str) -> str:
    return (
        f"{line.gpu_seconds} / 3600 × {_plain(line.unit_price, currency)}"
        f" → {_plain(line.amount, currency)} {currency}"
    )


def _explain_agreed(line: DocumentLine, source: DocumentLine) -> dict[str, Any]:
    """What a discount, reservation or minimum follows from: its agreement and the figures used."""
    currency = line.document.currency
    reservation = None
    if source.kind == LineKind.RESERVATION:
        reservation = Reservation.objects.select_related("project").get(pk=source.ref)
    return {
        "line": line,
        "document": line.document,
        "corrects": line.corrects,
        "service": None,
        "order": None,
        "project": reservation.project if reservation else None,
        "price": None,
        "price_book": None,
        "reservation": reservation,
        "contract": Contract.objects.filter(pk__in=[source.contract_id]).first(),
        "usage": [],
        "seconds": 0,
        "gpu_seconds": source.gpu_seconds,
        "rules": [_AGREED_RULES[LineKind(source.kind)]],
        "arithmetic": _agreed_arithmetic(source, currency),
    }


def _agreed_arithmetic(line: DocumentLine, currency: str) -> str:
    amount = f"{_plain(line.amount, currency)} {currency}"
    terms: dict[str, Any] = line.terms or {}
    if line.kind == LineKind.RESERVATION:
        return _priced_out(line, currency)
    if line.kind == LineKind.DISCOUNT:
        parts = [f"{one['percent']} % × {one['usage']}" for one in terms["stretches"]]
        return f"-({' + '.join(parts)}) → {amount}"
    parts = [
        f"{one['minimum_monthly_charge']} × {one['seconds']} / {terms['seconds_in_month']}"
        for one in terms["parts"]
    ]
    return (
        f"{' + '.join(parts)} → {terms['minimum']}; "
        f"{terms['minimum']} - {terms['charged']} = {amount}"
    )


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
            for piece in metering.open_usage(
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
        _entry(piece, facts[piece.fact_id], names)
        for piece in rating.priced_pieces(window)
        if (piece.version, piece.price_code, piece.unit_price)
        == (line.version, line.price_code, line.unit_price)
    ]


def _entry(piece: PricedPiece, fact: Interval, names: dict[UUID, str]) -> dict[str, Any]:
    return {
        "start_at": piece.start_at,
        "end_at": piece.end_at,
        "seconds": int((piece.end_at - piece.start_at).total_seconds()),
        "gpus": piece.gpus,
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


_AGREED_RULES = {
    LineKind.DISCOUNT: _lazy(
        "The contract's percentage of the usage inside the contract, rounded once; it touches "
        "neither reservations nor minimums nor late usage."
    ),
    LineKind.RESERVATION: _lazy(
        "A reservation is paid for its whole term, used or not, at its own price; the time it "
        "covers has no usage line."
    ),
    LineKind.MINIMUM: _lazy(
        "Usage, discount and reservations stay below the contract's monthly minimum; this is the "
        "difference. A contract in force for a part of the month owes that part of the minimum."
    ),
}


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
