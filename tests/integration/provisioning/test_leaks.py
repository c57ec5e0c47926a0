"""What could not be undone is seen, priced, looked after, and tried again until it is gone."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal

import pytest

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import NodeFault, Refused, SiteUnreachable
from apps.inventory.models import Node, Ticket
from apps.orders import services as orders
from apps.orders.states import ServiceState
from apps.provisioning import errors, selectors, services
from apps.provisioning.engine import leaks
from apps.provisioning.models import Leak, Run, RunEvent, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
WHY = "seen at the rack"


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


@pytest.fixture
def kim(platform):
    with platform_context():
        return world.builders.a_person(role="operator", name="Kim")


def a_leak(*errors_of_undeploy):
    """A cancelled order whose server could not be undeployed."""
    order = world.an_accepted_order()
    for _round in range(6):
        world.step()
    service = world.the_service(order)
    world.fake().fail("undeploy", *(errors_of_undeploy or [Refused("policy says no")]))
    orders.cancel_order(order_id=order.pk, actor=world.User.objects.first(), reason="no")
    world.until_gone(service)
    return Leak.objects.get(service=service.pk, step="deploy")


def try_now(leak, rounds=4):
    with platform_context():
        for _round in range(rounds):
            Leak.objects.filter(pk=leak.pk, gone_at=None).update(next_try_at=clock.now())
            for leak_id in leaks.due_leaks():
                leaks.try_again(leak_id)
            world.fake().settle()
    leak.refresh_from_db()
    return leak


def test_a_leak_names_the_thing_at_the_provider_and_its_list_price(site, acme):
    leak = a_leak()

    node = Node.objects.get(pk=leak.node_id)
    assert str(leak.service) in leak.what
    assert str(node.infra_id) in leak.what
    assert (leak.price_per_hour, leak.currency) == (Decimal(4000 * 8), "KRW")
    assert node.status == "quarantined"
    assert RunStep.objects.get(run=leak.run, name="deploy").status == "leaked"


def test_what_a_leak_has_cost_so_far_grows_with_its_age(site, acme):
    leak = a_leak()
    at = leak.since + timedelta(minutes=90)

    assert selectors.cost_of_leak(leak, at=at).amount == Decimal(48000)


def test_a_leak_is_tried_again_until_it_is_gone_and_its_node_is_sold_again(site, acme):
    leak = try_now(a_leak())

    assert leak.gone_how.startswith("undone at try")
    step = RunStep.objects.get(run=leak.run, name="deploy")
    assert step.status == "undone"
    node = Node.objects.get(pk=leak.node_id)
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert not Ticket.objects.filter(node=node, closed_at=None).exists()
    assert RunEvent.objects.filter(run=leak.run, kind="leak gone").exists()
    with platform_context():
        assert AuditEntry.objects.filter(action="leak.gone").exists()


def test_a_leak_that_stays_is_looked_at_again_after_the_time_of_its_policy(site, acme, kim):
    with platform_context():
        services.set_policy(site=site, sku="", actor=kim, reason=WHY, leak_retry_minutes=30)
    leak = a_leak(*[Refused("policy says no")] * 2)
    leak = try_now(leak, rounds=1)

    assert leak.gone_at is None
    assert leak.attempts == 1
    assert "policy says no" in leak.detail
    assert leak.next_try_at - clock.now() > timedelta(minutes=29)


def test_nothing_is_asked_of_a_silent_site(site, acme):
    leak = a_leak()
    world.fake().fail("list_nodes", SiteUnreachable("no route"))
    world.step()
    asked = len(world.fake().calls)

    leak = try_now(leak, rounds=1)

    assert leak.gone_at is None
    assert len(world.fake().calls) == asked


def test_two_workers_do_not_try_one_leak_at_once(site, acme):
    leak = a_leak()
    Leak.objects.filter(pk=leak.pk).update(next_try_at=clock.now())
    with platform_context():
        assert leaks._claim(leak.pk) is not None
        assert leaks.due_leaks() == []
        assert leaks._claim(leak.pk) is None


def test_a_worker_that_died_in_a_try_holds_back_nothing_for_long(site, acme):
    leak = a_leak()
    Leak.objects.filter(pk=leak.pk).update(next_try_at=clock.now())
    with platform_context():
        dead = leaks._claim(leak.pk)
        Leak.objects.filter(pk=leak.pk).update(lease_until=clock.now() - timedelta(seconds=1))
        gone = try_now(leak)
    assert gone.gone_at is not None
    with platform_context():
        assert leaks._put_off(dead, "late") is False
    assert Leak.objects.get(pk=leak.pk).gone_at == gone.gone_at


def test_a_leak_is_looked_after_and_closed_by_a_person_and_its_node_stays_out(site, acme, kim):
    leak = a_leak()
    with platform_context():
        services.assign_leak(leak_id=leak.pk, actor=kim)
        assert Leak.objects.get(pk=leak.pk).owner == "Kim"
        services.close_leak(leak_id=leak.pk, actor=kim, reason=WHY)
        with pytest.raises(errors.LeakGone):
            services.close_leak(leak_id=leak.pk, actor=kim, reason=WHY)
        assert AuditEntry.objects.get(action="leak.closed").reason == WHY

    leak.refresh_from_db()
    assert leak.gone_how == f"closed by Kim: {WHY}"
    assert Node.objects.get(pk=leak.node_id).status == "quarantined"
    assert RunStep.objects.get(run=leak.run, name="deploy").status == "leaked"


def test_nobody_vouches_for_a_node_with_a_leak_on_it(site, acme, kim):
    leak = a_leak()
    with platform_context(), pytest.raises(errors.LeakFirst):
        services.ask_override(run_id=leak.run_id, actor=kim, evidence="wiped by hand, twice over")


def a_leak_while_replacing():
    """The first node failed, and what was on it could not be undone."""
    order = world.an_accepted_order()
    node = Node.objects.get(pk=world.the_service(order).node_id)
    world.fake().nodes[node.infra_id].deploy_error = "PXE timed out"
    world.fake().fail("undeploy", NodeFault("does not answer"))
    for _round in range(6):
        world.step()
    return order, Leak.objects.get(service=world.the_service(order).pk)


def test_a_bad_node_stays_out_after_its_leak_is_gone(site, acme):
    """It was quarantined for its own fault before anything leaked."""
    _order, leak = a_leak_while_replacing()
    assert not leak.took_node

    try_now(leak)

    assert leak.gone_at is not None
    assert Node.objects.get(pk=leak.node_id).status == "quarantined"


def test_no_other_node_is_taken_before_the_leak_of_the_last_one_is_gone(site, acme):
    """What leaked still takes the service's place at the site."""
    order, leak = a_leak_while_replacing()
    run = Run.objects.get(order=order.pk)
    assert (run.status, run.outcome) == ("held", "replace")
    assert leak.what in run.reason
    try_now(leak)

    ready = world.until_ready(order)

    assert ready.node_id != leak.node_id


def test_a_leak_closed_by_a_person_lets_the_run_go_on(site, acme, kim):
    order, leak = a_leak_while_replacing()
    infra = Node.objects.get(pk=leak.node_id).infra_id
    world.fake().nodes[infra].seen = replace(
        world.fake().nodes[infra].seen, instance_id=None, provision_state="clean failed"
    )
    with platform_context():
        services.close_leak(leak_id=leak.pk, actor=kim, reason=WHY)

    assert world.until_ready(order).state == ServiceState.ACTIVE
