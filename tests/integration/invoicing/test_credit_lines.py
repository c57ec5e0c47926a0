"""Lines are given back by a credit note: exactly, once, with a reason."""

import pytest
from django.db import DatabaseError, transaction

from apps.audit.models import AuditEntry
from apps.core.uuids import uuid7
from apps.invoicing import services
from apps.invoicing.errors import (
    AlreadyCredited,
    CreditTooLarge,
    NothingToCredit,
    NotIssued,
    ReasonMissing,
)
from apps.invoicing.models import Document, DocumentLine, InvoiceProjection
from tests.builders import a_price, a_used_service, move_clock


@pytest.fixture
def invoice(acme):
    a_price(1005)
    for day in range(1, 5):
        a_used_service(f"2026-03-1{day}T00:00:00", f"2026-03-1{day}T01:00:00", gpus_each=1)
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    return services.issue_invoice(document_id=draft.pk, actor=None)


def credit(invoice, *lines, reason="The server was slow.", amounts=None):
    return services.credit_lines(
        document_id=invoice.pk,
        line_ids=[line.pk for line in lines],
        actor=None,
        reason=reason,
        amounts=amounts,
    )


def test_a_credit_note_mirrors_its_lines(invoice):
    line = invoice.lines.first()
    note = credit(invoice, line)
    mirror = note.lines.get()
    assert (mirror.amount, mirror.gpu_seconds, mirror.corrects) == (-1005, -3600, line)
    assert (note.subtotal, note.tax, note.total) == (-1005, -101, -1106)
    assert (note.number, note.corrects, note.status) == ("CN-2026-000001", invoice, "issued")
    assert InvoiceProjection.objects.get(document=note.pk).total == -1106
    assert AuditEntry.objects.get(action="credit_note.issued").reason == "The server was slow."


def test_crediting_line_by_line_gives_back_exactly_the_invoice(invoice):
    notes = [credit(invoice, line) for line in invoice.lines.all()]
    assert sum(note.tax for note in notes) == -invoice.tax
    assert sum(note.total for note in notes) == -invoice.total


def test_a_line_is_credited_once(invoice):
    first, second = invoice.lines.all()[:2]
    number = credit(invoice, first).number
    with pytest.raises(AlreadyCredited, match=number):
        credit(invoice, first, second)


def test_a_credit_needs_lines_of_this_invoice_and_a_reason(invoice):
    with pytest.raises(ReasonMissing):
        credit(invoice, *invoice.lines.all(), reason=" ")
    with pytest.raises(NothingToCredit):
        credit(invoice)
    with pytest.raises(NothingToCredit):
        services.credit_lines(
            document_id=invoice.pk, line_ids=[uuid7()], actor=None, reason="a mistake"
        )


def test_a_draft_cannot_be_credited(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    with pytest.raises(NotIssued):
        credit(draft, draft.lines.get())


def test_a_line_is_credited_in_parts_up_to_its_amount_and_never_beyond(invoice):
    line = invoice.lines.first()
    first = credit(invoice, line, amounts={line.pk: "400"})
    assert (first.subtotal, first.tax) == (-400, -40)
    assert first.lines.get().gpu_seconds == 0
    with pytest.raises(CreditTooLarge, match="605 KRW"):
        credit(invoice, line, amounts={line.pk: "606"})
    rest = credit(invoice, line)
    assert (rest.subtotal, rest.tax) == (-605, -61)
    assert rest.lines.get().gpu_seconds == -3600
    with pytest.raises(AlreadyCredited):
        credit(invoice, line, amounts={line.pk: "1"})


def test_the_database_refuses_more_than_was_charged(invoice):
    line = invoice.lines.first()
    credit(invoice, line, amounts={line.pk: "1000"})
    note = Document.objects.create(
        **{
            name: getattr(invoice, name)
            for name in (
                "period", "period_start", "period_end", "supply_end", "billing_timezone",
                "currency", "vat_rate", "as_of",
            )
        },
        kind="credit_note", subtotal=-6, tax=0, total=-6, corrects=invoice,
    )  # fmt: skip
    with pytest.raises(DatabaseError, match="never credited beyond"), transaction.atomic():
        DocumentLine.objects.create(
            document=note, position=1, kind="correction", corrects=line, amount=-6, ref="x"
        )
