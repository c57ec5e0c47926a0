"""Troubles of the engine: locked nodes, late and lost messages, acts that cross each other."""

from datetime import timedelta

import pytest
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.core import clock
from apps.core.errors import SiteUnreachable, Transient
from apps.core.uuids import uuid7
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation, Node, Site
from apps.inventory.observations import ObservedNode
from apps.orders import services as orders
from apps.orders.models import Fact, Service
from apps.orders.states import ServiceState
from apps.provisioning import tasks
from apps.provisioning.engine import claims, runs, watcher
from apps.provisioning.models import Run, RunStep
from apps.tenancy.context import platform_context
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


def at_step(name, **choices):
    """An order whose run is at a step; the service and its run."""
    order = world.an_accepted_order(**choices)
    for _round in range(8):
        service = world.the_service(order)
        run = Run.objects.filter(service=service.pk).first()
        if run and run.steps.get(name=name).position <= run.position:
            return service, run
        world.step()
    raise AssertionError(f"never at {name}")


def test_a_node_locked_for_ever_fails_the_order_and_is_not_blamed(site, acme):
    """Case S20: 409 until the limit."""
    world.fake().fail("deploy", *[Transient("locked by host conductor")] * 50)
    service, run = at_step("deploy")
    waits = []
    for _round in range(4):
        world.step()
        run.refresh_from_db()
        waits.append((run.next_try_at - clock.now()).total_seconds())
    assert waits == sorted(waits)
    assert world.the_service(service.order).condition == "retrying"
    Run.objects.filter(pk=run.pk).update(try_deadline=clock.now() - timedelta(seconds=1))

    failed = world.until_gone(service)

    assert failed.state == ServiceState.FAILED
    assert Node.objects.get(pk=service.node_id).status == "available"
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert not Fact.objects.filter(state=ServiceState.ACTIVE).exists()
    ledger.must_be_sound()


def test_what_was_retried_is_shown_as_working_again(site, acme):
    world.fake().fail("deploy", Transient("locked"))
    service, _run = at_step("deploy")
    assert world.the_service(service.order).condition == "retrying"

    world.step(settle=False)

    assert world.the_service(service.order).condition == "working"


def test_a_message_that_comes_before_its_run_is_committed_does_nothing(platform):
    """Case S22: the worker is faster."""
    assert runs.advance(uuid7()) is False


def test_a_run_that_was_rolled_back_sends_no_message(
    platform, monkeypatch, django_capture_on_commit_callbacks
):
    """Case S22: the transaction that wanted it did not happen."""
    sent = []
    monkeypatch.setattr(tasks.advance_run, "apply_async", lambda *args, **_words: sent.append(args))
    with django_capture_on_commit_callbacks(execute=True):
        with transaction.atomic():
            tasks.wake_after_commit(uuid7())
            transaction.set_rollback(True)
        assert sent == []
        with transaction.atomic():
            tasks.wake_after_commit(uuid7())
        assert sent == []
    assert len(sent) == 1


@pytest.mark.parametrize("error", [OperationalError("gone"), ConnectionError("gone")])
def test_a_broker_that_is_away_does_not_spoil_what_was_committed(
    platform, monkeypatch, django_capture_on_commit_callbacks, error
):
    def refuse(*_args, **_words):
        raise error

    monkeypatch.setattr(tasks.advance_run, "apply_async", refuse)
    with django_capture_on_commit_callbacks(execute=True):
        tasks.wake_after_commit(uuid7())


def test_what_happens_while_a_step_looks_is_not_slept_over(site, acme, monkeypatch):
    """A report that comes between the look and the row would else wait half a minute."""
    service, run = at_step("prove_ready")
    world.step()
    real = runs._store_wait
    calls = []

    def late(run, step, outcome):
        if not calls:
            calls.append(step.name)
            world.call_home(service)
        return real(run, step, outcome)

    monkeypatch.setattr(runs, "_store_wait", late)
    with platform_context():
        Run.objects.filter(pk=run.pk).update(next_try_at=clock.now(), lease_until=None)
        runs.advance(run.pk)

    assert calls == ["prove_ready"]
    assert Service.objects.get(pk=service.pk).state == ServiceState.ACTIVE


def test_a_service_ended_while_its_node_is_replaced_gets_no_other_node(site, acme):
    """The end's event has not been delivered yet when the undoing is done."""
    service, run = at_step("prove_ready")
    RunStep.objects.filter(run=run, name="prove_ready").update(
        started_at=clock.now() - timedelta(hours=1), deadline=clock.now() - timedelta(seconds=1)
    )
    _advance(run)
    run.refresh_from_db()
    assert (run.status, run.outcome) == ("undoing", "replace")
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())

    for _round in range(6):
        _advance(run)
        world.fake().settle()

    run.refresh_from_db()
    assert run.status == "undone"
    assert Service.objects.get(pk=service.pk).state == ServiceState.TERMINATED
    assert Allocation.objects.filter(service=service.pk).count() == 1
    assert Node.objects.filter(status="available").count() == 1
    ledger.must_be_sound()


def _advance(run):
    with platform_context():
        Run.objects.filter(pk=run.pk).update(next_try_at=clock.now(), lease_until=None)
        runs.advance(run.pk)


def test_a_removal_that_takes_too_long_frees_the_customer_and_takes_no_other_node(site, acme):
    service = world.until_ready(world.an_accepted_order())
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())
    world.step(settle=False)
    with platform_context():
        run = Run.objects.get(service=service.pk, blueprint="bare_metal_removal")
        RunStep.objects.filter(run=run, name="remove").update(
            deadline=clock.now() - timedelta(seconds=1)
        )

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "quarantined"
    assert Allocation.objects.filter(service=service.pk).count() == 1
    assert Node.objects.filter(status="available").count() == 1


def test_a_node_that_vanishes_during_its_removal_frees_the_customer(site, acme):
    service = world.until_ready(world.an_accepted_order())
    del world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id]
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "quarantined"


def test_a_node_the_site_no_longer_lists_is_not_sold(site, acme):
    gone = Node.objects.order_by("pk").first()
    del world.fake().nodes[gone.infra_id]
    with platform_context():
        Site.objects.update(watch_due_at=clock.now())
        watcher.look(site.pk)

    world.an_accepted_order()
    with pytest.raises(OutOfCapacity):
        world.an_accepted_order(name="second")
    assert Node.objects.get(pk=gone.pk).seen_provision_state == "missing"


def test_a_site_that_comes_back_wakes_what_waits_for_it(site, acme):
    service, run = at_step("prove_ready")
    world.fake().fail("list_nodes", SiteUnreachable("timed out"))
    with platform_context():
        for _look in range(2):
            Site.objects.update(watch_due_at=clock.now(), watch_lease_until=None)
            Run.objects.filter(pk=run.pk).update(next_try_at=clock.now() + timedelta(hours=1))
            woken = watcher.look(site.pk)
    assert woken == [run.pk]
    assert run.pk in claims.due_runs()
    assert Service.objects.get(pk=service.pk).state == ServiceState.PROVISIONING


def test_cancelling_before_anything_was_installed_needs_no_cleaning(site, acme):
    world.fake().fail("deploy", *[Transient("locked")] * 50)
    service, _run = at_step("deploy")

    orders.cancel_order(order_id=service.order_id, actor=world.User.objects.first())
    gone = world.until_gone(service)

    node = Node.objects.get(pk=gone.node_id)
    assert node.status == "available"
    assert "nothing to clean" in node.clean_proof["steps"][0]


def test_a_node_fault_of_the_claim_moves_on_to_another_node(site, acme):
    first = Node.objects.order_by("pk").first()
    world.fake().nodes[first.infra_id].seen = ObservedNode(
        infra_id=first.infra_id, name=first.name, provision_state="available",
        instance_id=uuid7(), resource_class=first.resource_class,
    )  # fmt: skip

    ready = world.until_ready(world.an_accepted_order())

    assert ready.node_id != first.pk
    assert Node.objects.get(pk=first.pk).status == "quarantined"
    ledger.must_be_sound()
