"""A host that fails under a running service: degraded, told, replaced under the same service."""

from dataclasses import replace
from datetime import timedelta

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.inventory.models import Allocation, Node, Ticket
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.models import Deadline, Fact, Service
from apps.orders.states import ServiceState
from apps.provisioning import services as provisioning
from apps.provisioning.adapters.fake import FakeNode
from apps.provisioning.errors import NotNow
from apps.provisioning.models import FailurePolicy, Run
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world
from tests.integration.provisioning.test_operating import states_of, until_over

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


@pytest.fixture
def service(site, acme):
    return world.until_ready(world.an_accepted_order())


def node_of(service) -> FakeNode:
    service.refresh_from_db()
    return world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id]


def break_down(service):
    world.fake().break_down(node_of(service).seen.infra_id)
    world.step()
    service.refresh_from_db()


def replace_host(service):
    return provisioning.replace_host(
        service_id=service.pk, actor=User.objects.first(), reason="no answer"
    )


def notices(kind):
    return Notice.objects.filter(kind=kind).count()


def test_a_fault_shows_as_degraded_and_stays_charged(service):
    break_down(service)

    assert (service.state, service.condition) == (ServiceState.ACTIVE, "degraded")
    assert service.degraded_at is not None
    assert states_of(service) == ["provisioning", "active"]
    assert Ticket.objects.filter(category="host", closed_at=None).count() == 1
    assert notices("service.degraded") == 1
    world.step()
    assert notices("service.degraded") == 1
    with platform_context():
        assert notices("host.fault") == 1


def test_a_fault_that_heals_by_itself_is_told_as_well(service):
    break_down(service)
    node = node_of(service)
    node.seen = replace(node.seen, maintenance=False, fault="", power_state="power on")

    world.step()

    service.refresh_from_db()
    assert (service.condition, service.degraded_at) == ("", None)
    assert notices("service.recovered") == 1


@pytest.mark.parametrize(
    "changes",
    [{"provision_state": "error"}, {"maintenance": True}, {"power_state": "power off"}],
)
def test_each_kind_of_fault_is_seen(service, changes):
    node = node_of(service)
    node.seen = replace(node.seen, **changes)
    world.step()
    service.refresh_from_db()
    assert service.condition == "degraded"


def test_a_host_the_site_no_longer_lists_is_a_fault(service):
    del world.fake().nodes[node_of(service).seen.infra_id]
    world.step()
    service.refresh_from_db()
    assert service.condition == "degraded"


def test_another_host_takes_over_under_the_same_service(service):
    old, address, key = service.node_id, service.address, service.pk
    break_down(service)
    seen_at = service.degraded_at

    run = replace_host(service)
    service.refresh_from_db()
    assert (service.state, service.condition) == (ServiceState.SUSPENDED, "replacing")
    after = until_over(run)

    assert run.status == "succeeded"
    assert (after.pk, after.state, after.condition) == (key, ServiceState.ACTIVE, "")
    assert after.node_id != old
    assert after.address == address
    assert states_of(service) == ["provisioning", "active", "suspended", "active"]
    assert Fact.objects.get(service=service, state="suspended").start_at == seen_at
    lost = Node.objects.get(pk=old)
    assert lost.status == "quarantined"
    assert world.fake().nodes[lost.infra_id].seen.instance_id is None
    (held,) = Allocation.objects.filter(service=service.pk, released_at=None)
    assert held.node_id == after.node_id
    assert (after.degraded_at, after.suspended_until) == (None, None)
    assert not Deadline.objects.filter(kind="suspension.end", done_at=None).exists()
    assert notices("service.suspended") == notices("service.resumed") == 1
    assert AuditEntry.objects.get(action="service.replace_host").reason == "no answer"


def test_a_host_that_still_obeys_is_switched_off_and_cleaned(service):
    node = node_of(service)
    node.seen = replace(node.seen, provision_state="error")
    world.step()

    until_over(replace_host(service))

    assert node.seen.power_state == "power off"
    assert (node.seen.instance_id, node.seen.provision_state) == (None, "available")
    assert node.cleanings


def test_a_host_that_is_lost_is_never_sold_before_a_person_restores_it(service):
    old = service.node_id
    break_down(service)
    until_over(replace_host(service))

    for _round in range(3):
        world.step()

    assert Node.objects.get(pk=old).status == "quarantined"


def test_the_policy_may_replace_a_host_by_itself_after_a_while(service):
    FailurePolicy.objects.create(on_host_fault="replace", host_fault_minutes=10)
    break_down(service)
    world.step()
    assert Service.objects.get(pk=service.pk).state == ServiceState.ACTIVE
    Service.objects.update(degraded_at=clock.now_seconds() - timedelta(minutes=11))

    world.step()
    world.step()

    service.refresh_from_db()
    assert service.state == ServiceState.SUSPENDED
    until_over(Run.objects.filter(service=service.pk).latest("created_at"))
    assert Service.objects.get(pk=service.pk).state == ServiceState.ACTIVE


def test_power_alone_never_takes_a_host_away(service):
    FailurePolicy.objects.create(on_host_fault="replace", host_fault_minutes=0)
    node = node_of(service)
    node.seen = replace(node.seen, power_state="power off")

    for _round in range(3):
        world.step()

    assert Service.objects.get(pk=service.pk).state == ServiceState.ACTIVE


def test_without_capacity_it_waits_free_of_charge_and_goes_on_when_there_is_some(service, site):
    Node.objects.filter(status="available").update(status="quarantined")
    break_down(service)
    run = replace_host(service)
    for _round in range(6):
        world.step()
    service.refresh_from_db()
    assert (service.state, service.condition) == (ServiceState.SUSPENDED, "in_queue")

    with platform_context():
        world.another_node(site)
    after = until_over(run)

    assert after.state == ServiceState.ACTIVE


def test_a_suspension_ends_after_seven_days(service):
    Node.objects.filter(status="available").update(status="quarantined")
    break_down(service)
    replace_host(service)
    world.step()
    service.refresh_from_db()
    deadline = Deadline.objects.get(kind="suspension.end", subject=service.pk)
    assert deadline.due_at == service.suspended_until

    orders.end_suspension(service_id=service.pk, due_at=deadline.due_at)
    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert states_of(service) == ["provisioning", "active", "suspended", "deleting", "terminated"]


def test_a_bad_second_host_is_replaced_too(service, site):
    with platform_context():
        world.another_node(site)
    break_down(service)
    run = replace_host(service)
    for _round in range(12):
        world.step()
        run.refresh_from_db()
        if run.steps.filter(name="prove_ready", status="waiting").exists():
            break
    second = run.node_id
    with platform_context():
        seven = world.healthy(run)["gpus"][:7]
    world.call_home(service, run=run, gpus=seven)

    after = until_over(run)

    assert after.state == ServiceState.ACTIVE
    assert Node.objects.get(pk=second).status == "quarantined"
    assert after.node_id not in (second, run.wanted["lost_node"])


def test_a_service_ended_while_its_host_is_replaced_is_finished(service):
    break_down(service)
    run = replace_host(service)
    for _round in range(5):
        world.step()

    orders.terminate_service(service_id=service.pk, actor=User.objects.first())
    gone = world.until_gone(service)

    run.refresh_from_db()
    assert (gone.state, run.status) == (ServiceState.TERMINATED, "undone")
    assert not Allocation.objects.filter(released_at=None).exists()


def test_a_service_that_has_ended_gets_no_other_host(service):
    orders.terminate_service(service_id=service.pk, actor=User.objects.first())
    world.until_gone(service)
    with pytest.raises(NotNow):
        replace_host(service)
    assert provisioning.replace_lost(service_id=service.pk, why="late") is None
