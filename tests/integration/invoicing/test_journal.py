"""The journal of documents: double entry, exact, with the operator's own accounts."""

import csv
import io
import zipfile
from collections import defaultdict
from decimal import Decimal

import pytest

from apps.audit.models import AuditEntry
from apps.core import workbooks
from apps.invoicing import exports, journal, services
from apps.invoicing.journal import WrongAccount
from apps.tenancy.context import platform_context
from tests.builders import a_price, a_used_service, move_clock


@pytest.fixture
def issued(acme):
    a_price("4001.37")
    a_used_service()
    a_used_service("2026-03-20T00:00:00", "2026-03-20T01:00:01")
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    return services.issue_invoice(document_id=draft.pk, actor=None)


def entries():
    content = b"".join(journal.journal_csv()).decode("utf-8-sig")
    return list(csv.DictReader(io.StringIO(content, newline="")))


def sums(rows):
    found = defaultdict(Decimal)
    for row in rows:
        found[row["document"], row["account"]] += Decimal(row["debit"] or 0) - Decimal(
            row["credit"] or 0
        )
    return dict(found)


def test_an_invoice_debits_the_receivable_and_credits_revenue_and_tax(issued):
    found = sums(entries())

    assert found[issued.number, "108"] == issued.total
    assert found[issued.number, "401"] == -issued.subtotal
    assert found[issued.number, "255"] == -issued.tax
    assert sum(found.values()) == 0


def test_a_credit_note_is_the_exact_mirror(issued):
    note = services.credit_lines(
        document_id=issued.pk,
        line_ids=[line.pk for line in issued.lines.all()],
        actor=None,
        reason="ordered twice",
    )

    found = sums(entries())

    assert found[note.number, "108"] == -issued.total
    for account in ("108", "255", "401"):
        assert found[note.number, account] == -found[issued.number, account]
    (corrected,) = {row["corrects_number"] for row in entries() if row["document"] == note.number}
    assert corrected == issued.number


def test_the_operators_own_accounts_are_used_and_the_choice_is_audited(issued):
    with platform_context():
        journal.choose_account(role="revenue", number="4110-GPU", name="GPU cloud", actor=None)
        assert AuditEntry.objects.filter(action="journal.account_changed").count() == 1

    revenue = [row for row in entries() if row["credit"] and row["account"] not in ("255", "108")]

    assert {(row["account"], row["account_name"]) for row in revenue} == {("4110-GPU", "GPU cloud")}


def test_what_is_no_account_is_refused(platform):
    with pytest.raises(WrongAccount, match="=cmd"):
        journal.choose_account(role="tax", number="=cmd()", name="", actor=None)


def test_a_workbook_has_the_same_cells_with_amounts_as_numbers(issued):
    pieces = workbooks.workbook(exports.lines_csv(), numbers={"amount", "gpu_seconds"})

    book = zipfile.ZipFile(io.BytesIO(b"".join(pieces)))
    sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert f"<v>{issued.lines.first().amount:.0f}</v>" in sheet
    assert issued.number in sheet
    assert "<f>" not in sheet


def test_a_workbook_never_runs_what_people_typed_and_keeps_leading_zeros():
    pieces = [b"\xef\xbb\xbfname,code,amount\r\n", b"'=1+1,00012,12345678901234567890\r\n"]

    book = zipfile.ZipFile(io.BytesIO(b"".join(workbooks.workbook(pieces, numbers={"amount"}))))

    sheet = book.read("xl/worksheets/sheet1.xml").decode()
    assert "<t>=1+1</t>" in sheet
    assert "<t>00012</t>" in sheet
    assert "<t>12345678901234567890</t>" in sheet
    assert "<f>" not in sheet


def test_more_rows_than_a_sheet_holds_are_refused(monkeypatch):
    monkeypatch.setattr(workbooks, "MOST_ROWS", 2)
    with pytest.raises(workbooks.TooManyRows, match="2 rows"):
        workbooks.workbook([b"a\r\n1\r\n2\r\n3\r\n"], numbers=())
