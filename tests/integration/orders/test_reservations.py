"""Capacity for a term: quoted, booked, lived on, and over to the second."""

from datetime import timedelta

import pytest

from apps.accounts.models import ProjectMember
from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import NotFound
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation, Node
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.deadlines import serve_due
from apps.orders.errors import (
    QuotaExceeded,
    ReservationBegun,
    ReservationFull,
    UnknownReservation,
    WrongTerm,
)
from apps.orders.models import Approval, Order, QueueEntry, Reservation, Service, TenantLimit
from apps.orders.selectors import gpus_in_use, project_use
from apps.orders.states import ReservationStatus, ServiceState
from apps.orders.tasks import keep_capacity, serve_queues
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)
SKU = "bm.h200.8x"


@pytest.fixture
def person(site, acme):
    builders.a_project("training")
    return builders.a_person()


@pytest.fixture
def other(site, globex):
    """Somebody of another tenant, who pays in dollars."""
    with platform_context():
        builders.a_price(3, sku=SKU, book=builders.a_price_book(currency="USD"))
    with tenant_context(globex):
        builders.a_project()
        return builders.a_person()


def later(**parts):
    return clock.now_seconds() + timedelta(**parts)


def a_quote(person, *, quantity=1, starts_at=None, days=30):
    return orders.quote_reservation(
        actor=person, offering_sku=SKU, site_code=world.SITE, quantity=quantity,
        starts_at=starts_at, ends_at=(starts_at or later()) + days * DAY,
    )  # fmt: skip


def a_reservation(person, **choices):
    quote = a_quote(person, **choices)
    return orders.place_reservation(
        actor=person, quote_id=quote.pk, project_id=world.Project.objects.get().pk, name="term"
    )


def an_order_under(reservation, person, *, quantity=1, ends_at=None, **choices):
    quote = orders.make_quote(
        actor=person, offering_sku=SKU, site_code=world.SITE, quantity=quantity, ends_at=ends_at,
        reservation_id=reservation.pk,
    )  # fmt: skip
    return orders.place_order(
        actor=person, quote_id=quote.pk, project_id=world.Project.objects.get().pk, name="train",
        ssh_public_keys=[world.KEY], **choices,
    )  # fmt: skip


def at(instant):
    """It is that instant, and whatever is due has been served."""
    builders.move_clock(instant)
    with platform_context():
        while serve_due():
            pass
    world.deliver()


def held():
    return Allocation.objects.filter(released_at=None).count()


def test_a_quote_shows_the_whole_term_and_that_it_is_charged_unused(person):
    quote = a_quote(person, quantity=2, days=61)
    months = quote.terms["months"]
    assert quote.price_rule == "fixed"
    assert quote.terms["is_charged_unused"]
    assert len(months) in (2, 3)
    figures = [float(one["amount"].split()[0].replace(",", "")) for one in months]
    total = float(quote.terms["term_total"].split()[0].replace(",", ""))
    assert sum(figures) == pytest.approx(total)
    assert total == pytest.approx(float(quote.unit_price) * 16 * 61 * 24)


def test_booking_holds_servers_counts_quota_once_and_begins_by_itself(person):
    start = later(days=3)
    booked = a_reservation(person, starts_at=start)
    assert booked.status == ReservationStatus.BOOKED
    assert booked.number == "RSV-000001"
    assert gpus_in_use(tenant=Allocation.objects.get().tenant) == 0
    assert held() == 1
    waits = an_order_under(booked, person)
    assert waits.status == "scheduled"
    at(start)
    booked.refresh_from_db()
    waits.refresh_from_db()
    assert (booked.status, booked.begun_at) == (ReservationStatus.ACTIVE, start)
    assert waits.status == "accepted"
    assert ledger.used() == {"gpus": 8, "services": 1}
    assert [use.used for _project, use in project_use()] == [8]
    assert held() == 1
    ledger.must_be_sound()
    assert Notice.objects.filter(kind="reservation.begun").count() == 1


def test_placing_a_quote_twice_is_one_reservation(person):
    quote = a_quote(person)
    given = {
        "actor": person, "quote_id": quote.pk, "name": "term",
        "project_id": world.Project.objects.get().pk,
    }  # fmt: skip
    assert orders.place_reservation(**given).pk == orders.place_reservation(**given).pk
    assert held() == 1


def test_the_limits_count_what_overlaps_the_term(person, acme):
    TenantLimit.objects.create(tenant=acme.pk, max_gpus=8)
    a_reservation(person, starts_at=later(days=1), days=10)
    a_reservation(person, starts_at=later(days=20), days=10)
    with pytest.raises(QuotaExceeded):
        a_reservation(person, starts_at=later(days=5), days=10)
    with pytest.raises(QuotaExceeded):
        world.an_accepted_order()
    world.an_accepted_order(ends_at=later(hours=5))


@pytest.mark.parametrize(("ahead", "days"), [(0, 1), (0, 5000), (400, 30)])
def test_a_term_the_operator_does_not_offer_is_refused_with_the_figures(person, ahead, days):
    with pytest.raises(WrongTerm, match="from 7 to 1096 days"):
        a_quote(person, starts_at=later(days=ahead), days=days)


def test_more_than_is_free_over_the_whole_term_is_refused_and_holds_nothing(person, other, globex):
    a_reservation(person, starts_at=later(days=10))
    with tenant_context(globex):
        with pytest.raises(OutOfCapacity, match="Only 1 free"):
            a_reservation(other, quantity=2, starts_at=later(days=1), days=15)
        assert not Reservation.objects.exists()
        a_reservation(other, quantity=1, starts_at=later(days=1), days=15)


def test_cancelling_before_it_begins_frees_the_servers_and_after_it_is_refused(person):
    booked = a_reservation(person, starts_at=later(days=3))
    for _repeat in range(2):
        orders.cancel_reservation(reservation_id=booked.pk, actor=person, reason="changed plans")
    assert held() == 0
    running = a_reservation(person)
    with pytest.raises(ReservationBegun):
        orders.cancel_reservation(reservation_id=running.pk, actor=person)
    ledger.must_be_sound()


def test_everything_past_its_end_expires_not_only_what_is_active(person):
    """Case S21."""
    end, world_nodes = later(days=10), 5
    with platform_context():
        for _number in range(world_nodes - 2):
            world.another_node(world.Site.objects.get())
    made = [
        a_reservation(person, starts_at=later(), days=10),
        a_reservation(person, starts_at=later(days=1), days=9),
        a_reservation(person, starts_at=later(), days=10),
        a_reservation(person, starts_at=later(days=2), days=8),
        a_reservation(person, starts_at=later(days=1), days=9),
    ]
    Reservation.objects.update(ends_at=end)
    operator = builders.a_person()
    orders.suspend_reservation(reservation_id=made[2].pk, actor=operator, reason="unpaid")
    Reservation.objects.filter(pk=made[3].pk).update(status=ReservationStatus.REQUESTED)
    orders.cancel_reservation(reservation_id=made[4].pk, actor=person)
    at(end + 2 * DAY)  # the job comes two days late
    kept = {one.pk: one for one in Reservation.objects.all()}
    assert [kept[one.pk].status for one in made] == ["expired"] * 4 + ["cancelled"]
    assert {kept[one.pk].ended_at for one in made[:4]} == {end}
    assert held() == 0
    assert ledger.used()["gpus"] == 0
    assert not Allocation.objects.filter(during__endswith__gt=end).exists()
    at(end + 3 * DAY)
    ledger.must_be_sound()


def test_a_service_that_ends_with_its_term_ends_at_that_second_however_late_we_come(person):
    booked = a_reservation(person)
    service = world.until_ready(an_order_under(booked, person, ends_at=booked.ends_at))
    at(booked.ends_at + HOUR)
    service.refresh_from_db()
    assert service.state == ServiceState.DELETING
    assert service.ended_at == booked.ends_at
    assert held() == 0


def test_a_service_without_an_end_goes_on_on_demand_after_the_term(person):
    booked = a_reservation(person)
    service = world.until_ready(an_order_under(booked, person))
    at(booked.ends_at + HOUR)
    service.refresh_from_db()
    assert (service.state, service.reservation_id) == (ServiceState.ACTIVE, None)
    hold = Allocation.objects.get(released_at=None)
    assert (hold.reservation, hold.during.lower, hold.during.upper) == (None, booked.ends_at, None)
    assert Notice.objects.filter(kind="service.left_reservation").count() == 1
    assert ledger.used() == {"gpus": 8, "services": 1}


def test_it_ends_with_the_term_where_somebody_reserved_its_server_for_later(person, other, globex):
    booked = a_reservation(person, quantity=2)
    service = world.until_ready(an_order_under(booked, person))
    with tenant_context(globex):
        a_reservation(other, quantity=2, starts_at=booked.ends_at + 2 * HOUR)
    at(booked.ends_at + HOUR)
    service.refresh_from_db()
    assert service.state == ServiceState.DELETING
    assert service.ended_at == booked.ends_at


def test_a_server_given_back_within_the_term_is_there_again_once_it_is_clean(person):
    booked = a_reservation(person)
    service = world.until_ready(an_order_under(booked, person))
    orders.terminate_service(service_id=service.pk, actor=person)
    assert ledger.used() == {"gpus": 8, "services": 0}, "the term goes on"
    with pytest.raises(OutOfCapacity):
        an_order_under(booked, person)
    waits = an_order_under(booked, person, if_unavailable="queue")
    assert QueueEntry.objects.get(left_at=None).reservation == booked.pk
    Node.objects.filter(pk=service.node_id).update(
        status="available", seen_provision_state="available", seen_instance=None
    )
    with platform_context():
        serve_queues.run()
    waits.refresh_from_db()
    assert waits.status == "accepted"
    assert Service.objects.get(order=waits).node_id == service.node_id


def test_a_reservation_gives_no_more_servers_than_it_holds(person):
    booked = a_reservation(person)
    with pytest.raises(ReservationFull, match="holds 1 servers; you asked for 2"):
        an_order_under(booked, person, quantity=2)
    an_order_under(booked, person)
    with pytest.raises(OutOfCapacity):
        an_order_under(booked, person)


def test_a_suspended_reservation_keeps_its_servers_and_gives_none(person):
    booked = a_reservation(person)
    orders.suspend_reservation(reservation_id=booked.pk, actor=person, reason="unpaid")
    orders.suspend_reservation(reservation_id=booked.pk, actor=person, reason="unpaid")
    assert held() == 1
    with pytest.raises(UnknownReservation):
        an_order_under(booked, person)
    orders.resume_reservation(reservation_id=booked.pk, actor=person)
    booked.refresh_from_db()
    assert booked.status == ReservationStatus.ACTIVE
    an_order_under(booked, person)


def test_one_suspended_before_it_began_begins_when_it_is_resumed_in_its_term(person):
    start = later(days=2)
    booked = a_reservation(person, starts_at=start)
    orders.suspend_reservation(reservation_id=booked.pk, actor=person, reason="unpaid")
    at(start + DAY)
    orders.resume_reservation(reservation_id=booked.pk, actor=person)
    booked.refresh_from_db()
    assert (booked.status, booked.begun_at) == (ReservationStatus.ACTIVE, start)


def test_one_that_needs_approval_holds_its_servers_until_somebody_answers(person):
    orders.set_order_policy(
        approval_from_gpus=8, approval_hours=24, longest_days=None, actor=person
    )
    member = builders.a_person(role=Role.MEMBER)
    ProjectMember.objects.create(project=world.Project.objects.get(), user=member)
    asked = a_reservation(member, starts_at=later(days=10))
    granted = a_reservation(member, starts_at=later(days=10))
    assert {asked.status, granted.status} == {ReservationStatus.REQUESTED}
    assert held() == 2
    orders.approve(approval_id=Approval.objects.get(reservation=granted).pk, actor=person)
    at(later(hours=25))
    asked.refresh_from_db()
    granted.refresh_from_db()
    assert (asked.status, granted.status) == ("expired", "booked")
    assert held() == 1


def test_a_broken_server_of_a_reservation_is_replaced_by_itself(person):
    booked = a_reservation(person, starts_at=later(days=3))
    first = Allocation.objects.get().node
    with platform_context():
        inventory.quarantine(node=first, reason="ECC")
        keep_capacity.run()
    second = Allocation.objects.get(released_at=None)
    assert (second.reservation, second.during.upper) == (booked.pk, booked.ends_at)
    assert second.node_id != first.pk
    with platform_context():
        inventory.quarantine(node=second.node, reason="ECC")
        keep_capacity.run()
        keep_capacity.run()
        assert second.node.tickets.filter(category="reservation").count() == 1
        assert Notice.objects.filter(kind="reservation.short").count() == 1


def test_a_borrowed_server_is_given_back_in_time_and_its_customer_warned(person, other, globex):
    with tenant_context(globex):
        theirs = a_reservation(other, quantity=2, starts_at=later(days=3))
    quote = orders.make_quote(
        actor=person, offering_sku=SKU, site_code=world.SITE, quantity=1, accepts_recall=True
    )
    assert quote.terms["recall"]["free_until_recalled"] == 2
    order = orders.place_order(
        actor=person, quote_id=quote.pk, project_id=world.Project.objects.get().pk, name="loan",
        ssh_public_keys=[world.KEY],
    )  # fmt: skip
    service = world.until_ready(order)
    recalled_at = theirs.starts_at - HOUR
    assert service.recalled_at == recalled_at
    at(recalled_at - DAY)
    assert "lent until" in Notice.objects.get(kind="service.ends_soon").body
    at(recalled_at + timedelta(minutes=5))
    service.refresh_from_db()
    assert (service.state, service.ended_at) == (ServiceState.DELETING, recalled_at)


def test_a_borrowed_server_stays_when_the_reservation_is_cancelled(person, other, globex):
    with tenant_context(globex):
        theirs = a_reservation(other, quantity=2, starts_at=later(days=3))
    quote = orders.make_quote(
        actor=person, offering_sku=SKU, site_code=world.SITE, quantity=1, accepts_recall=True
    )
    order = orders.place_order(
        actor=person, quote_id=quote.pk, project_id=world.Project.objects.get().pk, name="loan",
        ssh_public_keys=[world.KEY],
    )  # fmt: skip
    with tenant_context(globex):
        orders.cancel_reservation(reservation_id=theirs.pk, actor=other)
    with platform_context():
        keep_capacity.run()
    service = Service.objects.get(order=order)
    assert service.recalled_at is None
    at(theirs.starts_at + DAY)
    service.refresh_from_db()
    assert service.state == ServiceState.PROVISIONING


def test_another_tenants_reservation_is_not_found(person, other, globex):
    booked = a_reservation(person)
    with tenant_context(globex), pytest.raises(NotFound):
        orders.cancel_reservation(reservation_id=booked.pk, actor=other)


def test_each_act_is_in_the_trail(person):
    booked = a_reservation(person, starts_at=later(days=2))
    orders.cancel_reservation(reservation_id=booked.pk, actor=person, reason="x")
    acts = AuditEntry.objects.filter(subject_id=str(booked.pk)).order_by("id")
    assert list(acts.values_list("action", flat=True)) == [
        "reservation.placed", "reservation.cancelled",
    ]  # fmt: skip
    assert not Order.objects.exists()
