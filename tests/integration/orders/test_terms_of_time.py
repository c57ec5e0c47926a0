"""From when to when: starts, ends, warnings, extensions; an agreed instant counts to the second."""

from datetime import timedelta

import pytest
from psycopg.types.range import TimestamptzRange

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.core import clock, instants
from apps.core.errors import AppError
from apps.core.uuids import uuid7
from apps.inventory.models import Allocation, Node
from apps.metering import selectors as metering
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.deadlines import deadline_of, serve_due
from apps.orders.errors import (
    ApproverNeeded,
    NodeReserved,
    NotScheduled,
    Protected,
    ServiceOver,
    TooLong,
    WrongEnd,
    WrongStart,
)
from apps.orders.models import Deadline, Fact, Order, Service, TenantLimit
from apps.orders.services.states import move_service
from apps.orders.states import ServiceState
from apps.tenancy.context import platform_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@pytest.fixture
def person(site, acme):
    builders.a_project("training")
    return builders.a_person()


def serve(at=None):
    if at is not None:
        builders.move_clock(at)
    with platform_context():
        return serve_due()


def a_ready_service(**choices):
    return world.until_ready(world.an_accepted_order(**choices))


def charged(service, until):
    """Charged seconds up to an instant."""
    since = service.created_at - DAY
    return sum(one.seconds for one in metering.usage(
        services=[service.pk], since=since, until=until)
    )  # fmt: skip


# Start


def test_a_scheduled_order_holds_nothing_and_says_so(person):
    order = world.an_accepted_order(starts_at=clock.now() + 3 * DAY)
    assert order.status == "scheduled"
    assert not Allocation.objects.exists()
    assert ledger.used() == {"gpus": 0, "services": 0}
    world.deliver()
    told = Notice.objects.get(kind="order.scheduled")
    assert "holds no server" in told.body
    assert serve(order.starts_at - HOUR) == 0
    ledger.must_be_sound()


def test_it_begins_at_its_start(person):
    order = world.an_accepted_order(starts_at=clock.now() + DAY, ends_at=clock.now() + 3 * DAY)
    assert serve(order.starts_at) == 1
    order.refresh_from_db()
    assert order.status == "accepted"
    assert Service.objects.get().ends_at == order.ends_at
    assert serve() == 0
    ledger.must_be_sound()


@pytest.mark.parametrize(("choice", "becomes"), [("fail", "refused"), ("queue", "queued")])
def test_without_a_free_server_at_its_start_it_does_what_was_chosen(person, choice, becomes):
    order = world.an_accepted_order(starts_at=clock.now() + DAY, if_unavailable=choice)
    for name in ("one", "two"):
        world.an_accepted_order(name=name)
    serve(order.starts_at)
    order.refresh_from_db()
    assert order.status == becomes
    world.deliver()
    assert Notice.objects.filter(kind=f"order.{becomes}").count() == 1
    if becomes == "refused":
        assert "0" in order.status_reason
        assert order.status_reason in Notice.objects.get(kind="order.refused").body
    ledger.must_be_sound()


@pytest.mark.parametrize("choice", ["fail", "queue"])
def test_limits_are_looked_at_again_at_its_start(person, acme, choice):
    order = world.an_accepted_order(starts_at=clock.now() + DAY, if_unavailable=choice)
    TenantLimit.objects.filter(tenant=acme.pk).update(max_gpus=8)
    world.an_accepted_order(name="other")
    serve(order.starts_at)
    order.refresh_from_db()
    assert order.status == "refused"
    assert "8" in order.status_reason
    ledger.must_be_sound()


def test_it_can_be_cancelled_before_its_start(person):
    order = world.an_accepted_order(starts_at=clock.now() + DAY)
    orders.cancel_order(order_id=order.pk, actor=person)
    assert serve(order.starts_at + HOUR) == 0
    order.refresh_from_db()
    assert order.status == "cancelled"
    assert not Service.objects.exists()


def test_its_start_can_be_moved(person):
    order = world.an_accepted_order(starts_at=clock.now() + DAY)
    later = order.starts_at + DAY
    for _repeat in range(2):
        orders.reschedule_order(order_id=order.pk, starts_at=later, ends_at=None, actor=person)
    assert serve(order.starts_at) == 0
    assert serve(later) == 1
    assert AuditEntry.objects.filter(action="order.rescheduled").count() == 1


def test_without_a_start_it_begins_at_once(person):
    order = world.an_accepted_order(starts_at=clock.now() + DAY)
    orders.reschedule_order(order_id=order.pk, starts_at=None, ends_at=None, actor=person)
    order.refresh_from_db()
    assert order.status == "accepted"
    assert serve(clock.now() + 2 * DAY) == 0
    with pytest.raises(NotScheduled):
        orders.reschedule_order(
            order_id=order.pk, starts_at=clock.now() + 3 * DAY, ends_at=None, actor=person
        )


def test_moving_it_cannot_lengthen_what_needs_approval(person):
    orders.set_order_policy(approval_from_gpus=8, approval_hours=1, longest_days=None, actor=person)
    member = builders.a_person(role=Role.MEMBER)
    start = clock.now() + DAY
    order = world.an_accepted_order(person=member, starts_at=start, ends_at=start + DAY)
    orders.approve(approval_id=order.approval.pk, actor=person)
    with pytest.raises(ApproverNeeded):
        orders.reschedule_order(
            order_id=order.pk, starts_at=start, ends_at=start + 2 * DAY, actor=member
        )
    orders.reschedule_order(
        order_id=order.pk, starts_at=start + DAY, ends_at=start + 2 * DAY, actor=member
    )


@pytest.mark.parametrize(
    ("start", "end", "error"),
    [
        (-HOUR, None, WrongStart),
        (400 * DAY, None, WrongStart),
        (None, -HOUR, WrongEnd),
        (2 * DAY, DAY, WrongEnd),
        (2 * DAY, 2 * DAY, WrongEnd),
    ],
)
def test_impossible_times_are_refused_before_anything_is_agreed(person, start, end, error):
    now = clock.now()
    before = ledger.rows()
    with pytest.raises(error) as refused:
        world.an_accepted_order(
            starts_at=now + start if start else None, ends_at=now + end if end else None
        )
    assert refused.value.field in ("starts_at", "ends_at")
    assert ledger.rows() == before


# End


def test_a_service_ends_by_itself_at_its_agreed_second_however_late_we_come(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    assert serve(service.ends_at - timedelta(seconds=1)) == 1  # a warning only
    assert serve(service.ends_at + 2 * HOUR) >= 1  # two hours late

    gone = Service.objects.get(pk=service.pk)
    assert gone.state == ServiceState.DELETING
    assert gone.ended_at == service.ends_at
    fact = Fact.objects.get(service=service, state=ServiceState.DELETING)
    assert fact.start_at == service.ends_at
    assert fact.cause == "agreed end reached"
    assert charged(service, clock.now()) == (service.ends_at - service.ready_at).total_seconds()
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert world.until_gone(service).state == ServiceState.TERMINATED
    assert Order.objects.get().status == "closed"
    ledger.must_be_sound()


def test_terminating_by_hand_after_the_agreed_end_costs_nothing_more(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    builders.move_clock(service.ends_at + HOUR)
    orders.terminate_service(service_id=service.pk, actor=person)
    assert charged(service, clock.now()) == (service.ends_at - service.ready_at).total_seconds()
    assert serve() == 0
    ledger.must_be_sound()


def test_after_the_agreed_end_a_service_only_ends(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    builders.move_clock(service.ends_at + timedelta(seconds=2))
    for verb in ("stop", "suspend"):
        with pytest.raises(ServiceOver):
            move_service(service=Service.objects.get(), verb=verb, cause="test")


def test_a_service_that_becomes_ready_after_its_end_costs_nothing(person):
    order = world.an_accepted_order(ends_at=clock.now() + HOUR)
    builders.move_clock(order.ends_at + timedelta(seconds=3))
    service = world.until_ready(order)
    serve(order.ends_at + HOUR)
    assert Service.objects.get().state == ServiceState.DELETING
    assert charged(service, clock.now()) == 0


def test_one_still_being_made_at_its_end_is_undone_and_never_charged(person):
    order = world.an_accepted_order(ends_at=clock.now() + HOUR)
    world.step()
    serve(order.ends_at)
    service = world.the_service(order)
    assert service.state == ServiceState.DELETING
    assert world.until_gone(service).ready_at is None
    assert Node.objects.get(pk=service.node_id).status == "available"
    ledger.must_be_sound()


def test_an_order_whose_end_comes_while_it_waits_expires(person):
    for name in ("one", "two"):
        world.an_accepted_order(name=name)
    order = world.an_accepted_order(name="late", ends_at=clock.now() + HOUR, if_unavailable="queue")
    assert order.status == "queued"
    serve(order.ends_at + DAY)
    order.refresh_from_db()
    assert order.status == "expired"
    assert ledger.used()["gpus"] == 16
    world.deliver()
    assert Notice.objects.filter(kind="order.expired").count() == 1
    ledger.must_be_sound()


def test_warnings_come_a_week_a_day_and_an_hour_before_each_once(person):
    service = a_ready_service(ends_at=clock.now() + 10 * DAY)
    end = service.ends_at
    for lead in (9 * DAY, 7 * DAY, 6 * DAY, DAY, 2 * HOUR, HOUR, timedelta(minutes=5)):
        serve(end - lead)
        serve()
        world.deliver()
    told = Notice.objects.filter(kind="service.ends_soon")
    assert told.count() == 3
    assert {one.recipient for one in told} == {person.pk}
    assert all(service.name in one.subject for one in told)


def test_a_late_warning_is_one_warning_and_a_moved_end_warns_again(person):
    service = a_ready_service(ends_at=clock.now() + 10 * DAY)
    serve(service.ends_at - 2 * HOUR)  # two are due by now
    world.deliver()
    assert Notice.objects.filter(kind="service.ends_soon").count() == 1
    orders.set_end(service_id=service.pk, ends_at=service.ends_at + DAY, actor=person)
    serve(service.ends_at + 2 * HOUR)
    world.deliver()
    assert Notice.objects.filter(kind="service.ends_soon").count() == 2


def test_the_end_can_be_set_moved_and_taken_away(person):
    service = a_ready_service()
    end = clock.now() + 5 * DAY
    for wanted in (end, end, end + DAY, end - DAY, None, None):
        orders.set_end(service_id=service.pk, ends_at=wanted, actor=person)
    assert Service.objects.get().ends_at is None
    assert AuditEntry.objects.filter(action="service.end_changed").count() == 4
    assert serve(end + 9 * DAY) == 0
    assert Service.objects.get().state == ServiceState.ACTIVE
    assert not Deadline.objects.filter(done_at=None).exists()


def test_an_end_in_the_past_or_of_an_ended_service_is_refused(person):
    service = a_ready_service()
    with pytest.raises(WrongEnd):
        orders.set_end(service_id=service.pk, ends_at=clock.now(), actor=person)
    orders.terminate_service(service_id=service.pk, actor=person)
    with pytest.raises(ServiceOver):
        orders.set_end(service_id=service.pk, ends_at=clock.now() + DAY, actor=person)


def test_a_longer_term_keeps_to_the_longest_the_policy_allows(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    orders.set_order_policy(approval_from_gpus=None, approval_hours=1, longest_days=2, actor=person)
    for wanted in (clock.now() + 3 * DAY, None):
        with pytest.raises(TooLong):
            orders.set_end(service_id=service.pk, ends_at=wanted, actor=person)
    orders.set_end(service_id=service.pk, ends_at=service.ready_at + 2 * DAY, actor=person)


def test_a_member_cannot_lengthen_what_would_need_approval_but_may_shorten_it(person):
    service = a_ready_service(ends_at=clock.now() + 3 * DAY)
    orders.set_order_policy(approval_from_gpus=8, approval_hours=1, longest_days=None, actor=person)
    member = builders.a_person(role=Role.MEMBER)
    with pytest.raises(ApproverNeeded) as refused:
        orders.set_end(service_id=service.pk, ends_at=clock.now() + 4 * DAY, actor=member)
    assert person.name in refused.value.detail
    orders.set_end(service_id=service.pk, ends_at=clock.now() + 2 * DAY, actor=member)


def test_somebody_elses_reservation_of_the_node_names_the_latest_end(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    reserved_from = (clock.now() + 4 * DAY).replace(microsecond=0)
    held = Allocation.objects.get(service=service.pk)
    Allocation.objects.create(
        node=held.node,
        gpus=held.gpus,
        during=TimestamptzRange(reserved_from, reserved_from + DAY),
        tenant=held.tenant,
        reservation=uuid7(),
        gpu_count=held.gpu_count,
    )
    latest = reserved_from - HOUR  # the site's turn-around
    for wanted in (latest + timedelta(seconds=1), None):
        with pytest.raises(NodeReserved) as refused:
            orders.set_end(service_id=service.pk, ends_at=wanted, actor=person)
        assert instants.in_words(latest) in refused.value.detail
    orders.set_end(service_id=service.pk, ends_at=latest, actor=person)
    held.refresh_from_db()
    assert held.during.upper == reserved_from


def test_nobody_brings_the_end_of_a_protected_service_nearer(person):
    service = a_ready_service()
    orders.protect_service(service_id=service.pk, is_protected=True, actor=person)
    with pytest.raises(Protected):
        orders.set_end(service_id=service.pk, ends_at=clock.now() + DAY, actor=person)


def test_an_agreed_end_outlives_protection_and_the_warning_says_so(person):
    service = a_ready_service(ends_at=clock.now() + 3 * HOUR)
    orders.protect_service(service_id=service.pk, is_protected=True, actor=person)
    serve(service.ends_at - HOUR)
    world.deliver()
    assert "protected" in Notice.objects.get(kind="service.ends_soon").body
    serve(service.ends_at)
    assert Service.objects.get().state == ServiceState.DELETING


def test_an_ended_service_leaves_no_deadline(person):
    service = a_ready_service(ends_at=clock.now() + DAY)
    assert deadline_of(kind="service.end", subject=service.pk) == service.ends_at
    orders.terminate_service(service_id=service.pk, actor=person)
    assert not Deadline.objects.filter(done_at=None).exists()


def test_everything_past_its_end_is_over_after_one_late_run(person):
    orders.set_order_policy(
        approval_from_gpus=16, approval_hours=900, longest_days=None, actor=person
    )
    member = builders.a_person(role=Role.MEMBER)
    end = (clock.now() + DAY).replace(microsecond=0)
    active = a_ready_service(ends_at=end, name="active")
    making = world.an_accepted_order(ends_at=end, name="making")
    queued = world.an_accepted_order(ends_at=end, name="queued", if_unavailable="queue")
    asked = world.an_accepted_order(ends_at=end, name="asked", quantity=2, person=member)
    cancelled = world.an_accepted_order(ends_at=end, name="gone", starts_at=end - HOUR)
    scheduled = world.an_accepted_order(
        ends_at=end, name="scheduled", starts_at=end - timedelta(seconds=1), if_unavailable="queue"
    )
    orders.cancel_order(order_id=cancelled.pk, actor=person)

    for days in (2, 4):  # down for two days, and once more
        serve(end + days * DAY)
        assert ledger.used() == {"gpus": 0, "services": 0}
        for order in (queued, asked, scheduled):
            order.refresh_from_db()
            assert order.status == "expired"
        cancelled.refresh_from_db()
        assert cancelled.status == "cancelled"
    assert not Allocation.objects.filter(released_at=None).exists()
    for service in (active, world.the_service(making)):
        service.refresh_from_db()
        assert service.ended_at == end
    ledger.must_be_sound()


def test_refusals_of_times_are_words_a_person_can_act_on(person):
    with pytest.raises(AppError) as refused:
        world.an_accepted_order(ends_at=clock.now() - HOUR)
    assert "{" not in refused.value.detail
