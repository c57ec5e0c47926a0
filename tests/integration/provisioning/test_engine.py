"""The engine on the fake driver: an order becomes a server, a server becomes a clean node again."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.core.errors import Refused, SiteUnreachable, Transient
from apps.core.uuids import uuid7
from apps.inventory.models import AddressLease, Allocation, Node, Ticket
from apps.orders import services as orders
from apps.orders.models import Fact, Service
from apps.orders.states import ServiceState
from apps.provisioning import selectors, services
from apps.provisioning.models import Run, RunEvent, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


def states_of(service):
    return list(Fact.objects.filter(service=service).order_by("id").values_list("state", flat=True))


def charged(service):
    """Did any fact make the service cost something?"""
    return Fact.objects.filter(service=service, state__in=["active", "stopped"]).exists()


def nothing_is_held(service):
    assert not Allocation.objects.filter(service=service.pk, released_at=None).exists()
    assert not AddressLease.objects.filter(service=service.pk, released_at=None).exists()
    for node in world.fake().nodes.values():
        assert node.seen.instance_id is None
        assert node.deployment is None


def test_an_order_becomes_an_active_server_only_after_it_called_home(site, acme):
    order = world.an_accepted_order()

    for _round in range(6):
        world.step()
    waiting = world.the_service(order)
    assert waiting.state == ServiceState.PROVISIONING
    assert not charged(waiting)

    world.call_home(waiting)
    world.step()

    service = world.the_service(order)
    assert service.state == ServiceState.ACTIVE
    fact = Fact.objects.get(service=service, state="active")
    assert fact.start_at == service.ready_at
    assert service.address.startswith("10.20.0.")
    step = RunStep.objects.get(run__service=service.pk, name="prove_ready")
    assert all(item["ok"] is not False for item in step.evidence)


def test_a_terminated_server_is_cleaned_and_its_node_is_sold_again(site, acme):
    service = world.until_ready(world.an_accepted_order())

    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())
    ended = Service.objects.get(pk=service.pk)
    assert ended.state == ServiceState.DELETING
    assert not Allocation.objects.filter(service=service.pk, released_at=None).exists()
    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert gone.ended_at == Fact.objects.get(service=service, state="deleting").start_at
    assert states_of(service) == ["provisioning", "active", "deleting", "terminated"]
    node = Node.objects.get(pk=service.node_id)
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert node.clean_proof["simulated"] is True
    nothing_is_held(service)


def test_a_server_with_seven_gpus_is_replaced_and_the_bad_node_is_quarantined(site, acme):
    order = world.an_accepted_order()
    for _round in range(5):
        world.step()
    service = world.the_service(order)
    bad = service.node_id
    with platform_context():
        run = Run.objects.get(service=service.pk)
        seven = world.healthy(run)["gpus"][:7]
    world.call_home(service, gpus=seven)

    ready = world.until_ready(order)

    assert ready.node_id != bad
    node = Node.objects.get(pk=bad)
    assert node.status == "quarantined"
    assert "GPU count" in node.status_reason
    assert Ticket.objects.filter(node=bad, closed_at=None).exists()
    assert states_of(ready) == ["provisioning", "active"]
    assert (
        Allocation.objects.filter(service=ready.pk, released_at=None).get().node_id == ready.node_id
    )


def test_without_replacements_a_bad_server_is_undone_and_never_charged(platform, acme):
    with platform_context():
        world.a_fake_site(nodes=2, max_replacements=0)
    order = world.an_accepted_order()
    for _round in range(5):
        world.step()
    service = world.the_service(order)
    with platform_context():
        seven = world.healthy(Run.objects.get(service=service.pk))["gpus"][:7]
    world.call_home(service, gpus=seven)

    failed = world.until_gone(service)

    assert failed.state == ServiceState.FAILED
    assert not charged(failed)
    nothing_is_held(failed)
    order.refresh_from_db()
    assert order.status == "closed"
    evidence = RunStep.objects.get(run__service=service.pk, name="prove_ready").evidence
    count = next(one for one in evidence if one["item"] == "GPU count")
    assert (count["group"], count["wanted"], count["seen"]) == ("GPUs recognised", 8, 7)
    assert count["ok"] is False


def test_silence_is_a_node_fault_and_never_a_pass(platform, acme):
    with platform_context():
        world.a_fake_site(nodes=1, max_replacements=0, readiness_seconds=20)
    order = world.an_accepted_order()
    for _round in range(6):
        world.step()
    service = world.the_service(order)
    RunStep.objects.filter(run__service=service.pk, name="prove_ready").update(
        deadline=clock.now() - timedelta(seconds=1)
    )

    failed = world.until_gone(service)

    assert failed.state == ServiceState.FAILED
    assert not charged(failed)
    assert "did not call home" in Run.objects.get(service=service.pk).reason


def test_a_locked_node_is_tried_again_and_deployed_once(site, acme):
    world.fake().fail("deploy", Transient("locked"), Transient("locked"), Transient("locked"))
    order = world.an_accepted_order()
    world.step()
    service = world.the_service(order)
    assert service.condition == "retrying"

    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE
    node = world.fake().nodes[Node.objects.get(pk=ready.node_id).infra_id]
    assert node.deploys == 1
    assert [name for name, _node in world.fake().calls].count("deploy") == 4


def test_a_call_that_timed_out_after_it_succeeded_is_not_made_twice(site, acme):
    world.fake().fail("deploy", SiteUnreachable("timed out"), after_effect=True)
    order = world.an_accepted_order()

    ready = world.until_ready(order)

    node = world.fake().nodes[Node.objects.get(pk=ready.node_id).infra_id]
    assert node.deploys == 1


def test_a_silent_site_pauses_the_run_and_uses_up_no_try(site, acme):
    order = world.an_accepted_order()
    world.deliver()
    world.fake().fail("reserve", *[SiteUnreachable("refused")] * 3)

    for _round in range(3):
        world.step()
    service = world.the_service(order)
    assert service.condition == "delayed"
    step = RunStep.objects.get(run__service=service.pk, name="claim_node")
    assert step.attempts == 0
    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE


def test_a_site_the_watcher_cannot_reach_is_not_asked_by_any_run(site, acme):
    order = world.an_accepted_order()
    world.step()
    asked = len(world.fake().calls)
    world.fake().fail("list_nodes", *[SiteUnreachable("no route")] * 2)

    for _round in range(2):
        world.step(settle=False)
    service = world.the_service(order)
    assert service.condition == "delayed"
    assert {name for name, _node in world.fake().calls[asked:]} == {"list_nodes"}
    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE
    assert ready.condition == ""


def test_a_refusal_is_held_for_a_person_who_can_try_again(site, acme):
    world.fake().fail("deploy", Refused("no such image"))
    order = world.an_accepted_order()
    world.step()
    service = world.the_service(order)
    assert service.condition == "looked_at"
    with platform_context():
        run = Run.objects.get(service=service.pk)
        assert run.status == "held"
        operator = world.builders.a_person(role="operator")
        services.retry_step(run_id=run.pk, actor=operator, reason="image uploaded")

    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE
    retried = RunEvent.objects.get(run=run, kind="retry")
    assert retried.actor == str(operator)
    assert retried.detail == "image uploaded"


def test_a_hold_nobody_looks_at_is_undone_without_charge(site, acme):
    world.fake().fail("deploy", Refused("no such image"))
    order = world.an_accepted_order()
    world.step()
    service = world.the_service(order)
    with platform_context():
        Run.objects.filter(service=service.pk).update(next_try_at=clock.now())
        world.runs.end_expired_holds()

    failed = world.until_gone(service)

    assert failed.state == ServiceState.FAILED
    assert not charged(failed)
    nothing_is_held(failed)


def test_cancelling_during_provisioning_undoes_everything_and_returns_the_node(site, acme):
    order = world.an_accepted_order()
    world.step()
    orders.cancel_order(
        order_id=order.pk, actor=world.User.objects.first(), reason="changed my mind"
    )
    service = world.the_service(order)
    assert not Allocation.objects.filter(service=service.pk, released_at=None).exists()

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert not charged(gone)
    nothing_is_held(gone)
    assert Node.objects.get(pk=service.node_id).status == "available"


def test_a_node_that_cannot_be_cleaned_is_quarantined_and_the_customer_is_free(site, acme):
    service = world.until_ready(world.an_accepted_order())
    infra = Node.objects.get(pk=service.node_id).infra_id
    world.fake().nodes[infra].clean_error = "disk 3 did not answer"
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    node = Node.objects.get(pk=service.node_id)
    assert node.status == "quarantined"
    assert "disk 3 did not answer" in node.status_reason


def test_a_deploy_that_fails_moves_to_another_node(site, acme):
    order = world.an_accepted_order()
    first = world.the_service(order).node_id
    world.fake().nodes[Node.objects.get(pk=first).infra_id].deploy_error = "PXE timed out"

    ready = world.until_ready(order)

    assert ready.node_id != first
    assert Node.objects.get(pk=first).status == "quarantined"


def test_a_conductor_that_died_while_deploying_costs_no_node(site, acme):
    order = world.an_accepted_order()
    first = world.the_service(order).node_id
    node = world.fake().nodes[Node.objects.get(pk=first).infra_id]
    node.deploy_error = (
        "The deploying state can't be resumed by conductor lab. Moving to fail state."
    )
    world.step()
    world.step(settle=False)
    node.deploy_error = ""

    ready = world.until_ready(order)

    assert ready.node_id == first
    assert node.deploys == 2
    assert Node.objects.get(pk=first).status == "allocated"


def test_two_workers_cannot_hold_one_run(site, acme):
    world.an_accepted_order()
    world.deliver()
    with platform_context():
        (run_id,) = world.claims.due_runs()
        first = world.claims.claim(run_id)
        assert first is not None
        assert world.claims.claim(run_id) is None


def test_who_lost_the_claim_can_no_longer_write(site, acme):
    world.an_accepted_order()
    world.deliver()
    with platform_context():
        (run_id,) = world.claims.due_runs()
        first = world.claims.claim(run_id)
        Run.objects.filter(pk=run_id).update(lease_until=clock.now() - timedelta(seconds=1))
        second = world.claims.claim(run_id)
        assert second.fence == first.fence + 1
        with pytest.raises(world.claims.LostClaim):
            world.claims.locked(first)


def test_a_node_fault_while_undoing_leaves_a_visible_leak_and_undoes_the_rest(site, acme):
    service = world.until_ready(world.an_accepted_order())
    assert service.state == ServiceState.ACTIVE
    order = world.an_accepted_order(name="second")
    world.step()
    other = world.the_service(order)
    node = Node.objects.get(pk=other.node_id)
    del world.fake().nodes[node.infra_id]
    orders.cancel_order(order_id=order.pk, actor=world.User.objects.first())

    gone = world.until_gone(other)

    assert gone.state == ServiceState.TERMINATED
    leaked = RunStep.objects.filter(run__service=other.pk, status="leaked")
    assert leaked.exists()
    assert Node.objects.get(pk=node.pk).status == "quarantined"


def test_a_time_is_promised_after_five_real_runs_of_anybody(site, acme, globex):
    with platform_context():
        here = site.pk
    order = world.an_accepted_order()
    world.until_ready(order)
    (run,) = Run.objects.filter(order=order.pk)
    assert not selectors.expectation(sku=run.sku, site=here).is_known

    with platform_context():
        for minutes in (10, 20, 30, 40):
            copied = Run.objects.get(pk=run.pk)
            copied.pk, copied.service, copied.tenant = uuid7(), uuid7(), globex.id
            copied.ended_at = run.created_at + timedelta(minutes=minutes)
            copied.save(force_insert=True)
            Run.objects.filter(pk=copied.pk).update(created_at=run.created_at)

    times = selectors.expectation(sku=run.sku, site=here)
    assert times.usual == timedelta(minutes=20)
    assert times.long == timedelta(minutes=40)


def test_an_order_that_chose_to_wait_keeps_waiting_for_another_node(platform, acme):
    with platform_context():
        here = world.a_fake_site(nodes=1)
    order = world.an_accepted_order(if_unavailable="queue")
    first = world.the_service(order).node_id
    world.fake().nodes[Node.objects.get(pk=first).infra_id].deploy_error = "PXE timed out"
    for _round in range(8):
        world.step()
    waiting = world.the_service(order)
    assert waiting.state == ServiceState.PROVISIONING
    assert waiting.condition == "in_queue"

    with platform_context():
        world.another_node(here)
    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE
    assert ready.node_id != first
