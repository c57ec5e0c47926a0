"""CSV for finance: the bytes, the columns, the figures, and whose rows they are."""

import csv
import io

import pytest

from apps.invoicing import exports, services
from apps.tenancy.context import platform_context, tenant_context
from tests.builders import (
    a_fact,
    a_price,
    a_project,
    a_service,
    a_used_service,
    an_order,
    move_clock,
)


def rows(chunks):
    return list(csv.DictReader(io.StringIO(b"".join(chunks).decode("utf-8-sig"), newline="")))


@pytest.fixture
def two_tenants(acme, globex):
    """Acme's invoice with late usage and a credit note, and one of Globex."""
    a_price(4000)
    order = an_order(project=a_project('=1+2, "양자"'), gpus_each=8)
    a_used_service(order=order)
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    march = services.issue_invoice(document_id=draft.pk, actor=None)
    a_fact(
        a_service(gpus_each=2),
        start="2026-03-20T00:00:00",
        end="2026-03-20T03:00:00",
        recorded="2026-04-05T00:00:00",
    )
    move_clock("2026-05-01T12:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-04", actor=None)
    services.issue_invoice(document_id=draft.pk, actor=None)
    services.credit_lines(
        document_id=march.pk, line_ids=[march.lines.get().pk], actor=None, reason="-slow"
    )
    with tenant_context(globex):
        a_price("2.5", currency="USD")
        a_used_service(currency="USD", gpus_each=1)
        draft = services.draft_invoice(tenant=globex, period="2026-03", actor=None)
        services.issue_invoice(document_id=draft.pk, actor=None)
    return acme, globex


def test_a_tenant_gets_its_own_documents_in_a_stable_order(two_tenants):
    found = rows(exports.invoices_csv())
    assert [(row["number"], row["total"], row["currency"]) for row in found] == [
        ("CN-2026-000001", "-35200", "KRW"),
        ("INV-2026-000001", "35200", "KRW"),
        ("INV-2026-000002", "26400", "KRW"),
    ]
    assert found[0]["corrects_number"] == "INV-2026-000001"
    assert found[0]["reason"] == "'-slow"


def test_finance_gets_every_tenant_with_one_header(two_tenants):
    with platform_context():
        data = b"".join(exports.invoices_csv(period="2026-03"))
    assert data.startswith(b"\xef\xbb\xbftenant,customer,document_kind,number,period,")
    assert data.count(b"\xef\xbb\xbf") == data.count(b"document_kind") == 1
    assert data.count(b"\r\n") == data.count(b"\n") == 4
    found = rows([data])
    assert [(row["tenant"], row["total"]) for row in found] == [
        ("acme", "-35200"),
        ("acme", "35200"),
        ("globex", "2.75"),
    ]


def test_lines_say_what_they_follow_from_in_cells_excel_does_not_run(two_tenants):
    data = b"".join(exports.lines_csv(period="2026-03"))
    assert ',"\'=1+2, ""양자""",'.encode() in data
    line = next(row for row in rows([data]) if row["line_kind"] == "usage")
    assert (line["gpu_seconds"], line["gpu_hours"]) == ("28800", "8.000000")
    assert (line["unit_price"], line["amount"]) == ("4000", "32000")
    assert (line["first_at"], line["last_at"]) == ("2026-03-10T00:00:00Z", "2026-03-10T01:00:00Z")
    assert line["order_number"].startswith("ORD-")


def test_usage_adds_up_to_the_lines(two_tenants):
    def sums(found):
        total = {}
        for row in found:
            if row["line_kind"] != "correction":
                key = (row["number"], row["line_kind"], row["service_id"], row["price_code"])
                total[key] = total.get(key, 0) + int(row["gpu_seconds"])
        return total

    with platform_context():
        usage, lines = rows(exports.usage_csv()), rows(exports.lines_csv())
    assert sums(usage) == sums(lines)
    assert {row["unit_price"] for row in usage} == {"4000", "2.50"}
    assert all(row["fact_id"] and row["state"] == "active" for row in usage)


def test_drafts_are_not_exported(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    assert rows(exports.invoices_csv()) == rows(exports.lines_csv()) == []


def test_the_file_is_read_as_the_side_it_was_asked_for_on(two_tenants):
    asked_by_acme = exports.invoices_csv()
    with platform_context():
        assert {row["tenant"] for row in rows(asked_by_acme)} == {"acme"}


def test_nobody_gets_nothing(db):
    with pytest.raises(LookupError):
        exports.invoices_csv()
