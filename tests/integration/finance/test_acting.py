"""What finance does: prices by version, closing a month, issuing, crediting, files."""

import csv
import io
from typing import Any

from django.urls import reverse

from apps.catalog.models import Price
from apps.invoicing import runs
from apps.invoicing import services as invoicing
from apps.invoicing.models import Document, InvoiceProjection, InvoiceRun
from apps.tenancy.context import tenant_context
from tests.builders import SKU, a_price
from tests.integration.finance.conftest import PERIOD, Desk, used
from tests.people import Browser

CHANGE = {
    "sku": SKU,
    "unit": "gpu_hour",
    "amount": "3500.5",
    "effective_from": "2026-05-01T00:00:00",
    "zone": "Asia/Seoul",
    "code": "",
}


def url(name: str, *args: Any) -> str:
    return reverse(f"finance:{name}", args=args, urlconf="neocloud.urls_platform")


def close(browser: Browser, period: str = PERIOD) -> Any:
    """Draft the month of everybody, and what the page of the month shows then."""
    browser.post(url("draft_all"), {"period": period})
    runs.work(seconds=60)
    return browser.get(f"{url('month_close')}?period={period}")


def the_draft(desk: Desk) -> InvoiceProjection:
    """The tenant's draft."""
    return InvoiceProjection.objects.get(tenant=desk.tenant.pk, status="draft")


def an_invoice(desk: Desk, browser: Browser) -> InvoiceProjection:
    """The tenant's invoice of the month, drafted and issued on the pages."""
    close(browser)
    draft = the_draft(desk)
    browser.post(url("document_issue", draft.tenant, draft.document))
    return InvoiceProjection.objects.get(document=draft.document)


def test_a_new_price_is_shown_before_it_is_kept(desk: Desk, browser: Browser):
    address = url("price_add", desk.book.pk)
    # when it is tried
    page = browser.post(address, CHANGE).text
    # then what ends is shown and nothing is kept
    assert "What will happen" in page
    assert "This version ends at that second" in page
    assert Price.objects.count() == 1
    # when it is kept
    browser.post(address, CHANGE | {"keep": "1"})
    # then the old version ends where the new one begins
    old, new = Price.objects.order_by("effective_from")
    assert old.effective_to == new.effective_from
    assert new.effective_from.isoformat() == "2026-04-30T15:00:00+00:00"
    assert "to come" in browser.get(url("price_book", desk.book.pk)).text


def test_a_price_that_breaks_a_rule_is_refused_beside_its_field(desk: Desk, browser: Browser):
    address = url("price_add", desk.book.pk)
    for wrong in (
        {"amount": "-1"},
        {"amount": "1.0000001"},
        {"effective_from": "soon"},
        {"effective_from": "0001-01-01T00:00:00"},
        {"effective_from": "9999-12-31T23:59:59"},
    ):
        page = browser.post(address, CHANGE | wrong | {"keep": "1"})
        assert page.status_code == 422, wrong
        assert "is-invalid" in page.text, wrong
    assert Price.objects.count() == 1


def test_invoiced_time_cannot_be_repriced(desk: Desk, browser: Browser):
    an_invoice(desk, browser)
    late = CHANGE | {"effective_from": "2026-03-10T09:00:00", "keep": "1"}
    page = browser.post(url("price_add", desk.book.pk), late)
    assert page.status_code == 422
    assert Price.objects.count() == 1


def test_a_month_is_drafted_reviewed_and_issued(desk: Desk, globex: Any, browser: Browser):
    # given a second tenant in another currency
    used(globex)
    a_price("2.345", currency="USD")
    # when the month is drafted, twice
    close(browser)
    page = close(browser).text
    # then there is one draft for each tenant
    assert InvoiceProjection.objects.filter(status="draft").count() == 2
    assert "₩35,200" in page
    # when the chosen ones are issued
    chosen = [str(one.document) for one in InvoiceProjection.objects.all()]
    page = browser.post(url("issue_chosen"), {"period": PERIOD, "document": chosen}).text
    # then each has its number, and a repeat changes nothing
    assert InvoiceProjection.objects.filter(status="issued").count() == 2
    assert "issued as INV-2026-000001" in page
    browser.post(url("issue_chosen"), {"period": PERIOD, "document": chosen})
    assert InvoiceProjection.objects.count() == 2


def test_one_tenants_trouble_is_told_and_stops_nobody(desk: Desk, globex: Any, browser: Browser):
    used(globex)  # there is no price in USD
    close(browser)
    assert the_draft(desk).total == 35200
    page = browser.get(url("invoice_run", InvoiceRun.objects.get(currency="USD").pk)).text
    assert "has no price in USD" in page


def test_a_run_is_reviewed_and_issued_on_its_page(desk: Desk, browser: Browser):
    close(browser)
    run = InvoiceRun.objects.get()
    address = url("invoice_run", run.pk)
    page = browser.get(address).text
    assert "First invoice: nothing to compare with." in page
    assert "₩35,200" in page
    browser.post(url("invoice_run_act", run.pk, "issue"))
    runs.work(seconds=60)
    page = browser.get(address).text
    assert "INV-2026-000001" in page
    assert "Finished" in page
    assert browser.post(url("invoice_run_act", run.pk, "cancel")).status_code == 409


def test_a_draft_overtaken_by_usage_is_not_issued_but_rated_again(desk: Desk, browser: Browser):
    close(browser)
    draft = the_draft(desk)
    used(desk.tenant, "2026-03-11T00:00:00", "2026-03-11T01:00:00")
    refused = browser.post(url("document_issue", draft.tenant, draft.document))
    assert refused.status_code == 409
    assert the_draft(desk).total == 70400
    browser.post(url("document_redraft", draft.tenant, draft.document))
    browser.post(url("document_issue", draft.tenant, draft.document))
    assert InvoiceProjection.objects.get(document=draft.document).status == "issued"


def test_issuing_many_tells_of_the_stale_one_and_issues_the_others(
    desk: Desk, globex: Any, browser: Browser
):
    # given two drafts, one of them overtaken by usage
    used(globex)
    a_price("2.345", currency="USD")
    close(browser)
    chosen = [str(one.document) for one in InvoiceProjection.objects.all()]
    used(desk.tenant, "2026-03-11T00:00:00", "2026-03-11T01:00:00")
    # when both are issued
    page = browser.post(url("issue_chosen"), {"period": PERIOD, "document": chosen})
    # then one is, and the other is told
    assert page.status_code == 200
    assert "some were refused" in page.text
    assert InvoiceProjection.objects.get(status="issued").tenant == globex.pk
    assert the_draft(desk).total == 70400


def test_chosen_lines_are_credited_once(desk: Desk, browser: Browser):
    used(desk.tenant, "2026-03-11T00:00:00", "2026-03-11T01:00:00")
    invoice = an_invoice(desk, browser)
    with tenant_context(desk.tenant):
        line = Document.objects.get(pk=invoice.document).lines.get(position=1)
    address = url("document_credit", invoice.tenant, invoice.document)
    fields = {"line": [str(line.pk)], "reason": "two hours of a dead link"}
    browser.post(address, fields)
    note = InvoiceProjection.objects.get(kind="credit_note")
    assert note.total == -35200
    page = browser.get(url("document_detail", invoice.tenant, invoice.document)).text
    assert "two hours of a dead link" in page
    assert f'value="{line.pk}"' not in page
    assert browser.post(address, fields).status_code == 409
    assert browser.post(address, {"reason": "x"}).status_code == 422


def test_a_tenant_that_leaves_gets_its_final_invoice_early(desk: Desk, browser: Browser):
    used(desk.tenant, "2026-04-01T00:00:00", "2026-04-01T01:00:00")
    fields = {"period": "2026-04", "tenant": str(desk.tenant.pk)}
    answer = browser.post(url("draft_final"), fields)
    draft = the_draft(desk)
    assert draft.period == "2026-04"
    assert answer["Location"] == url("document_detail", desk.tenant.pk, draft.document)


def test_files_are_streamed_with_the_lines_of_issued_documents(desk: Desk, browser: Browser):
    invoice = an_invoice(desk, browser)
    for name, column, value in (
        ("invoices", "total", "35200"),
        ("lines", "gpu_seconds", "28800"),
        ("usage", "seconds", "3600"),
    ):
        answer = browser.get(url("download", name, "csv") + f"?period={PERIOD}")
        assert answer.streaming
        assert answer["Content-Type"].startswith("text/csv")
        text = b"".join(answer.streaming_content).decode("utf-8-sig")
        (row,) = csv.DictReader(io.StringIO(text))
        assert row["number"] == invoice.number
        assert row[column] == value
    assert browser.get(url("download", "lines", "csv") + "?period=never").status_code == 422
    assert browser.get(url("download", "secrets", "csv")).status_code == 404


def test_a_document_of_one_tenant_is_not_found_under_another(
    desk: Desk, globex: Any, browser: Browser
):
    invoice = an_invoice(desk, browser)
    assert browser.get(url("document_detail", globex.pk, invoice.document)).status_code == 404


def test_a_line_of_one_document_is_not_found_under_another(desk: Desk, browser: Browser):
    invoice = an_invoice(desk, browser)
    with tenant_context(desk.tenant):
        line = Document.objects.get(pk=invoice.document).lines.get()
    address = url("line_detail", desk.tenant.pk, invoice.document, line.pk)
    assert browser.get(address).status_code == 200
    elsewhere = url("line_detail", desk.tenant.pk, desk.tenant.pk, line.pk)
    assert browser.get(elsewhere).status_code == 404


def test_a_draft_says_nothing_is_charged_when_it_is_so(desk: Desk, globex: Any, browser: Browser):
    fields = {"period": "2026-04", "tenant": str(globex.pk)}
    answer = browser.post(url("draft_final"), fields)
    assert answer["Location"] == url("month_close") + "?period=2026-04"
    with tenant_context(globex):
        assert not invoicing.Document.objects.exists()
