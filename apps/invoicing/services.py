"""Every change to invoices and credit notes: drafted, rated again, issued, credited."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import Sum

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, instants, outbox
from apps.core.money import Money, credit_tax, minor_places, parse_decimal, tax
from apps.core.periods import Period, billing_month, month_of, time_zone
from apps.core.realms import current_tenant_id
from apps.invoicing import agreements, late, rating, selectors
from apps.invoicing.agreements import AgreedLine
from apps.invoicing.errors import (
    AlreadyCredited,
    AlreadyInvoiced,
    CreditTooLarge,
    DocumentNotFound,
    DraftIsStale,
    NothingToCredit,
    NothingToInvoice,
    NotIssued,
    PeriodNotOver,
    ReasonMissing,
    ReservationsOpen,
    ServicesOpen,
)
from apps.invoicing.models import (
    Document,
    DocumentKind,
    DocumentLine,
    DocumentStatus,
    InvoiceProjection,
    LineKind,
)
from apps.invoicing.sellers import seller_printed
from apps.orders.ledger import lock_facts_exclusive
from apps.orders.models import Reservation, Service
from apps.orders.states import TAKES_OR_PAYS, ServiceState
from apps.tenancy.models import Tenant
from apps.tenancy.selectors import current_tenant

log = structlog.get_logger(__name__)
INVOICES, CREDIT_NOTES = "INV", "CN"
OPEN_STATES = (
    ServiceState.PROVISIONING,
    ServiceState.ACTIVE,
    ServiceState.STOPPED,
    ServiceState.SUSPENDED,
    ServiceState.PREEMPTED,
    ServiceState.DELETING,
)
_LONGEST_REASON = 300


@transaction.atomic
def draft_invoice(
    *,
    tenant: Tenant,
    period: str,
    actor: User | None,
    final: bool = False,
    currency: str | None = None,
) -> Document | None:
    """Rate a month ("2026-03") of the tenant this connection is in, and keep that as its draft.

    Drafting again rates the same draft again. None when nothing is charged. `final` allows a month
    that has not ended when every service has. Raises PeriodNotOver, ServicesOpen, AlreadyInvoiced,
    NoPrice.
    """
    _must_be_in(tenant)
    currency = currency or tenant.currency
    month = billing_month(period, tenant.billing_timezone)
    lock_facts_exclusive()
    as_of = clock.now()
    supply_end = _supply_end(month, period, tenant, as_of, final)
    _refuse_invoiced(period, currency)
    draft = Document.objects.filter(
        kind=DocumentKind.INVOICE, status=DocumentStatus.DRAFT, period=period, currency=currency
    ).first()
    before = _figures(draft) if draft else None
    terms = {
        "period_start": month.start,
        "period_end": month.end,
        "supply_end": supply_end,
        "billing_timezone": tenant.billing_timezone,
        "vat_rate": tenant.vat_rate,
        "as_of": as_of,
        "customer": _customer(tenant),
        "seller": seller_printed(),
    }
    if draft is None:
        draft = Document(
            kind=DocumentKind.INVOICE, period=period, currency=currency, subtotal=0, tax=0, total=0
        )
    for name, value in terms.items():
        setattr(draft, name, value)
    if not _rate(draft):
        _drop(draft)
        return None
    audit.record(actor, "invoice.drafted", draft, before=before, after=_figures(draft))
    outbox.publish("invoice.drafted", subject=draft.pk, **_figures(draft))
    log.info("invoice.drafted", document=str(draft.pk), period=period)
    return draft


def issue_invoice(*, document_id: UUID, actor: User | None, series: str = INVOICES) -> Document:
    """Give a draft its number, for ever. Issuing an issued invoice returns it as it is.

    Rates once more first: raises DraftIsStale when that gives anything else than the draft, which
    then shows the new figures; NothingToInvoice when nothing is charged any more.
    """
    stale: DraftIsStale | NothingToInvoice | None = None
    with transaction.atomic():
        document, stale = _issue(document_id, actor, series)
    if stale is not None:
        raise stale
    return document


@transaction.atomic
def credit_lines(
    *,
    document_id: UUID,
    line_ids: list[UUID],
    actor: User | None,
    reason: str,
    amounts: Mapping[UUID, Decimal | str] | None = None,
    series: str = CREDIT_NOTES,
) -> Document:
    """Give lines of an issued invoice back by a credit note, which is issued at once.

    `amounts`, before tax and by line, give back that much of a line; of the others all that is
    left. Tax is cumulative: crediting everything gives back exactly the invoice, in however many
    parts. Raises NotIssued, NothingToCredit, AlreadyCredited, CreditTooLarge, ReasonMissing.
    """
    reason = reason.strip()
    if not 1 <= len(reason) <= _LONGEST_REASON:
        raise ReasonMissing(field="reason")
    invoice = _locked(document_id)
    if invoice.kind != DocumentKind.INVOICE or invoice.status != DocumentStatus.ISSUED:
        raise NotIssued(document=str(invoice))
    lines = list(invoice.lines.filter(pk__in=set(line_ids)))
    if not lines or len(lines) != len(set(line_ids)):
        raise NothingToCredit(field="line_ids", number=invoice.number)
    parts = [_part(invoice, line, (amounts or {}).get(line.pk)) for line in lines]
    note = _credit_note(invoice, parts, reason)
    _give_number(note, actor, series)
    audit.record(actor, "credit_note.issued", note, reason=reason, after=_figures(note))
    outbox.publish("credit_note.issued", subject=note.pk, invoice=str(invoice.pk), **_figures(note))
    log.info("credit_note.issued", number=note.number, invoice=invoice.number)
    return note


def _must_be_in(tenant: Tenant) -> None:
    if current_tenant_id() != tenant.pk:
        raise LookupError(f"invoices of {tenant.slug} are made in its own context")


def _supply_end(
    month: Period, period: str, tenant: Tenant, as_of: datetime, final: bool
) -> datetime:
    """Up to when the invoice charges: the month's end, or now for an early final invoice."""
    if as_of >= month.end:
        return month.end
    if not final or as_of < month.start:
        ends = instants.in_words(month.end, of=time_zone(tenant.billing_timezone))
        raise PeriodNotOver(field="period", period=period, ends=ends)
    return _final_end(month.end, as_of)


def _final_end(month_end: datetime, as_of: datetime) -> datetime:
    """Up to when a final invoice charges. Raises ServicesOpen while more could be charged."""
    if as_of >= month_end:
        return month_end
    names = list(
        Service.objects.filter(state__in=OPEN_STATES).order_by("pk").values_list("name", flat=True)
    )
    if names:
        raise ServicesOpen(field="final", count=len(names), names=", ".join(names[:3]))
    held = list(
        Reservation.objects.filter(status__in=TAKES_OR_PAYS)
        .order_by("serial")
        .values_list("name", flat=True)
    )
    if held:
        raise ReservationsOpen(field="final", count=len(held), names=", ".join(held[:3]))
    return as_of.replace(microsecond=0)


def _refuse_invoiced(period: str, currency: str) -> None:
    issued = Document.objects.filter(
        kind=DocumentKind.INVOICE, status=DocumentStatus.ISSUED, period=period, currency=currency
    ).first()
    if issued is not None:
        raise AlreadyInvoiced(issued.pk, period=period, number=issued.number)


def _rate(draft: Document) -> bool:
    """Write the draft, its lines, tax and projection; False when it has no lines."""
    draft.save()
    draft.lines.all().delete()
    window = rating.Window(
        as_of=draft.as_of,
        since=draft.period_start,
        until=draft.supply_end,
        currency=draft.currency,
    )
    stored = rating.store(window, document=draft, kind=LineKind.USAGE)
    count, total = stored.lines, stored.total
    agreed = agreements.agreed_lines(
        agreements.Month.of(draft), usage=Money(total, draft.currency), usage_lines=count
    )
    DocumentLine.objects.bulk_create(
        _agreed(line, draft, count + number) for number, line in enumerate(agreed, 1)
    )
    count += len(agreed)
    total += sum((line.amount.amount for line in agreed), Decimal(0))
    for change in late.late_usage(currency=draft.currency, as_of=draft.as_of):
        stored = rating.store(
            selectors.late_window(change, draft.as_of),
            document=draft,
            kind=LineKind.LATE_USAGE,
            after=count,
            note=f" · {change.invoice.period}",
        )
        count, total = count + stored.lines, total + stored.total
    subtotal = Money(total, draft.currency)
    taxes = tax(subtotal, draft.vat_rate)
    draft.subtotal, draft.tax, draft.total = (
        subtotal.amount,
        taxes.amount,
        (subtotal + taxes).amount,
    )
    draft.save(update_fields=["subtotal", "tax", "total"])
    _project(draft)
    return count > 0


def _agreed(line: AgreedLine, draft: Document, position: int) -> DocumentLine:
    return DocumentLine(
        document=draft,
        position=position,
        kind=line.kind,
        ref=line.ref,
        description=line.description[:300],
        amount=line.amount.amount,
        **line.columns,
    )


def _drop(draft: Document) -> None:
    InvoiceProjection.objects.filter(document=draft.pk).delete()
    draft.delete()


def _issue(
    document_id: UUID, actor: User | None, series: str
) -> tuple[Document, DraftIsStale | NothingToInvoice | None]:
    lock_facts_exclusive()  # before the document, as when it is drafted
    document = _locked(document_id)
    if document.status == DocumentStatus.ISSUED:
        return document, None
    before, before_lines = _figures(document), _content(document)
    document.as_of = clock.now()
    if document.supply_end < document.period_end:
        document.supply_end = _final_end(document.period_end, document.as_of)
    if selectors.rated_content(document) != before_lines:
        if not _rate(document):
            _drop(document)
            return document, NothingToInvoice(period=document.period)
        audit.record(
            actor, "invoice.rated_again", document, before=before, after=_figures(document)
        )
        return document, DraftIsStale(before=before["total"], after=_figures(document)["total"])
    _give_number(document, actor, series)
    audit.record(
        actor, "invoice.issued", document, before={"status": "draft"}, after=_figures(document)
    )
    outbox.publish("invoice.issued", subject=document.pk, **_figures(document))
    log.info("invoice.issued", number=document.number, period=document.period)
    return document, None


def _content(document: Document) -> Counter[tuple[Any, ...]]:
    """What the stored lines say, as `selectors.rated_content` says it of fresh ones."""
    return Counter(
        document.lines.values_list(
            "kind",
            "service_id",
            "version",
            "first_at",
            "last_at",
            "price_code",
            "unit_price",
            "gpu_seconds",
            "amount",
        )
    )


def _give_number(document: Document, actor: User | None, series: str) -> None:
    """Issue: the number comes last, because its row is locked until the transaction ends."""
    zone = document.billing_timezone
    supplied = document.supply_end - timedelta(seconds=1)
    if document.kind == DocumentKind.CREDIT_NOTE:
        supplied = document.as_of.replace(microsecond=0)
    year = month_of(supplied, zone)[:4]
    document.status = DocumentStatus.ISSUED
    document.issued_by = str(actor) if actor is not None else "NeoCloud OS"
    document.issued_at = clock.now()
    document.due_on = _due_on(document)
    document.number = _next_number(f"{series}-{year}")
    document.save()
    _project(document)


def _due_on(document: Document) -> date | None:
    """The last day to pay an invoice, by the contract in force at the end of its supply."""
    if document.kind != DocumentKind.INVOICE or document.issued_at is None:
        return None
    contract = agreements.contract_at(agreements.Month.of(document))
    days = contract.payment_days if contract else settings.NEOCLOUD_PAYMENT_DAYS
    issued_on = document.issued_at.astimezone(time_zone(document.billing_timezone)).date()
    return issued_on + timedelta(days=days)


def _next_number(code: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO public.invoicing_numberseries AS s (code, next_number) VALUES (%s, 2)"
            " ON CONFLICT (code) DO UPDATE SET next_number = s.next_number + 1"
            " RETURNING next_number - 1",
            [code],
        )
        (number,) = cursor.fetchone()
    return f"{code}-{number:06d}"


def _locked(document_id: UUID) -> Document:
    document = Document.objects.select_for_update().filter(pk=document_id).first()
    if document is None:
        raise DocumentNotFound()
    return document


@dataclass(frozen=True, slots=True)
class _Part:
    """How much of a line is given back; `seconds` only with the last of it."""

    line: DocumentLine
    amount: Decimal
    seconds: int
    hours: Decimal


def _part(invoice: Document, line: DocumentLine, asked: Decimal | str | None) -> _Part:
    """What is asked of a line, else all that is left. The database checks the sum once more."""
    done = line.corrections.aggregate(
        amount=Sum("amount"), seconds=Sum("gpu_seconds"), hours=Sum("gpu_hours")
    )
    left = line.amount + (done["amount"] or 0)
    if done["amount"] is not None and not left:
        last = line.corrections.select_related("document").latest("document__issued_at")
        raise AlreadyCredited(
            field="line_ids",
            position=line.position,
            line=line.description,
            number=last.document.number,
        )
    seconds = line.gpu_seconds + (done["seconds"] or 0)
    hours = line.gpu_hours + (done["hours"] or 0)
    if asked is None:
        return _Part(line, left, seconds, hours)
    wanted = parse_decimal(asked, field="amounts", places=minor_places(invoice.currency))
    if not 0 < wanted <= abs(left):
        raise CreditTooLarge(
            field="amounts",
            position=line.position,
            left=str(Money(abs(left), invoice.currency)),
            currency=invoice.currency,
        )
    if wanted == abs(left):
        return _Part(line, left, seconds, hours)
    return _Part(line, wanted.copy_sign(left), 0, Decimal(0))


def _credit_note(invoice: Document, parts: list[_Part], reason: str) -> Document:
    before = invoice.credit_notes.aggregate(sum=Sum("subtotal"))["sum"] or Decimal(0)
    credit = -Money.total(
        (Money(part.amount, invoice.currency) for part in parts), invoice.currency
    )
    taxes = credit_tax(
        credit=credit, credited_before=Money(before, invoice.currency), rate=invoice.vat_rate
    )
    note = Document.objects.create(
        kind=DocumentKind.CREDIT_NOTE,
        corrects=invoice,
        reason=reason,
        period=invoice.period,
        period_start=invoice.period_start,
        period_end=invoice.period_end,
        supply_end=invoice.supply_end,
        billing_timezone=invoice.billing_timezone,
        currency=invoice.currency,
        vat_rate=invoice.vat_rate,
        subtotal=credit.amount,
        tax=taxes.amount,
        total=(credit + taxes).amount,
        as_of=clock.now(),
        customer=invoice.customer,
        seller=invoice.seller,
    )
    DocumentLine.objects.bulk_create(
        _mirrored(part, note, position) for position, part in enumerate(parts, 1)
    )
    return note


def _mirrored(part: _Part, note: Document, position: int) -> DocumentLine:
    """The exact opposite of a line, or of a part of it."""
    line = part.line
    same = (
        "ref", "description", "service_id", "service_name", "version", "order_id", "order_number",
        "project_id", "project_name", "contract_id", "node_names", "sku", "quantity", "first_at",
        "last_at", "price_id", "price_code", "price_kind", "unit_price",
    )  # fmt: skip
    return DocumentLine(
        document=note,
        position=position,
        kind=LineKind.CORRECTION,
        corrects=line,
        gpu_seconds=-part.seconds,
        gpu_hours=-part.hours,
        amount=-part.amount,
        **{name: getattr(line, name) for name in same},
    )


def _customer(tenant: Tenant) -> dict[str, str]:
    return {
        "name": tenant.name,
        "legal_name": tenant.legal_name,
        "registration_number": tenant.registration_number,
        "billing_address": tenant.billing_address,
        "billing_email": tenant.billing_email,
    }


def _figures(document: Document) -> dict[str, Any]:
    """What the audit trail and events say of a document."""
    return {
        "kind": str(document.kind),
        "number": document.number,
        "period": document.period,
        "currency": document.currency,
        "subtotal": str(Money(Decimal(document.subtotal), document.currency)),
        "tax": str(Money(Decimal(document.tax), document.currency)),
        "total": str(Money(Decimal(document.total), document.currency)),
    }


def _project(document: Document) -> None:
    InvoiceProjection.objects.update_or_create(
        document=document.pk,
        defaults={
            "tenant": current_tenant().pk,
            "kind": document.kind,
            "status": document.status,
            "number": document.number,
            "period": document.period,
            "currency": document.currency,
            "subtotal": document.subtotal,
            "tax": document.tax,
            "total": document.total,
            "issued_at": document.issued_at,
            "due_on": document.due_on,
            "created_at": document.created_at,
        },
    )
