"""Billing cases: facts, prices and runs from a file, invoiced by the real program in a sandbox.

The sandbox is one transaction that is rolled back: a tenant, price book entries and a number
series of its own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from itertools import pairwise
from typing import Any

from django.db import connection, transaction

from apps.accounts.models import Project, User
from apps.accounts.roles import Role
from apps.catalog.models import Contract, Price, PriceBook, PriceKind, PriceRule
from apps.core.errors import AppError
from apps.core.money import PRICE_PLACES, Money, parse_currency, parse_decimal
from apps.core.periods import EndBeforeStart, billing_month, time_zone
from apps.core.uuids import uuid7
from apps.invoicing import services
from apps.invoicing.errors import MalformedCase, NothingToCredit, PriceConflict
from apps.invoicing.models import Document, DocumentKind, DocumentLine, LineKind
from apps.orders.ledger import lock_facts_shared
from apps.orders.models import (
    Fact,
    FactSource,
    IfUnavailable,
    Order,
    Quote,
    Reservation,
    Service,
)
from apps.orders.numbers import next_order_serial
from apps.orders.states import OrderStatus, ReservationStatus, ServiceState
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from apps.tenancy.services import create_tenant

FORMAT = "neocloud-billing-case/1"
_NEVER = datetime(9000, 1, 1, tzinfo=UTC)


@dataclass
class _Sandbox:
    """What a case became in the database."""

    case: dict[str, Any]
    tenant: Tenant
    mark: str  # before every SKU, so that prices of the real list are out of sight
    unit_prices: dict[str, str] = field(default_factory=dict)  # as the file writes them
    reserved_prices: dict[str, str] = field(default_factory=dict)  # the same, by reservation

    @property
    def currency(self) -> str:
        return self.tenant.currency

    def sku(self, name: str) -> str:
        return f"{self.mark}{name}"


@dataclass(frozen=True)
class _CasePrice:
    id: str
    kind: str
    sku: str
    amount: Decimal
    start: datetime
    end: datetime


def run(case: dict[str, Any]) -> dict[str, Any]:
    """Play a case and return {"error": null or a code, "documents": [...]}; the database is left
    as it was.

    Raises MalformedCase for a file that does not follow the format.
    """
    _refuse_malformed(case)
    documents: list[dict[str, Any]] = []
    with platform_context(), transaction.atomic():
        try:
            for document in _play(case):
                documents.append(document)
        except MalformedCase:
            raise
        except AppError as error:
            return {"error": error.code, "message": error.detail, "documents": documents}
        finally:
            transaction.set_rollback(True)
    return {"error": None, "documents": documents}


def _refuse_malformed(case: dict[str, Any]) -> None:
    if case.get("format") != FORMAT:
        raise MalformedCase(where="format", problem=f"expected {FORMAT}")
    for name in ("customer", "prices", "allocations", "runs"):
        if name not in case:
            raise MalformedCase(where=name, problem="it is missing")


def _play(case: dict[str, Any]) -> Iterator[dict[str, Any]]:
    sandbox = _sandbox(case)
    prices = _prices(sandbox)
    with tenant_context(sandbox.tenant):
        person = User.objects.create(email="case@example.test", name="Case", role=Role.OWNER)
        project = Project.objects.create(name="case")
        _load_facts(sandbox, project, person)
        _load_reservations(sandbox, project, person)
    _load_prices(sandbox, prices)
    _load_contract(sandbox)
    with tenant_context(sandbox.tenant):
        for one in case["runs"]:
            _set_clock(_instant(one["run_at"], "run_at"))
            draft = services.draft_invoice(tenant=sandbox.tenant, period=one["period"], actor=None)
            if draft is not None:
                issued = services.issue_invoice(document_id=draft.pk, actor=None, series="CASE")
                yield _shown(sandbox, issued)
        for credit in case.get("credits", []):
            yield _shown(sandbox, _credit(credit))


def _sandbox(case: dict[str, Any]) -> _Sandbox:
    customer = case["customer"]
    time_zone(customer["billing_timezone"])
    token = uuid7().hex[-10:]
    tenant = create_tenant(
        slug=f"case-{token}",
        name=f"Billing case {case.get('id', '')}".strip(),
        currency=parse_currency(customer["currency"]),
        billing_timezone=customer["billing_timezone"],
        vat_rate=parse_decimal(customer["vat_rate"], field="vat_rate", places=4),
    )
    return _Sandbox(case, tenant, mark=f"{token}-")


def _prices(sandbox: _Sandbox) -> list[_CasePrice]:
    """The prices of the file. Raises PriceConflict where two of a kind begin together."""
    prices: dict[tuple[str, str, datetime], _CasePrice] = {}
    for row in sandbox.case["prices"]:
        end = row.get("effective_to")
        price = _CasePrice(
            id=row["id"],
            kind=row["kind"],
            sku=row["sku"],
            amount=parse_decimal(row["unit_price"], field="unit_price", places=PRICE_PLACES),
            start=_instant(row["effective_from"], "effective_from"),
            end=_NEVER if end is None else _instant(end, "effective_to"),
        )
        if price.kind not in PriceKind.values:
            raise MalformedCase(where="kind", problem=f"{price.kind} is no kind of price")
        key = (price.kind, price.sku, price.start)
        if key in prices:
            raise PriceConflict(
                sku=price.sku,
                kind=price.kind,
                at=price.start.isoformat(),
                ids=f"{prices[key].id}, {price.id}",
            )
        prices[key] = price
        sandbox.unit_prices[price.id] = row["unit_price"]
    return list(prices.values())


def _load_prices(sandbox: _Sandbox, prices: list[_CasePrice]) -> None:
    """Prices that overlap become the pieces of time in which each is the latest one in force."""
    groups: dict[tuple[str, str], list[_CasePrice]] = {}
    for price in prices:
        groups.setdefault((price.kind, price.sku), []).append(price)
    Price.objects.bulk_create(
        Price(
            book=_book(sandbox, kind),
            code=price.id,
            sku=sandbox.sku(sku),
            amount=price.amount,
            effective_from=start,
            effective_to=None if end == _NEVER else end,
        )
        for (kind, sku), group in groups.items()
        for price, start, end in _segments(group)
    )


def _segments(prices: list[_CasePrice]) -> Iterator[tuple[_CasePrice, datetime, datetime]]:
    edges = sorted({edge for price in prices for edge in (price.start, price.end)})
    for start, end in pairwise(edges):
        in_force = [price for price in prices if price.start <= start < price.end]
        if in_force:
            yield max(in_force, key=lambda price: price.start), start, end


def _book(sandbox: _Sandbox, kind: str) -> PriceBook:
    tenant = sandbox.tenant.pk if kind == PriceKind.CONTRACT else None
    book, _made = PriceBook.objects.get_or_create(
        kind=kind,
        currency=sandbox.currency,
        tenant=tenant,
        defaults={
            "code": f"{sandbox.mark}{kind}",
            "name": f"{kind} {sandbox.currency}",
        },
    )
    return book


def _load_contract(sandbox: _Sandbox) -> None:
    terms = sandbox.case.get("contract")
    if not terms:
        return
    start = _instant(terms["start"], "start")
    minimum = terms.get("minimum_monthly_charge")
    Contract.objects.create(
        tenant=sandbox.tenant.pk,
        code=f"{sandbox.mark}contract",
        currency=sandbox.currency,
        effective_from=start,
        effective_to=None if terms.get("end") is None else _instant(terms["end"], "end"),
        discount_percent=parse_decimal(
            terms.get("discount_percent") or "0", field="discount_percent", places=4
        ),
        minimum_monthly_charge=None
        if minimum is None
        else parse_decimal(minimum, field="minimum_monthly_charge", places=4),
        created_at=start,
    )


def _load_reservations(sandbox: _Sandbox, project: Project, person: User) -> None:
    for row in sorted(sandbox.case.get("reservations") or [], key=lambda row: str(row["id"])):
        start = _instant(row["start"], "start")
        Reservation.objects.create(
            serial=Reservation.objects.count() + 1,
            project=project,
            placed_by=person,
            status=ReservationStatus.ACTIVE,
            name=row["id"],
            offering_id=uuid7(),
            sku=sandbox.sku(row["sku"]),
            offering_name=row["sku"],
            site_id=uuid7(),
            site_code="case",
            quantity=1,
            gpus_each=row["quantity"],
            starts_at=start,
            ends_at=_instant(row["end"], "end"),
            currency=sandbox.currency,
            price_id=uuid7(),
            unit_price=parse_decimal(row["unit_price"], field="unit_price", places=PRICE_PLACES),
            begun_at=start,
            created_at=start,
        )
        sandbox.reserved_prices[row["id"]] = row["unit_price"]


def _load_facts(sandbox: _Sandbox, project: Project, person: User) -> None:
    lock_facts_shared()
    # In the order of the file's ids: reservations cover what began together by id.
    for row in sorted(sandbox.case["allocations"], key=lambda row: str(row["id"])):
        service = _service(sandbox, row, project, person)
        for number, record in enumerate(row["states"], 1):
            _load_record(service, record, f"{row['id']}/{number}")


def _load_record(service: Service, record: dict[str, Any], key: str) -> None:
    """A state of the file; without an end it is live, superseded it is taken back from then on."""
    start = _instant(record["start"], "start")
    end = None if record.get("end") is None else _instant(record["end"], "end")
    if end is not None and end < start:
        raise EndBeforeStart(field="end", start=record["start"], end=record["end"])
    if record["state"] not in ServiceState.values:
        raise MalformedCase(where="state", problem=f"{record['state']} is no state of a service")
    recorded = record.get("recorded_at")
    fact = Fact.objects.create(
        service=service,
        state=record["state"],
        start_at=start,
        end_at=end,
        recorded_at=start if recorded is None else _instant(recorded, "recorded_at"),
        source=FactSource.LIVE if end is None else FactSource.IMPORTED,
        source_key=key,
        cause="billing case",
    )
    if record.get("superseded_at") is not None:
        Fact.objects.create(
            service=service,
            start_at=start,
            end_at=end,
            recorded_at=_instant(record["superseded_at"], "superseded_at"),
            source=FactSource.CORRECTION,
            source_key=f"{key}/superseded",
            cause="billing case",
            supersedes=fact,
        )


def _service(sandbox: _Sandbox, row: dict[str, Any], project: Project, person: User) -> Service:
    terms: dict[str, Any] = {
        "offering_id": uuid7(),
        "sku": sandbox.sku(row["sku"]),
        "offering_name": row["sku"],
        "site_id": uuid7(),
        "site_code": "case",
        "quantity": 1,
        "gpus_each": row["quantity"],
        "currency": sandbox.currency,
        "plan": "on_demand",
        "billing_basis": "running",  # a case charges time in state active and no other
        "price_rule": PriceRule.IN_FORCE,
        "price_id": uuid7(),
        "unit_price": Decimal(0),
    }
    quote = Quote.objects.create(
        **terms,
        price_kind=PriceKind.LIST,
        vat_rate=sandbox.tenant.vat_rate,
        created_by=person,
        valid_until=_NEVER,
    )
    order = Order.objects.create(
        **terms,
        serial=next_order_serial(),
        project=project,
        placed_by=person,
        quote=quote,
        status=OrderStatus.ACCEPTED,
        name=row["id"],
        image_code="case",
        if_unavailable=IfUnavailable.FAIL,
    )
    return Service.objects.create(
        order=order,
        project=project,
        ordinal=1,
        name=row["id"],
        state=ServiceState.ACTIVE,
        sku=order.sku,
        gpus=order.gpus_each,
        site_id=order.site_id,
        site_code=order.site_code,
    )


def _credit(credit: dict[str, Any]) -> Document:
    invoice = Document.objects.get(kind=DocumentKind.INVOICE, period=credit["period"])
    lines = list(invoice.lines.filter(service_name=credit["ref"]).values_list("pk", flat=True))
    if not lines:
        raise NothingToCredit(field="ref", number=invoice.number)
    return services.credit_lines(
        document_id=invoice.pk,
        line_ids=lines,
        actor=None,
        reason="billing case",
        series="CASE-CN",
    )


def _set_clock(instant: datetime) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('neo.clock_offset',"
            " (%s::timestamptz - clock_timestamp())::text, true)",
            [instant],
        )


def _instant(text: str, name: str) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError):
        instant = None
    if instant is None or instant.tzinfo is None or instant.microsecond:
        problem = f"{text} is no instant in whole seconds with an offset"
        raise MalformedCase(where=name, problem=problem)
    return instant


def _shown(sandbox: _Sandbox, document: Document) -> dict[str, Any]:
    """A document as the case format writes it."""
    zone = time_zone(document.billing_timezone)

    def money(amount: Decimal) -> str:
        return str(Money(Decimal(amount), document.currency))

    return {
        "type": str(document.kind),
        "period": document.period,
        "period_start": document.period_start.astimezone(zone).isoformat(),
        "period_end": document.period_end.astimezone(zone).isoformat(),
        "lines": [
            {
                "kind": str(line.kind),
                **_measured(sandbox, line),
                "amount": money(line.amount),
                **_for_period(document, line),
            }
            for line in document.lines.all()
        ],
        "subtotal": money(document.subtotal),
        "tax": money(document.tax),
        "total": money(document.total),
    }


def _measured(sandbox: _Sandbox, line: DocumentLine) -> dict[str, str | None]:
    """What a line charges by the hour; a discount and a minimum have nothing to measure."""
    if not line.sku:
        return dict.fromkeys(("ref", "sku", "price_id", "gpu_hours", "unit_price"))
    return {
        "ref": line.service_name,
        "sku": line.sku.removeprefix(sandbox.mark),
        "price_id": line.price_code or None,
        "gpu_hours": f"{line.gpu_hours:.6f}",
        "unit_price": sandbox.unit_prices[line.price_code]
        if line.price_code
        else sandbox.reserved_prices[line.service_name],
    }


def _for_period(document: Document, line: DocumentLine) -> dict[str, str]:
    """The month a late or corrected line belongs to."""
    if line.kind == LineKind.CORRECTION:
        return {"for_period": document.period}
    if line.kind != LineKind.LATE_USAGE or line.first_at is None:
        return {}
    invoices = Document.objects.filter(kind=DocumentKind.INVOICE)
    for invoice in invoices:
        month = billing_month(invoice.period, invoice.billing_timezone)
        if line.first_at in month:
            return {"for_period": invoice.period}
    return {}
