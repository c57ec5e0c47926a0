"""The finance desk signs, previews, changes and ends contracts."""

import re

from apps.accounts.roles import Role
from apps.catalog.models import Contract
from apps.invoicing import services
from apps.tenancy.context import tenant_context
from tests.integration.finance.conftest import PERIOD, staff

TERMS = {
    "zone": "Asia/Seoul",
    "discount_percent": "10",
    "minimum_monthly_charge": "",
    "payment_days": "14",
    "prepaid_credit": "0",
    "price_rule": "in_force",
    "note": "",
}


def signing(desk, **more):
    return TERMS | {
        "tenant": str(desk.tenant.pk),
        "code": "ct-acme",
        "effective_from": "2026-04-01T00:00",
        **more,
    }


def test_what_a_contract_means_is_shown_before_it_is_kept(desk, browser):
    with tenant_context(desk.tenant):
        draft = services.draft_invoice(tenant=desk.tenant, period=PERIOD, actor=None)
        services.issue_invoice(document_id=draft.pk, actor=None)
    shown = browser.post("/finance/contracts/new/", signing(desk))
    text = re.sub(r"\s+", " ", shown.content.decode())
    assert "₩32,000" in text
    assert "₩28,800" in text
    assert not Contract.objects.exists()
    kept = browser.post("/finance/contracts/new/", signing(desk, keep="1"))
    assert kept.status_code == 302
    assert Contract.objects.get().payment_days == 14


def test_a_change_shows_then_keeps_a_new_version(desk, browser):
    browser.post("/finance/contracts/new/", signing(desk, keep="1"))
    change = TERMS | {"effective_from": "2026-05-01T00:00", "discount_percent": "12"}
    url = "/finance/contracts/ct-acme/"
    assert browser.post(f"{url}change/", change).status_code == 200
    assert Contract.objects.count() == 1
    assert browser.post(f"{url}change/", change | {"keep": "1"}).status_code == 302
    page = browser.get(url).content.decode()
    assert "12 %" in page
    assert "10 %" in page


def test_what_is_refused_stands_beside_its_field(desk, browser):
    refused = browser.post(
        "/finance/contracts/new/", signing(desk, effective_from="2026-03-01T00:00")
    )
    assert refused.status_code == 422
    assert "lies in the past" in refused.content.decode()


def test_an_end_is_kept(desk, browser):
    browser.post("/finance/contracts/new/", signing(desk, keep="1"))
    ended = browser.post(
        "/finance/contracts/ct-acme/end/", {"at": "2026-06-01T00:00", "zone": "Asia/Seoul"}
    )
    assert ended.status_code == 302
    assert Contract.objects.get().effective_to is not None


def test_an_auditor_sees_contracts_and_changes_none(desk):
    auditor = staff(Role.AUDITOR)
    assert auditor.get("/finance/contracts/").status_code == 200
    assert auditor.post("/finance/contracts/new/", signing(desk)).status_code == 403


def test_a_new_list_price_tells_who_pays_how_much_more(desk, browser):
    desk.tenant.refresh_from_db()
    from apps.orders.models import ServiceProjection

    ServiceProjection.objects.update(state="active", ended_at=None)
    shown = browser.post(
        f"/finance/price-books/{desk.book.pk}/add/",
        {
            "sku": "bm-8xh200",
            "unit": "gpu_hour",
            "amount": "3500",
            "effective_from": "2026-06-01T00:00",
            "zone": "Asia/Seoul",
        },
    )
    text = shown.content.decode()
    assert desk.tenant.name in text
    assert "₩20,440,000" in text  # 8 GPUs × 730 hours × 3,500
    assert "-₩2,920,000" in text
