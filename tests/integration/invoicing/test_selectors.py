"""What a month costs so far, and what a line follows from."""

from datetime import timedelta

import pytest

from apps.core.uuids import uuid7
from apps.invoicing import selectors, services
from apps.invoicing.errors import DocumentNotFound, LineNotFound
from apps.orders.states import ServiceState
from tests.builders import (
    a_fact,
    a_price,
    a_service,
    a_used_service,
    an_instant,
    an_order,
    move_clock,
)


@pytest.fixture
def busy_march(acme):
    a_price(4321, end="2026-03-12T03:04:05", code="L1")
    a_price(3999, start="2026-03-12T03:04:05", code="L2")
    a_used_service("2026-03-10T01:02:03", "2026-03-14T05:06:07", gpus_each=8)
    a_used_service("2026-03-31T14:00:00", "2026-04-02T00:00:00", gpus_each=1)
    return acme


def test_the_cost_so_far_at_the_end_of_the_month_is_the_invoice(busy_march):
    move_clock("2026-04-01T03:00:00")
    cost = selectors.cost_so_far(at=an_instant("2026-03-31T14:59:59"))
    whole = selectors.cost_of_month("2026-03", as_of=an_instant("2026-04-01T03:00:00"))
    draft = services.draft_invoice(tenant=busy_march, period="2026-03", actor=None)
    assert (whole.subtotal.amount, whole.tax.amount) == (draft.subtotal, draft.tax)
    assert [(line.service_id, line.gpu_seconds, line.amount) for line in whole.lines] == list(
        draft.lines.values_list("service_id", "gpu_seconds", "amount")
    )
    assert sum(line.gpu_seconds for line in whole.lines) == 1 + sum(
        line.gpu_seconds for line in cost.lines
    )


def test_the_cost_so_far_grows_by_the_second_while_a_service_runs(acme):
    a_price(3600)
    service = a_service(gpus_each=8)
    a_fact(service, ServiceState.ACTIVE, "2026-03-10T00:00:00")
    at = an_instant("2026-03-10T00:00:10.9")
    assert selectors.cost_so_far(at=at).subtotal.amount == 80
    assert selectors.cost_so_far(at=at + timedelta(seconds=1)).subtotal.amount == 88


def test_what_is_not_invoiced_counts_every_open_month(busy_march):
    at = an_instant("2026-04-01T18:00:00")
    move_clock(at)
    march = selectors.cost_of_month("2026-03", as_of=at)
    april = selectors.cost_of_month("2026-04", as_of=at)
    assert selectors.running_not_invoiced() == march.subtotal + april.subtotal
    draft = services.draft_invoice(tenant=busy_march, period="2026-03", actor=None)
    services.issue_invoice(document_id=draft.pk, actor=None)
    assert selectors.running_not_invoiced() == april.subtotal


def test_a_line_leads_to_its_intervals_facts_service_order_and_price(busy_march):
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=busy_march, period="2026-03", actor=None)
    services.issue_invoice(document_id=draft.pk, actor=None)
    for line in draft.lines.all():
        story = selectors.explain_line(line.pk)
        assert story["gpu_seconds"] == line.gpu_seconds
        assert story["service"].pk == line.service_id
        assert story["order"].number == line.order_number
        assert story["price"].code == line.price_code
        assert story["usage"][0]["start_at"] == line.first_at
        assert story["usage"][-1]["end_at"] == line.last_at
        assert {entry["state"] for entry in story["usage"]} == {"active"}
        assert all(entry["fact_id"] and entry["cause"] == "test" for entry in story["usage"])
        assert len(story["rules"]) >= 4


def test_a_late_line_and_its_correction_are_explained_too(busy_march):
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=busy_march, period="2026-03", actor=None)
    services.issue_invoice(document_id=draft.pk, actor=None)
    late = a_service(gpus_each=2)
    a_fact(
        late, start="2026-03-20T00:00:00", end="2026-03-20T03:00:00", recorded="2026-04-05T00:00:00"
    )
    move_clock("2026-05-01T03:00:00")
    april = services.draft_invoice(tenant=busy_march, period="2026-04", actor=None)
    services.issue_invoice(document_id=april.pk, actor=None)
    line = april.lines.get(kind="late_usage")
    note = services.credit_lines(
        document_id=april.pk, line_ids=[line.pk], actor=None, reason="goodwill"
    )
    for explained in (line, note.lines.get()):
        story = selectors.explain_line(explained.pk)
        assert story["gpu_seconds"] == 6 * 3600
        assert [entry["source"] for entry in story["usage"]] == ["imported"]


def test_customers_see_no_drafts(busy_march):
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=busy_march, period="2026-03", actor=None)
    assert list(selectors.documents()) == []
    with pytest.raises(DocumentNotFound):
        selectors.document_detail(draft.pk)
    with pytest.raises(LineNotFound):
        selectors.explain_line(draft.lines.first().pk)
    assert selectors.document_detail(draft.pk, with_drafts=True) == draft


def test_an_unknown_document_is_not_found(acme):
    with pytest.raises(DocumentNotFound):
        selectors.document_detail(uuid7())


def test_a_line_is_one_service_version_and_price_whatever_the_number_of_intervals(acme):
    a_price(3600, code="L1")
    service = a_service(order=an_order(gpus_each=1, billing_basis="running"))
    for hour in range(0, 20, 2):
        a_fact(service, ServiceState.ACTIVE, f"2026-03-10T{hour:02}:00:00")
        a_fact(service, ServiceState.STOPPED, f"2026-03-10T{hour + 1:02}:00:00")
    cost = selectors.cost_so_far(at=an_instant("2026-03-15T00:00:00"))
    assert [line.gpu_seconds for line in cost.lines] == [36000]
