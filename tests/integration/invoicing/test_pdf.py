"""A document as PDF says what its page says, in either language, and goes on saying it."""

import io

import pytest
from pypdf import PdfReader

from apps.invoicing import sellers, services
from apps.invoicing.pdf import document_pdf
from apps.invoicing.sellers import WrongRegistrationNumber, check_registration_number
from apps.tenancy.context import platform_context
from apps.tenancy.models import Tenant
from tests.builders import a_price, a_used_service, move_clock


def text_of(document, language="en"):
    reader = PdfReader(io.BytesIO(document_pdf(document, language=language)))
    return " ".join(" ".join(page.extract_text() for page in reader.pages).split())


@pytest.fixture
def draft(acme):
    with platform_context():
        sellers.save_seller(
            actor=None,
            legal_name="주식회사 네오클라우드",
            registration_number="1208147521",
            address="서울특별시 중구 세종대로 110",
            bank_account="한국은행 000-00-000000",
        )
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    return services.draft_invoice(tenant=Tenant.objects.get(), period="2026-03", actor=None)


def test_an_invoice_is_printed_with_who_sells_who_buys_and_every_figure(draft):
    issued = services.issue_invoice(document_id=draft.pk, actor=None)

    text = text_of(issued)

    line = issued.lines.get()
    for wanted in (
        "Invoice", issued.number, "주식회사 네오클라우드", "120-81-47521", "한국은행",
        issued.customer["name"], line.service_name, line.order_number, line.price_code,
        f"₩{issued.subtotal:,.0f}", f"₩{issued.tax:,.0f}", f"₩{issued.total:,.0f}", "VAT 10 %",
    ):  # fmt: skip
        assert wanted in text, wanted


def test_it_is_printed_in_korean_for_who_reads_korean(draft):
    text = text_of(draft, "ko")
    assert "청구서" in text
    assert "초안" in text
    assert "공급가액" in text or "소계" in text


def test_an_issued_document_keeps_the_seller_it_was_issued_by(draft):
    issued = services.issue_invoice(document_id=draft.pk, actor=None)
    with platform_context():
        sellers.save_seller(actor=None, legal_name="Another Name Inc.")

    assert "주식회사 네오클라우드" in text_of(issued)


def test_a_credit_note_names_the_invoice_it_corrects_and_why(draft):
    issued = services.issue_invoice(document_id=draft.pk, actor=None)
    note = services.credit_lines(
        document_id=issued.pk,
        line_ids=[line.pk for line in issued.lines.all()],
        actor=None,
        reason="ordered twice",
    )

    text = text_of(note)

    assert "Credit note" in text
    assert issued.number in text
    assert "ordered twice" in text
    assert f"-₩{issued.total:,.0f}" in text


def test_a_long_document_prints_its_first_lines_and_says_where_the_others_are(draft, monkeypatch):
    monkeypatch.setattr("apps.invoicing.pdf.MOST_LINES", 0)
    assert "The first 0 of 1 lines" in text_of(draft)


def test_what_people_type_is_printed_and_never_run(acme):
    a_price(4000)
    service = a_used_service()
    type(service).objects.filter(pk=service.pk).update(name='#sys.inputs "$x$ *b* \\')
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    assert '#sys.inputs "$x$ *b* \\' in text_of(draft)


@pytest.mark.parametrize("number", ["120-81-47521", "1208147521", "DE811907980", ""])
def test_registration_numbers_are_written_one_way_or_left_alone(number):
    assert check_registration_number(number) in ("120-81-47521", number)


def test_a_wrong_check_digit_is_refused_with_the_right_one():
    with pytest.raises(WrongRegistrationNumber, match="should be 1"):
        check_registration_number("120-81-47520")
