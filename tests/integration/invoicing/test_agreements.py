"""What contracts and reservations do to an invoice."""

from datetime import date
from decimal import Decimal

import pytest

from apps.invoicing import selectors, services
from apps.invoicing.errors import ReservationsOpen
from apps.invoicing.models import LineKind
from apps.invoicing.verify import verify_invoice
from apps.orders.models import ServiceVersion
from tests.builders import (
    a_contract,
    a_fact,
    a_price,
    a_reservation,
    a_service,
    a_used_service,
    an_order,
    move_clock,
)

SEOUL_MARCH = "2026-02-28T15:00:00"
SEOUL_APRIL = "2026-03-31T15:00:00"


@pytest.fixture(autouse=True)
def _price(acme):
    a_price(4000)


def march(acme, **options):
    """The issued invoice of March, which the slow sum agrees with."""
    if not options:
        move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None, **options)
    issued = services.issue_invoice(document_id=draft.pk, actor=None)
    assert verify_invoice(issued) == []
    for line in issued.lines.all():
        assert selectors.explain_line(line.pk)["rules"]
    return issued


def amounts(document):
    return {line.kind: line.amount for line in document.lines.all()}


def test_a_discount_counts_the_seconds_inside_the_contract_alone(acme):
    a_used_service("2026-03-10T00:00:00", "2026-03-10T02:00:00")
    a_contract(start="2026-03-10T01:00:00", discount_percent=Decimal(10))
    assert amounts(march(acme)) == {"usage": 64000, "discount": -3200}


def test_a_change_inside_the_month_discounts_each_part_by_its_own_percentage(acme):
    a_used_service("2026-03-10T00:00:00", "2026-03-10T02:00:00")
    a_contract(start=SEOUL_MARCH, end="2026-03-10T01:00:00", discount_percent=Decimal(10))
    a_contract(start="2026-03-10T01:00:00", discount_percent=Decimal(20))
    issued = march(acme)
    assert amounts(issued) == {"usage": 64000, "discount": -9600}
    line = issued.lines.get(kind=LineKind.DISCOUNT)
    told = selectors.explain_line(line.pk)["arithmetic"]
    assert told == "-(10 % × 32000 + 20 % × 32000) → -9600 KRW"


def test_a_contract_signed_after_the_invoice_leaves_it_as_it_is(acme):
    a_used_service()
    issued = march(acme)
    a_contract(
        start=SEOUL_MARCH, discount_percent=Decimal(10), created_at="2026-04-02T00:00:00+00:00"
    )
    assert verify_invoice(issued) == []


def test_a_minimum_is_owed_even_when_nothing_ran(acme):
    a_contract(minimum_monthly_charge=Decimal(500000))
    issued = march(acme)
    assert amounts(issued) == {"minimum": 500000}
    assert issued.due_on == date(2026, 5, 1)


def test_a_reservation_covers_what_was_charged_first_and_the_rest_is_usage(acme):
    early = a_service(gpus_each=6)
    a_fact(early, start="2026-03-05T00:00:00", end="2026-03-06T00:00:00")
    later = a_service(gpus_each=4)
    a_fact(later, start="2026-03-05T12:00:00", end="2026-03-06T12:00:00")
    reservation = a_reservation(starts_at=SEOUL_MARCH, ends_at=SEOUL_APRIL)
    issued = march(acme)
    line = issued.lines.get(kind=LineKind.USAGE)
    assert (line.service_id, line.gpu_seconds) == (later.pk, 2 * 12 * 3600)
    paid = issued.lines.get(kind=LineKind.RESERVATION)
    assert (paid.ref, paid.gpu_seconds) == (str(reservation.pk), 8 * 31 * 86400)


def test_a_service_that_began_in_an_earlier_month_is_covered_first(acme):
    later = a_service(gpus_each=8)  # the lower id, but charged later
    first = a_service(gpus_each=8)
    a_fact(first, start="2026-02-01T00:00:00")
    a_fact(later, start="2026-02-02T00:00:00")
    a_reservation(starts_at=SEOUL_MARCH, ends_at=SEOUL_APRIL)
    line = march(acme).lines.get(kind=LineKind.USAGE)
    assert line.service_id == later.pk


def test_late_use_that_a_reservation_had_room_for_costs_nothing(acme):
    a_reservation(starts_at=SEOUL_MARCH, ends_at=SEOUL_APRIL, gpus_each=8)
    used = a_service(gpus_each=4)
    a_fact(used, start="2026-03-05T00:00:00", end="2026-03-05T02:00:00")
    march(acme)
    late = a_service(gpus_each=6)
    a_fact(
        late, start="2026-03-05T01:00:00", end="2026-03-05T02:00:00", recorded="2026-04-02T00:00:00"
    )
    move_clock("2026-05-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-04", actor=None)
    (line,) = draft.lines.filter(kind=LineKind.LATE_USAGE)
    assert (line.service_id, line.gpu_seconds, line.amount) == (late.pk, 2 * 3600, 8000)
    assert verify_invoice(draft) == []


def test_a_final_invoice_waits_for_reservations(acme):
    a_used_service("2026-03-10T00:00:00", "2026-03-10T01:00:00")
    a_reservation(starts_at=SEOUL_MARCH, ends_at="2026-06-01T00:00:00")
    move_clock("2026-03-20T00:00:00")
    with pytest.raises(ReservationsOpen, match="1 reservations"):
        march(acme, final=True)


def test_a_resize_is_charged_by_the_size_of_each_version(acme):
    service = a_service(gpus_each=8)
    for version, gpus in ((1, 8), (2, 4)):
        ServiceVersion.objects.create(service=service, version=version, sku=service.sku, gpus=gpus)
    a_fact(service, start="2026-03-10T00:00:00", version=1)
    a_fact(service, start="2026-03-10T01:00:00", version=2)
    a_fact(service, "terminated", start="2026-03-10T03:00:00", version=2)
    lines = march(acme).lines.order_by("version")
    assert [(line.quantity, line.gpu_seconds, line.amount) for line in lines] == [
        (8, 8 * 3600, 32000),
        (4, 8 * 3600, 32000),
    ]


def test_a_fixed_price_holds_to_the_end_of_the_term(acme):
    order = an_order(
        gpus_each=1, price_rule="fixed", unit_price=3000, ends_at="2026-03-10T01:00:00+00:00"
    )
    service = a_service(order=order)
    a_fact(service, start="2026-03-10T00:00:00", end="2026-03-10T03:00:00")
    lines = march(acme).lines.order_by("unit_price")
    assert [(line.unit_price, line.amount) for line in lines] == [(3000, 3000), (4000, 8000)]


def test_the_cost_so_far_is_the_invoice_when_the_month_closes(acme):
    a_used_service("2026-03-10T00:00:00", "2026-03-10T02:00:00")
    a_contract(discount_percent=Decimal(10), minimum_monthly_charge=Decimal(100000))
    move_clock("2026-03-20T00:00:00")
    assert selectors.cost_so_far().subtotal.amount == 57600
    issued = march(acme)
    closed = selectors.cost_of_month("2026-03", as_of=issued.as_of)
    assert (closed.subtotal.amount, closed.total.amount) == (issued.subtotal, issued.total)
    assert issued.subtotal == 100000
