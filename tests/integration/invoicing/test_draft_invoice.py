"""A month becomes a draft: which seconds, at which price, and what refuses it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from apps.audit.models import AuditEntry
from apps.core.models import OutboxEvent
from apps.invoicing import services
from apps.invoicing.errors import AlreadyInvoiced, NoPrice, PeriodNotOver, ServicesOpen
from apps.invoicing.models import Document, InvoiceProjection
from apps.orders.states import ServiceState
from apps.tenancy.context import tenant_context
from tests.builders import (
    SKU,
    a_fact,
    a_person,
    a_price,
    a_project,
    a_service,
    a_used_service,
    an_order,
    move_clock,
)


def draft_march(tenant, **options):
    return services.draft_invoice(tenant=tenant, period="2026-03", actor=None, **options)


def test_a_draft_charges_the_seconds_between_active_and_deleting(acme):
    price = a_price(4000, code="list-1")
    project = a_project("vision")
    order = an_order(project=project, gpus_each=8)
    service = a_used_service("2026-03-10T00:00:00", "2026-03-10T01:30:30", order=order)
    move_clock("2026-04-01T03:00:00")

    draft = draft_march(acme)

    line = draft.lines.get()
    assert (line.gpu_seconds, line.amount) == (5430 * 8, 48267)
    assert f"{line.gpu_hours}" == "12.066667"
    assert (line.service_id, line.order_number, line.project_name) == (
        service.pk,
        order.number,
        "vision",
    )
    assert (line.price_id, line.price_code, line.price_kind, line.unit_price) == (
        price.pk,
        "list-1",
        "list",
        4000,
    )
    assert (draft.subtotal, draft.tax, draft.total) == (48267, 4827, 53094)
    assert (draft.status, draft.number) == ("draft", None)


def test_drafting_again_rates_the_same_draft_again(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    first = draft_march(acme)
    a_used_service("2026-03-20T00:00:00", "2026-03-20T02:00:00")

    second = draft_march(acme)

    assert second.pk == first.pk
    assert (second.lines.count(), second.subtotal) == (2, 3 * 8 * 4000)
    assert Document.objects.count() == 1


def test_a_month_without_usage_gives_no_document(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-05-01T03:00:00")
    assert services.draft_invoice(tenant=acme, period="2026-04", actor=None) is None
    assert not Document.objects.exists()


def test_a_month_that_is_not_over_is_refused_and_says_when(acme):
    move_clock("2026-03-31T14:59:59")
    with pytest.raises(PeriodNotOver, match=r"2026-04-01 00:00:00 KST"):
        draft_march(acme)


def test_a_second_without_a_price_is_refused_and_leaves_nothing(acme):
    a_price(4000, start="2026-03-10T00:30:00")
    a_used_service("2026-03-10T00:00:00", "2026-03-10T01:00:00")
    move_clock("2026-04-01T03:00:00")
    with pytest.raises(NoPrice, match=f"{SKU} has no price in KRW at 2026-03-10T00:00:00Z"):
        draft_march(acme)
    assert not Document.objects.exists()


def test_a_gap_between_two_prices_is_found_to_the_second(acme):
    a_price(4000, end="2026-03-10T00:10:00")
    a_price(5000, start="2026-03-10T00:10:01")
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    with pytest.raises(NoPrice, match="2026-03-10T00:10:00Z"):
        draft_march(acme)


def test_a_contract_price_beats_the_list_while_it_lasts(acme):
    a_price(4000, code="L1")
    a_price(
        3000,
        code="C1",
        kind="contract",
        start="2026-03-10T00:20:00",
        end="2026-03-10T00:40:00",
    )
    a_used_service(gpus_each=1)
    move_clock("2026-04-01T03:00:00")

    lines = {line.price_code: line for line in draft_march(acme).lines.all()}

    assert {code: line.gpu_seconds for code, line in lines.items()} == {"L1": 2400, "C1": 1200}
    assert lines["C1"].price_kind == "contract"


def test_another_tenants_contract_price_is_not_seen(acme, globex):
    a_price(4000, code="L1")
    with tenant_context(globex):
        a_price(1, code="C1", kind="contract")
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    assert [line.price_code for line in draft_march(acme).lines.all()] == ["L1"]


def test_a_fixed_price_stands_above_every_other(acme):
    a_price(4000)
    a_price(3000, kind="contract")
    a_used_service(price_rule="fixed", unit_price=Decimal("2500.5"), gpus_each=1)
    move_clock("2026-04-01T03:00:00")
    line = draft_march(acme).lines.get()
    assert (line.price_kind, line.unit_price, line.amount) == ("fixed", Decimal("2500.5"), 2501)


def test_stopped_time_is_charged_by_the_allocated_basis_only(acme):
    a_price(3600)
    for basis in ("allocated", "running"):
        service = a_service(billing_basis=basis, gpus_each=1, name=basis)
        a_fact(service, ServiceState.ACTIVE, "2026-03-10T00:00:00")
        a_fact(service, ServiceState.STOPPED, "2026-03-10T01:00:00")
        a_fact(service, ServiceState.TERMINATED, "2026-03-10T03:00:00")
    move_clock("2026-04-01T03:00:00")
    lines = draft_march(acme).lines.select_related(None)
    assert sorted(line.gpu_seconds for line in lines) == [3600, 10800]


def test_usd_is_rounded_half_up_to_cents(globex):
    with tenant_context(globex):
        a_price(Decimal("2.345"), currency="USD")
        a_used_service(currency="USD", gpus_each=1)
        move_clock("2026-04-01T12:00:00")
        assert draft_march(globex).lines.get().amount == Decimal("2.35")


def test_a_large_line_is_rounded_from_its_exact_amount_and_not_from_a_rounded_one(acme):
    # Exactly 840285334.4999999997: a quotient of sixteen digits would already be a half.
    a_price(Decimal("1511.000333"))
    start = datetime(2026, 3, 2, tzinfo=UTC)
    a_used_service(start, start + timedelta(seconds=2000003), gpus_each=1001)
    move_clock("2026-04-01T03:00:00")
    assert draft_march(acme).lines.get().amount == 840285334


def test_a_final_invoice_needs_every_service_ended(acme):
    a_price(4000)
    service = a_service(name="still-on")
    a_fact(service, ServiceState.ACTIVE, "2026-03-10T00:00:00")
    move_clock("2026-03-15T00:00:00")
    with pytest.raises(ServicesOpen, match="still-on"):
        draft_march(acme, final=True)


def test_a_final_invoice_charges_up_to_now(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-03-15T00:00:00.5")
    draft = draft_march(acme, final=True)
    assert draft.supply_end.isoformat() == "2026-03-15T00:00:00+00:00"
    issued = services.issue_invoice(document_id=draft.pk, actor=None)
    assert issued.supply_end.isoformat() == "2026-03-15T00:00:00+00:00"
    with pytest.raises(AlreadyInvoiced, match=issued.number):
        draft_march(acme, final=True)


def test_a_draft_is_seen_by_finance_and_recorded(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=a_person())
    shown = InvoiceProjection.objects.get(document=draft.pk)
    assert (shown.tenant, shown.status, shown.total) == (acme.pk, "draft", draft.total)
    assert AuditEntry.objects.filter(action="invoice.drafted", subject_id=str(draft.pk)).exists()
    assert OutboxEvent.objects.filter(name="invoice.drafted", subject=draft.pk).exists()


def test_a_draft_is_made_in_its_own_tenant_only(acme, globex):
    with pytest.raises(LookupError):
        draft_march(globex)
