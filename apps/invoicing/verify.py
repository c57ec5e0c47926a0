"""The slow, independent sum: the same invoice again from facts, prices and agreements, by rules in
Python.

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

from apps.catalog.models import Contract, Price, PriceKind, PriceRule
from apps.core.money import Money, minor_places
from apps.core.realms import current_tenant_id
from apps.invoicing.models import Document, DocumentKind, DocumentStatus, LineKind
from apps.orders.models import Fact, Reservation, Service, ServiceVersion
from apps.orders.states import TAKES_OR_PAYS, charged_states
from apps.tenancy.selectors import current_tenant

Key = tuple[str, str, int, str, Decimal | None]  # kind, what, version, code, price
Lines = dict[Key, tuple[int, Decimal]]  # GPU-seconds, amount
Allocation = tuple[UUID, int]  # service, version
Span = tuple[int, int, int]  # from second, to second, GPUs


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
    actual: Lines = {}
    for line in document.lines.all():
        what = str(line.service_id or (line.ref if line.kind == LineKind.RESERVATION else ""))
        key = (line.kind, what, line.version, line.price_code, line.unit_price)
        seconds, amount = actual.get(key, (0, Decimal(0)))
        actual[key] = (seconds + line.gpu_seconds, amount + line.amount)
    findings = [
        Finding(
            " ".join(str(part) for part in key),
            _said(actual.get(key)),
            _said(expected.get(key)),
        )
        for key in sorted(expected.keys() | actual.keys(), key=str)
        if actual.get(key) != expected.get(key)
    ]
    return findings + _totals(document, expected)


def slow_lines(document: Document) -> Lines:
    """GPU-seconds and amount of every line the document should have."""
    books = _Books(document)
    month = int(document.period_start.timestamp()), int(document.supply_end.timestamp())
    usage = books.open(document.as_of, *month)
    lines = books.priced(LineKind.USAGE, usage)
    charged = sum((amount for _seconds, amount in lines.values()), Decimal(0))
    agreed: Lines = {}
    if lines:
        agreed |= _discount(document, books, charged)
    agreed |= _reservations(document)
    charged += sum((amount for _seconds, amount in agreed.values()), Decimal(0))
    lines |= agreed | _minimum(document, charged)
    for invoice in _issued_before(document):
        late = _late(document, invoice, books)
        for key, (seconds, amount) in books.priced(LineKind.LATE_USAGE, late).items():
            before = lines.get(key, (0, Decimal(0)))
            lines[key] = (before[0] + seconds, before[1] + amount)
    return lines


class _Books:
    """All that is recorded of a tenant in one currency, read once."""

    def __init__(self, document: Document) -> None:
        self._currency = document.currency
        self._services = {
            service.pk: service
            for service in Service.objects.select_related("order").filter(
                order__currency=document.currency
            )
        }
        self._facts: dict[UUID, list[Fact]] = defaultdict(list)
        for fact in Fact.objects.filter(service__in=self._services):
            self._facts[fact.service_id].append(fact)
        self._versions = {
            (row.service_id, row.version): (row.sku, row.gpus)
            for row in ServiceVersion.objects.filter(service__in=self._services)
        }
        self._prices = [
            price
            for price in Price.objects.select_related("book").filter(unit="gpu_hour")
            if price.book.currency == document.currency
            and price.book.tenant in (None, current_tenant_id())
        ]

    def size(self, allocation: Allocation) -> tuple[str, int]:
        """SKU and GPUs."""
        service = self._services[allocation[0]]
        return self._versions.get(allocation, (service.sku, service.gpus))

    def open(self, as_of: datetime, since: int, until: int) -> dict[Allocation, list[Span]]:
        """Charged time that reservations leave, as known at an instant."""
        known = {
            pk: _Timeline(service, self._facts[pk], as_of) for pk, service in self._services.items()
        }
        spans = {
            (pk, version): seconds
            for pk, timeline in known.items()
            for version, seconds in timeline.charged(since, until).items()
        }
        first = {one: known[one[0]].first_charged(one[1]) for one in spans}
        found: dict[Allocation, list[Span]] = {}
        held = _held(self._currency, as_of)
        for sku in {self.size(one)[0] for one in spans}:
            mine = sorted(
                (one for one in spans if self.size(one)[0] == sku),
                key=lambda one: (first[one], one),
            )
            terms = [term for reserved, *term in held if reserved == sku]
            found |= self._uncovered(mine, spans, terms)
        return found

    def _uncovered(
        self,
        allocations: list[Allocation],
        spans: dict[Allocation, list[tuple[int, int]]],
        terms: list[list[int]],
    ) -> dict[Allocation, list[Span]]:
        """Give the reserved GPUs to the allocations in their order, between any two edges."""
        found: dict[Allocation, list[Span]] = defaultdict(list)
        edges = {at for one in allocations for span in spans[one] for at in span}
        edges |= {at for start, end, _gpus in terms for at in (start, end)}
        for low, high in pairwise(sorted(edges)):
            left = sum(gpus for start, end, gpus in terms if start <= low and high <= end)
            for one in allocations:
                if any(start <= low and high <= end for start, end in spans[one]):
                    gpus = self.size(one)[1]
                    taken = min(left, gpus)
                    left -= taken
                    if gpus > taken:
                        found[one].append((low, high, gpus - taken))
        return found

    def priced(self, kind: LineKind, usage: dict[Allocation, list[Span]]) -> Lines:
        """A line for each allocation and price, its sum rounded once."""
        sums: dict[Key, int] = defaultdict(int)
        for allocation, spans in usage.items():
            for start, end, gpus in spans:
                for code, price, seconds in self._prices_of(allocation, start, end):
                    sums[str(kind), str(allocation[0]), allocation[1], code, price] += (
                        seconds * gpus
                    )
        return {
            key: (
                gpu_seconds,
                _rounded(Fraction(gpu_seconds) * Fraction(key[4] or 0) / 3600, self._currency),
            )
            for key, gpu_seconds in sums.items()
        }

    def _prices_of(
        self, allocation: Allocation, start: int, end: int
    ) -> Iterator[tuple[str, Decimal, int]]:
        """The prices in force from start to end, and for how many seconds each."""
        order = self._services[allocation[0]].order
        if order.price_rule == PriceRule.FIXED:
            term = end if order.ends_at is None else min(end, int(order.ends_at.timestamp()))
            if start < term:
                row = Price.objects.filter(pk=order.price_id).first()
                code = row.code if row else str(order.price_id)
                yield code, order.unit_price, term - start
            start = max(start, term)
        sku = self.size(allocation)[0]
        prices = [price for price in self._prices if price.sku == sku]
        edges = {start, end}
        for price in prices:
            both = (price.effective_from, price.effective_to)
            edges |= {int(at.timestamp()) for at in both if at}
        for low, high in pairwise(sorted(edge for edge in edges if start <= edge <= end)):
            best = _best(prices, low)
            if best is None:
                raise LookupError(f"{sku} has no price in {self._currency} at second {low}")
            yield best.code or str(best.pk), best.amount, high - low


class _Timeline:
    """What one service did, as known at an instant."""

    def __init__(self, service: Service, recorded: Iterable[Fact], as_of: datetime) -> None:
        facts = [fact for fact in recorded if fact.recorded_at <= as_of]
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

    def first_charged(self, version: int) -> datetime:
        """When a version began to be charged for the first time."""
        return min(start for one, start, _end in self._charged if one == version)

    def charged(self, since: int, until: int) -> dict[int, list[tuple[int, int]]]:
        """Charged seconds of each version inside [since, until), every second once."""
        spans: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for version, start_at, end_at in self._charged:
            start = max(since, int(start_at.timestamp()))
            end = until if end_at is None else min(until, int(end_at.timestamp()))
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


def _best(prices: Iterable[Price], second: int) -> Price | None:
    """A contract before the list, the latest start before earlier ones."""
    chosen = [
        price
        for price in prices
        if int(price.effective_from.timestamp()) <= second
        and (price.effective_to is None or int(price.effective_to.timestamp()) > second)
    ]
    return max(
        chosen,
        key=lambda price: (price.book.kind == PriceKind.CONTRACT, price.effective_from),
        default=None,
    )


def _paid_reservations(currency: str, as_of: datetime) -> list[Reservation]:
    return [
        one
        for one in Reservation.objects.filter(currency=currency)
        if one.created_at <= as_of
        and (one.status in TAKES_OR_PAYS or (one.status == "expired" and one.begun_at is not None))
    ]


def _term(reservation: Reservation) -> tuple[int, int]:
    end = min(at for at in (reservation.ended_at, reservation.ends_at) if at is not None)
    return int(reservation.starts_at.timestamp()), int(end.timestamp())


def _held(currency: str, as_of: datetime) -> list[tuple[str, int, int, int]]:
    return [(one.sku, *_term(one), one.gpus) for one in _paid_reservations(currency, as_of)]


def _reservations(document: Document) -> Lines:
    lines: Lines = {}
    low, high = int(document.period_start.timestamp()), int(document.supply_end.timestamp())
    for one in _paid_reservations(document.currency, document.as_of):
        start, end = _term(one)
        gpu_seconds = (min(end, high) - max(start, low)) * one.gpus
        if gpu_seconds > 0:
            amount = _rounded(Fraction(gpu_seconds) * Fraction(one.unit_price) / 3600,
                              document.currency)  # fmt: skip
            key = (str(LineKind.RESERVATION), str(one.pk), 1, "", one.unit_price)
            lines[key] = (gpu_seconds, amount)
    return lines


def _contracts(document: Document) -> list[Contract]:
    return sorted(
        (
            one
            for one in Contract.objects.filter(
                tenant=current_tenant().pk, currency=document.currency
            )
            if one.created_at <= document.as_of
        ),
        key=lambda one: one.effective_from,
    )


def _discount(document: Document, books: _Books, usage: Decimal) -> Lines:
    """Each second has one percentage; seconds of one in a row are discounted together."""
    low, high = int(document.period_start.timestamp()), int(document.supply_end.timestamp())
    rows: list[list[Fraction]] = []
    for one in _contracts(document):
        start = max(low, int(one.effective_from.timestamp()))
        end = high if one.effective_to is None else min(high, int(one.effective_to.timestamp()))
        if start >= end:
            continue
        if rows and rows[-1][1] == start and rows[-1][2] == Fraction(one.discount_percent):
            rows[-1][1] = Fraction(end)
        else:
            rows.append([Fraction(start), Fraction(end), Fraction(one.discount_percent)])
    exact, is_discounted = Fraction(0), False
    for start_at, end_at, percent in rows:
        if percent == 0:
            continue
        is_discounted = True
        base = usage
        if start_at != low or end_at != high:
            inside = books.open(document.as_of, int(start_at), int(end_at))
            priced = books.priced(LineKind.USAGE, inside)
            base = sum((amount for _seconds, amount in priced.values()), Decimal(0))
        exact += Fraction(base) * percent / 100
    if not is_discounted:
        return {}
    return {
        (str(LineKind.DISCOUNT), "", 1, "", None): (0, -_rounded(exact, document.currency)),
    }


def _minimum(document: Document, charged: Decimal) -> Lines:
    low, high = int(document.period_start.timestamp()), int(document.period_end.timestamp())
    exact = Fraction(0)
    for one in _contracts(document):
        start = max(low, int(one.effective_from.timestamp()))
        end = high if one.effective_to is None else min(high, int(one.effective_to.timestamp()))
        if one.minimum_monthly_charge is not None and start < end:
            exact += Fraction(one.minimum_monthly_charge) * (end - start) / (high - low)
    missing = _rounded(exact, document.currency) - charged
    if exact == 0 or missing <= 0:
        return {}
    return {(str(LineKind.MINIMUM), "", 1, "", None): (0, missing)}


def _late(document: Document, invoice: Document, books: _Books) -> dict[Allocation, list[Span]]:
    """What is known now of an invoiced month beyond what invoices have charged of it."""
    start = int(invoice.period_start.timestamp())
    until = min(int(invoice.period_end.timestamp()), int(document.as_of.timestamp()))
    billed = [books.open(invoice.as_of, start, int(invoice.supply_end.timestamp()))]
    for one in _issued_before(document):
        if one.as_of > invoice.as_of:
            seen = min(int(invoice.period_end.timestamp()), int(one.as_of.timestamp()))
            billed.append(books.open(one.as_of, start, seen))
    late: dict[Allocation, list[Span]] = {}
    for allocation, spans in books.open(document.as_of, start, until).items():
        before = [span for snapshot in billed for span in snapshot.get(allocation, [])]
        edges = sorted({at for low, high, _gpus in (*spans, *before) for at in (low, high)})
        rest = [
            (low, high, _level(spans, low) - _level(before, low))
            for low, high in pairwise(edges)
            if _level(spans, low) > _level(before, low)
        ]
        if rest:
            late[allocation] = rest
    return late


def _level(spans: Iterable[Span], second: int) -> int:
    return max((gpus for start, end, gpus in spans if start <= second < end), default=0)


def _issued_before(document: Document) -> list[Document]:
    return list(
        Document.objects.filter(
            kind=DocumentKind.INVOICE,
            status=DocumentStatus.ISSUED,
            currency=document.currency,
            as_of__lt=document.as_of,
        ).exclude(pk=document.pk)
    )


def _rounded(exact: Fraction, currency: str) -> Decimal:
    """Half away from zero, to the minor unit."""
    unit = 10 ** minor_places(currency)
    whole, rest = divmod(abs(exact) * unit, 1)
    whole += 1 if rest >= Fraction(1, 2) else 0
    return Decimal(whole if exact >= 0 else -whole).scaleb(-minor_places(currency))


def _totals(document: Document, expected: Lines) -> list[Finding]:
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
