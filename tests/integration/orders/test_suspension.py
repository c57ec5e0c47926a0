"""Suspension by the operator: free, capped, told, and lifted as it was."""

from datetime import timedelta

import pytest

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.machine import WrongStatus
from apps.metering import selectors as metering
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.deadlines import serve_due
from apps.orders.errors import HostLost
from apps.orders.models import Deadline, Fact, Service
from apps.orders.services.states import move_service
from apps.orders.states import ServiceState
from apps.provisioning import standing
from apps.tenancy.context import platform_context
from tests import builders, people
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def operator(platform):
    return people.an_operator(name="Oh Perator")


@pytest.fixture
def service(operator, site, acme):
    builders.a_project("training")
    builders.a_person()
    return world.until_ready(world.an_accepted_order())


def serve(at):
    builders.move_clock(at)
    with platform_context():
        return serve_due()


def suspend(service, operator):
    return orders.suspend_service(
        service_id=service.pk, actor=operator, reason="invoice INV-1 is not paid"
    )


def charged(service):
    until = clock.now() + DAY
    used = metering.usage(services=[service.pk], since=service.ready_at - DAY, until=until)
    return sum(one.seconds for one in used)


def test_it_is_free_from_that_second_on_and_the_customer_reads_why(service, operator):
    at = (clock.now() + DAY).replace(microsecond=0)
    builders.move_clock(at)
    for _repeat in range(2):
        suspend(service, operator)
    service.refresh_from_db()
    assert service.state == ServiceState.SUSPENDED
    fact = Fact.objects.get(service=service, state=ServiceState.SUSPENDED)
    assert fact.cause == "suspended by the operator"
    assert charged(service) == (fact.start_at - service.ready_at).total_seconds()
    assert service.suspended_until == fact.start_at + 7 * DAY
    world.deliver()
    told = Notice.objects.get(kind="service.suspended_by_operator")
    assert "invoice INV-1 is not paid" in told.body
    entry = AuditEntry.objects.get(action="service.suspended")
    assert (entry.actor_name, entry.actor_side) == (str(operator), "platform")
    shown = standing.of_service(service).detail
    assert "terminated" in shown
    assert "invoice INV-1 is not paid" in shown


def test_lifted_it_goes_on_and_nothing_falls_due(service, operator):
    suspend(service, operator)
    builders.move_clock(clock.now() + DAY)
    orders.lift_suspension(service_id=service.pk, actor=operator, reason="paid")
    service.refresh_from_db()
    assert (service.state, service.suspended_until) == (ServiceState.ACTIVE, None)
    assert not Deadline.objects.filter(done_at=None).exists()
    assert serve(clock.now() + 30 * DAY) == 0
    world.deliver()
    assert Notice.objects.filter(kind="service.resumed_by_operator").count() == 1
    with pytest.raises(WrongStatus):
        orders.lift_suspension(service_id=service.pk, actor=operator, reason="again")


def test_one_its_customer_had_stopped_is_stopped_again(service, operator):
    move_service(service=service, verb="stop", cause="test")
    builders.move_clock(clock.now() + timedelta(minutes=1))
    suspend(service, operator)
    builders.move_clock(clock.now() + timedelta(minutes=1))
    orders.lift_suspension(service_id=service.pk, actor=operator, reason="paid")
    service.refresh_from_db()
    assert service.state == ServiceState.STOPPED


def test_after_warnings_it_ends_at_its_cap_and_gives_everything_back(service, operator):
    until = suspend(service, operator).suspended_until
    for lead in (3 * DAY, DAY, timedelta(minutes=30)):
        serve(until - lead)
        world.deliver()
    assert Notice.objects.filter(kind="service.suspension_ends_soon").count() == 3
    serve(until + DAY)
    service.refresh_from_db()
    assert service.state == ServiceState.DELETING
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert not Deadline.objects.filter(done_at=None).exists()
    assert world.until_gone(service).state == ServiceState.TERMINATED
    ledger.must_be_sound()


def test_its_customer_may_end_it_before(service, operator):
    suspend(service, operator)
    orders.terminate_service(service_id=service.pk, actor=Service.objects.get().order.placed_by)
    assert serve(clock.now() + 30 * DAY) == 0


def test_what_was_never_ready_is_not_suspended(operator, site, acme):
    builders.a_project("training")
    builders.a_person()
    making = world.the_service(world.an_accepted_order())
    with pytest.raises(WrongStatus):
        suspend(making, operator)


def test_another_host_does_not_lift_what_an_operator_suspended(service, operator):
    suspend(service, operator)
    access = {"address": "10.20.0.77", "login": "ubuntu", "host_keys": []}
    orders.resume_service(service_id=service.pk, run=service.pk, access=access)
    service.refresh_from_db()
    assert (service.state, service.address) == (ServiceState.SUSPENDED, "10.20.0.77")


def test_an_operators_word_does_not_bring_a_lost_host_back(service, operator):
    orders.suspend_for_fault(service_id=service.pk)
    with pytest.raises(HostLost):
        orders.lift_suspension(service_id=service.pk, actor=operator, reason="try")
