"""The slow, independent sum: the same invoice again from facts and prices, second by second rules
in Python.

Shares no query and no arithmetic with rating: it reads single rows and calculates with fractions.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from uuid import UUID

from apps.catalog.models import Price, PriceKind
from apps.core.money import Money, minor_places
from apps.core.realms import current_tenant_id
from apps.invoicing.models import Document, DocumentKind, DocumentStatus, LineKind
from apps.orders.models import Fact, PriceRule, Service
from apps.orders.states import charged_states

Key = tuple[str, UUID | None, int, str, Decimal | None]  # kind, service, version, code, price


@dataclass(frozen=True, slots=True)
class Finding:
    """Where a document and the slow sum disagree."""

    what: str
    document_says: str
    sum_says: str

    def __str__(self) -> str:
        return f"{self.what}: the document says {self.document_says}, the sum {self.sum_says}"


def verify_invoice(document: Document) -> list[Finding]:
    """Everything the slow sum finds different in an invoice of this tenant."""
    expected = slow_lines(document)
    actual: dict[Key, tuple[int, Decimal]] = {}
    for line in document.lines.all():
        key = (line.kind, line.service_id, line.version, line.price_code, line.unit_price)
        seconds, amount = actual.get(key, (0, Decimal(0)))
        actual[key] = (seconds + line.gpu_seconds, amount + line.amount)
    findings = [
        Finding(
            f"{kind} of {service} at {code} {price}",
            _said(actual.get((kind, service, version, code, price))),
            _said(expected.get((kind, service, version, code, price))),
        )
        for kind, service, version, code, price in sorted(
            expected.keys() | actual.keys(), key=lambda key: tuple(str(part) for part in key)
        )
        if actual.get((kind, service, version, code, price))
        != expected.get((kind, service, version, code, price))
    ]
    return findings + _totals(document, expected)


def slow_lines(document: Document) -> dict[Key, tuple[int, Decimal]]:
    """GPU-seconds and amount of every line the document should have."""
    lines: dict[Key, tuple[int, Decimal]] = {}
    for service in Service.objects.select_related("order").filter(
        order__currency=document.currency
    ):
        now = _Timeline(service, document.as_of)
        usage = now.charged(document.period_start, document.supply_end)
        _add(lines, LineKind.USAGE, document, service, usage)
        for invoice in _issued_before(document):
            billed = _billed(service, invoice, document)
            until = min(invoice.period_end, document.as_of.replace(microsecond=0))
            known = now.charged(invoice.period_start, until)
            late = {
                version: rest
                for version, seconds in known.items()
                if (rest := _minus(seconds, billed.get(version, [])))
            }
            _add(lines, LineKind.LATE_USAGE, document, service, late)
    return lines


class _Timeline:
    """What one service did, as known at an instant."""

    def __init__(self, service: Service, as_of: datetime) -> None:
        facts = [f for f in Fact.objects.filter(service=service) if f.recorded_at <= as_of]
        by_id = {fact.pk: fact for fact in facts}
        replaced = {fact.supersedes_id for fact in facts}
        valid = [fact for fact in facts if fact.pk not in replaced and fact.state]
        chain = sorted(
            (fact for fact in valid if fact.end_at is None or _root(fact, by_id).end_at is None),
            key=lambda fact: (
                fact.start_at,
                _root(fact, by_id).recorded_at,
                _root(fact, by_id).pk,
            ),
        )
        after = {fact.pk: following.start_at for fact, following in pairwise(chain)}
        states = charged_states(service.order.billing_basis)
        self._charged = [
            (fact.version, fact.start_at, fact.end_at or after.get(fact.pk))
            for fact in valid
            if fact.state in states
        ]

    def charged(self, since: datetime, until: datetime) -> dict[int, list[tuple[int, int]]]:
        """Charged seconds of each version inside [since, until), every second once."""
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        low, high = int(since.timestamp()), int(until.timestamp())
        for version, start_at, end_at in self._charged:
            start = max(low, int(start_at.timestamp()))
            end = high if end_at is None else min(high, int(end_at.timestamp()))
            if start < end:
                spans[version].append((start, end))
        return {version: _merged(found) for version, found in spans.items()}


def _root(fact: Fact, by_id: dict[UUID, Fact]) -> Fact:
    while fact.supersedes_id is not None:
        fact = by_id[fact.supersedes_id]
    return fact


def _merged(spans: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    merged: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def _minus(spans: list[tuple[int, int]], others: list[tuple[int, int]]) -> list[tuple[int, int]]:
    left = list(spans)
    for low, high in others:
        left = [
            piece
            for start, end in left
            for piece in ((start, min(end, low)), (max(start, high), end))
            if piece[0] < piece[1]
        ]
    return left


def _issued_before(document: Document) -> list[Document]:
    return list(
        Document.objects.filter(
            kind=DocumentKind.INVOICE,
            status=DocumentStatus.ISSUED,
            currency=document.currency,
            as_of__lt=document.as_of,
        ).exclude(pk=document.pk)
    )


def _billed(
    service: Service, invoice: Document, before: Document
) -> dict[int, list[tuple[int, int]]]:
    """What the invoice and those after it, up to the document, charged of the invoice's month."""
    billed: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for one in _issued_before(before):
        if one.as_of < invoice.as_of:
            continue
        until = min(invoice.period_end, one.as_of.replace(microsecond=0))
        if one.pk == invoice.pk:
            until = invoice.supply_end
        known = _Timeline(service, one.as_of).charged(invoice.period_start, until)
        for version, spans in known.items():
            billed[version] += spans
    return {version: _merged(spans) for version, spans in billed.items()}


def _add(
    lines: dict[Key, tuple[int, Decimal]],
    kind: LineKind,
    document: Document,
    service: Service,
    usage: dict[int, list[tuple[int, int]]],
) -> None:
    """Add what the usage of one service costs, by price, each sum rounded once."""
    found: dict[tuple[int, str, Decimal], int] = defaultdict(int)
    for version, spans in usage.items():
        for start, end in spans:
            for code, price, seconds in _priced(service, document.currency, start, end):
                found[(version, code, price)] += seconds * service.gpus
    for (version, code, price), gpu_seconds in found.items():
        key = (str(kind), service.pk, version, code, price)
        seconds, amount = lines.get(key, (0, Decimal(0)))
        cost = _rounded(Fraction(gpu_seconds) * Fraction(price) / 3600, document.currency)
        lines[key] = (seconds + gpu_seconds, amount + cost)


def _priced(
    service: Service, currency: str, start: int, end: int
) -> Iterator[tuple[str, Decimal, int]]:
    """The prices in force from start to end, and for how many seconds each."""
    order = service.order
    if order.price_rule == PriceRule.FIXED:
        row = Price.objects.filter(pk=order.price_id).first()
        yield (row.code if row else str(order.price_id)), order.unit_price, end - start
        return
    prices = _prices(service.sku, currency)
    edges = {start, end}
    for price in prices:
        edges |= {int(at.timestamp()) for at in (price.effective_from, price.effective_to) if at}
    inside = sorted(edge for edge in edges if start <= edge <= end)
    for low, high in pairwise(inside):
        chosen = [
            price
            for price in prices
            if int(price.effective_from.timestamp()) <= low
            and (price.effective_to is None or int(price.effective_to.timestamp()) > low)
        ]
        if not chosen:
            raise LookupError(f"{service.sku} has no price in {currency} at second {low}")
        best = max(
            chosen, key=lambda price: (price.book.kind == PriceKind.CONTRACT, price.effective_from)
        )
        yield best.code or str(best.pk), best.amount, high - low


def _prices(sku: str, currency: str) -> list[Price]:
    mine = current_tenant_id()
    return [
        price
        for price in Price.objects.select_related("book").filter(sku=sku, unit="gpu_hour")
        if price.book.currency == currency and price.book.tenant in (None, mine)
    ]


def _rounded(exact: Fraction, currency: str) -> Decimal:
    """Half away from zero, to the minor unit."""
    unit = 10 ** minor_places(currency)
    whole, rest = divmod(abs(exact) * unit, 1)
    whole += 1 if rest >= Fraction(1, 2) else 0
    return Decimal(whole if exact >= 0 else -whole).scaleb(-minor_places(currency))


def _totals(document: Document, expected: dict[Key, tuple[int, Decimal]]) -> list[Finding]:
    subtotal = sum((amount for _seconds, amount in expected.values()), Decimal(0))
    taxes = _rounded(Fraction(subtotal) * Fraction(document.vat_rate), document.currency)
    says = {"subtotal": document.subtotal, "tax": document.tax, "total": document.total}
    wanted = {"subtotal": subtotal, "tax": taxes, "total": subtotal + taxes}
    return [
        Finding(name, _money(says[name], document), _money(wanted[name], document))
        for name in says
        if says[name] != wanted[name]
    ]


def _said(figures: tuple[int, Decimal] | None) -> str:
    return "nothing" if figures is None else f"{figures[0]} GPU-seconds, {figures[1]:f}"


def _money(amount: Decimal, document: Document) -> str:
    return str(Money(Decimal(amount), document.currency))
