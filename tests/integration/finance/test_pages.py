"""Every page of the finance desk opens, says what it should, and asks a bounded number of times."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.catalog.models import Price
from apps.invoicing import runs
from apps.invoicing import services as invoicing
from apps.invoicing.models import Document, DocumentLine, InvoiceProjection
from apps.tenancy.context import tenant_context
from tests.builders import a_price, an_instant, move_clock
from tests.integration.finance.conftest import NOW, PERIOD, Desk, staff, used
from tests.people import Browser

PLAIN = ("home", "price_books", "month_close", "invoice_list", "exports")
MOST_QUERIES = 12


def url(name: str, *args: Any) -> str:
    return reverse(f"finance:{name}", args=args, urlconf="neocloud.urls_platform")


def an_issued_invoice(desk: Desk, period: str = PERIOD) -> Document:
    """The tenant's invoice of a month."""
    with tenant_context(desk.tenant):
        draft = invoicing.draft_invoice(tenant=desk.tenant, period=period, actor=None)
        assert draft is not None
        return invoicing.issue_invoice(document_id=draft.pk, actor=None)


def line_of(desk: Desk, document: Document) -> DocumentLine:
    """Its first line."""
    with tenant_context(desk.tenant):
        return document.lines.get(position=1)


def statements(browser: Browser, address: str, **headers: str) -> int:
    """How many questions a page asks; changing sides and savepoints are none."""
    with CaptureQueriesContext(connection) as found:
        page = browser.get(address, headers=headers)
    assert page.status_code == 200, address
    told = [query["sql"] for query in found.captured_queries]
    return sum(not sql.startswith(("SET search_path", "SAVEPOINT", "RELEASE")) for sql in told)


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_opens_while_nothing_is_invoiced(name: str, browser: Browser):
    page = browser.get(url(name))
    assert page.status_code == 200
    assert page.text.count("<h1") == 1


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_asks_no_more_often_when_it_is_full(
    name: str, desk: Desk, globex: Any, browser: Browser
):
    an_issued_invoice(desk)
    before = statements(browser, url(name))
    for _more in range(3):
        used(globex)
    a_price(20, currency="USD", start="2026-01-01T00:00:00")
    used(desk.tenant, "2026-04-01T00:00:00", "2026-04-01T01:00:00")
    runs.start_run(period=PERIOD, currency="USD", actor=None)
    runs.work(seconds=60)
    assert statements(browser, url(name)) == before <= MOST_QUERIES


def test_a_documents_pages_ask_a_bounded_number_of_times(desk: Desk, browser: Browser):
    for _more in range(5):
        used(desk.tenant)
    document = an_issued_invoice(desk)
    line = line_of(desk, document)
    pages = (
        url("document_detail", desk.tenant.pk, document.pk),
        url("line_detail", desk.tenant.pk, document.pk, line.pk),
        url("price_book", desk.book.pk),
    )
    for address in pages:
        browser.get(address)  # the first look is recorded
        assert statements(browser, address) <= MOST_QUERIES + 2, address


def test_the_list_and_its_rows_come_from_one_address(desk: Desk, browser: Browser):
    document = an_issued_invoice(desk)
    rows = browser.get(url("invoice_list"), headers={"HX-Request": "true"}).text
    assert rows.lstrip().startswith('<div id="rows"')
    assert document.number is not None
    assert document.number in rows
    assert document.number not in browser.get(url("invoice_list") + "?kind=credit_note").text
    assert document.number in browser.get(url("invoice_list") + "?q=acme").text


def test_no_page_holds_inline_scripts_or_styles(desk: Desk, browser: Browser):
    document = an_issued_invoice(desk)
    line = line_of(desk, document)
    for address in (
        *map(url, PLAIN),
        url("price_book", desk.book.pk),
        url("document_detail", desk.tenant.pk, document.pk),
        url("line_detail", desk.tenant.pk, document.pk, line.pk),
    ):
        page = browser.get(address)
        for forbidden in ("style=", "<style", "onclick", "hx-on", "<script>"):
            assert forbidden not in page.text, address


def test_home_shows_this_month_so_far_and_what_is_to_be_closed(desk: Desk, browser: Browser):
    used(desk.tenant, "2026-04-01T00:00:00", "2026-04-01T02:00:00")
    page = browser.get(url("home")).text
    assert "₩64,000" in page  # eight GPUs, two hours, 4,000 each
    assert "2026-03" in page
    assert "Not yet drafted" in page


def test_the_months_estimate_uses_the_price_of_each_second_and_the_contract_first(
    desk: Desk, browser: Browser
):
    # given two hours in April over a price change of the list
    used(desk.tenant, "2026-04-01T00:00:00", "2026-04-01T02:00:00")
    a_price_change(desk)
    assert "₩40,000" in browser.get(url("home")).text  # 8 × (4,000 + 1,000)
    # given a contract of the tenant
    with tenant_context(desk.tenant):
        a_price(10, kind="contract", start="2026-01-01T00:00:00")
    assert "₩160" in browser.get(url("home")).text  # 8 × 2 h × 10


def a_price_change(desk: Desk) -> None:
    """From one in the morning the list asks a quarter."""
    at = an_instant("2026-04-01T01:00:00")
    move_clock(at)  # only what is to come may end
    Price.objects.filter(book=desk.book).update(effective_to=at)
    move_clock(NOW)
    a_price(1000, book=desk.book, start=at)


def test_a_line_explains_itself_in_two_clicks(desk: Desk, browser: Browser):
    document = an_issued_invoice(desk)
    line = line_of(desk, document)
    # first click: the line, from the document
    address = url("line_detail", desk.tenant.pk, document.pk, line.pk)
    assert address in browser.get(url("document_detail", desk.tenant.pk, document.pk)).text
    page = browser.get(address).text
    for told in ("3,600", "28800", "₩32,000", "rounded once", line.price_code, line.order_number):
        assert told in page
    # second click: the price, from the line
    assert url("price_book", desk.book.pk) in page
    assert line.price_code in browser.get(url("price_book", desk.book.pk)).text


def test_looking_at_a_document_is_recorded_in_the_tenants_trail(desk: Desk, browser: Browser):
    document = an_issued_invoice(desk)
    browser.get(url("document_detail", desk.tenant.pk, document.pk))
    with tenant_context(desk.tenant):
        assert AuditEntry.objects.filter(action="staff.looked", actor_side="platform").exists()


def test_an_auditor_reads_and_changes_nothing(desk: Desk):
    auditor = staff(Role.AUDITOR)
    for name in ("home", "price_books", "month_close", "invoice_list"):
        assert auditor.get(url(name)).status_code == 200
    assert auditor.post(url("draft_all"), {"period": PERIOD}).status_code == 403
    assert auditor.post(url("price_add", desk.book.pk)).status_code == 403
    assert not InvoiceProjection.objects.exists()
    assert "Start the invoice run" not in auditor.get(url("month_close")).text


def test_an_operator_has_no_business_with_invoices(desk: Desk):
    operator = staff(Role.OPERATOR)
    assert operator.get(url("home")).status_code == 403
    assert operator.get(url("invoice_list")).status_code == 403


def test_a_month_that_is_not_over_offers_no_drafting(desk: Desk, browser: Browser):
    page = browser.get(url("month_close") + "?period=2026-04").text
    assert "This month is not over" in page
    assert "Start the invoice run" not in page
    assert browser.get(url("month_close") + "?period=soon").status_code == 422
    move_clock("2026-05-01T00:00:00+09:00")
    assert "Start the invoice run" in browser.get(url("month_close") + "?period=2026-04").text
