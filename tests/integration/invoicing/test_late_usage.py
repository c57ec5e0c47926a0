"""What turns up after the invoice: late usage on the next one, reductions for a credit note."""

import pytest

from apps.invoicing import selectors, services
from apps.invoicing.models import LineKind
from apps.invoicing.verify import verify_invoice
from apps.orders.models import Fact
from apps.orders.states import ServiceState
from tests.builders import a_fact, a_price, a_service, a_used_service, move_clock


def invoiced(tenant, period, at, **options):
    """The issued invoice of a month, made at an instant."""
    move_clock(at)
    draft = services.draft_invoice(tenant=tenant, period=period, actor=None, **options)
    return draft and services.issue_invoice(document_id=draft.pk, actor=None)


def late_lines(document):
    return list(document.lines.filter(kind=LineKind.LATE_USAGE))


@pytest.fixture
def march(acme):
    """The invoice of March: one hour of 8 GPUs, at 4000; the price is 5000 from April."""
    a_price(4000, end="2026-03-31T15:00:00", code="L1")
    a_price(5000, start="2026-03-31T15:00:00", code="L2")
    a_used_service()
    return invoiced(acme, "2026-03", "2026-04-01T03:00:00")


def test_late_usage_goes_on_the_next_invoice_at_the_price_of_then(acme, march):
    late = a_service(gpus_each=2)
    a_fact(
        late, start="2026-03-20T00:00:00", end="2026-03-20T03:00:00", recorded="2026-04-05T00:00:00"
    )
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    (line,) = late_lines(april)
    assert (line.gpu_seconds, line.unit_price, line.amount) == (6 * 3600, 4000, 24000)
    assert verify_invoice(april) == []


def test_late_usage_is_charged_once(acme, march):
    late = a_service(gpus_each=2)
    a_fact(
        late, start="2026-03-20T00:00:00", end="2026-03-20T03:00:00", recorded="2026-04-05T00:00:00"
    )
    invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    assert invoiced(acme, "2026-05", "2026-06-01T03:00:00") is None


def test_a_late_record_that_overlaps_what_was_billed_adds_only_the_rest(acme, march):
    service = march.lines.get()
    a_fact(
        Fact.objects.filter(service=service.service_id)[0].service,
        start="2026-03-10T00:30:00",
        end="2026-03-10T01:15:00",
        recorded="2026-04-05T00:00:00",
    )
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    assert [line.gpu_seconds for line in late_lines(april)] == [15 * 60 * 8]


def test_time_taken_back_and_given_again_is_not_charged_twice(acme, march):
    fact = Fact.objects.get(state=ServiceState.ACTIVE)
    gone = a_fact(fact.service, "", fact.start_at, recorded="2026-04-02T00:00:00", supersedes=fact)
    april_service = a_used_service("2026-04-10T00:00:00", "2026-04-10T01:00:00")
    invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    a_fact(fact.service, "active", fact.start_at, recorded="2026-05-02T00:00:00", supersedes=gone)
    assert april_service.pk
    assert invoiced(acme, "2026-05", "2026-06-01T03:00:00") is None


def test_usage_after_an_early_final_invoice_is_late_usage(acme):
    a_price(4000)
    a_used_service()
    final = invoiced(acme, "2026-03", "2026-03-15T00:00:00", final=True)
    a_used_service("2026-03-20T00:00:00", "2026-03-20T02:00:00")
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    assert final.subtotal == 32000
    assert [(line.kind, line.amount) for line in april.lines.all()] == [("late_usage", 64000)]
    assert verify_invoice(april) == []


def test_a_service_running_across_the_early_invoices_is_charged_for_every_second_once(acme):
    a_price(3600)
    a_used_service("2026-02-10T00:00:00", "2026-02-10T01:00:00", gpus_each=1)
    invoiced(acme, "2026-03", "2026-03-12T00:00:00", final=True)  # nothing in March so far
    a_used_service("2026-03-12T06:00:00", "2026-03-12T07:00:00", gpus_each=1)
    final = invoiced(acme, "2026-03", "2026-03-13T00:00:00", final=True)
    a_used_service("2026-03-14T00:00:00", "2026-03-20T00:00:00", gpus_each=1)
    february = invoiced(acme, "2026-02", "2026-03-15T00:00:00")
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    late = [line.gpu_seconds for line in (*late_lines(february), *late_lines(april))]
    assert final.lines.get().gpu_seconds == 3600
    assert late == [86400, 5 * 86400]


def test_time_that_turned_out_free_is_listed_for_a_credit_note(acme, march):
    fact = Fact.objects.get(state=ServiceState.ACTIVE)
    a_fact(
        fact.service,
        "active",
        "2026-03-10T00:00:00",
        "2026-03-10T00:45:00",
        recorded="2026-04-05T00:00:00",
        supersedes=fact,
    )
    move_clock("2026-04-06T00:00:00")
    (reduction,) = selectors.reductions()
    line = march.lines.get()
    assert (reduction.invoice, reduction.line) == (march, line)
    assert (reduction.usage.gpu_seconds, reduction.usage.amount) == (15 * 60 * 8, 8000)
    assert not reduction.is_credited
    services.credit_lines(document_id=march.pk, line_ids=[line.pk], actor=None, reason="fault")
    assert selectors.reductions()[0].is_credited


def test_a_reduction_is_not_netted_with_late_usage(acme, march):
    fact = Fact.objects.get(state=ServiceState.ACTIVE)
    a_fact(fact.service, "", fact.start_at, recorded="2026-04-05T00:00:00", supersedes=fact)
    late = a_service(gpus_each=1)
    a_fact(
        late, start="2026-03-20T00:00:00", end="2026-03-20T01:00:00", recorded="2026-04-05T00:00:00"
    )
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    assert april.subtotal == 4000
    assert [one.usage.amount for one in selectors.reductions()] == [32000]


def test_the_cost_of_a_month_counts_use_after_its_final_invoice_once(acme):
    a_price(4000)
    a_used_service("2026-03-10T00:00:00", "2026-03-10T01:00:00")
    final = invoiced(acme, "2026-03", "2026-03-15T00:00:00", final=True)
    a_used_service("2026-03-20T00:00:00", "2026-03-20T02:00:00")
    move_clock("2026-03-25T00:00:00")

    cost = selectors.cost_so_far()

    assert final.subtotal == 8 * 4000
    assert cost.subtotal.amount == 3 * 8 * 4000
    assert cost.late_lines == []
    april = invoiced(acme, "2026-04", "2026-05-01T03:00:00")
    assert final.subtotal + april.subtotal == cost.subtotal.amount
