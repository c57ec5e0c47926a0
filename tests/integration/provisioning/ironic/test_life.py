"""An order becomes a server of real Ironic and a clean node again, whatever dies on the way."""

from datetime import UTC, datetime

import pytest

from apps.accounts.models import User
from apps.inventory.models import AddressLease, Allocation, Node
from apps.orders import services as orders
from apps.orders.models import Fact, Order, Service
from apps.provisioning.models import CallHome, Run, RunEvent, RunStep
from apps.provisioning.tasks import advance_run
from apps.tenancy.context import platform_context
from neocloud.celery import app
from tests.integration.orders import ledger
from tests.integration.provisioning.ironic import product as lab

pytestmark = [pytest.mark.ironic, pytest.mark.slow]


def now():
    """As Ironic writes instants."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()


def end(service):
    orders.terminate_service(service_id=service.pk, actor=User.objects.get())


def went_well(service, began):
    """One deploy, one cleaning, four facts, a node that is sold again, nothing held."""
    gone = Service.objects.get(pk=service.pk)
    facts = list(Fact.objects.filter(service=gone).order_by("start_at", "recorded_at"))
    assert [fact.state for fact in facts] == ["provisioning", "active", "deleting", "terminated"]
    assert gone.ready_at == facts[1].start_at
    assert gone.ended_at == facts[2].start_at
    ledger.must_be_sound()
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not AddressLease.objects.filter(released_at=None).exists()
    assert Order.objects.get(pk=gone.order_id).status == "closed"
    node = Node.objects.get(pk=gone.node_id)
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert "vendor.log_passthrough" in node.clean_proof["steps"]
    deploys = 0
    for infra_id in lab.infra_ids():
        deploys += lab.events_of(infra_id, began).count("deployment_start")
        seen = lab.ironic().get_node(infra_id)
        assert (seen.provision_state, seen.instance_id) == ("available", None)
    assert deploys == 1


def test_an_order_becomes_a_server_and_the_server_a_clean_node_again(product):
    """Duplicated messages (case S03) and a broker that forgets everything change nothing."""
    began = now()
    order = lab.an_order()
    product.start_worker()
    service = Service.objects.get(order=order)
    run = lab.until("a run", lambda: Run.objects.filter(service=service.pk).first())
    with app.connection_for_write(product.environment["BROKER_URL"]) as broker:
        for _repeat in range(5):
            advance_run.apply_async([str(run.pk)], connection=broker)
    lab.until("deploying", lambda: _is_at(run, "deploy"))
    product.broker.flushdb()

    ready = lab.until_state(service.pk, "active", "failed")
    assert ready.state == "active"
    assert ready.address.startswith("10.20.0.")
    with platform_context():
        home = CallHome.objects.get(run=run)
        step = RunStep.objects.get(run=run, name="prove_ready")
    assert home.received_at is not None
    assert home.received_at.replace(microsecond=0) <= ready.ready_at
    assert all(item["ok"] is not False for item in step.evidence)
    end(service)
    product.broker.flushdb()
    lab.until_state(service.pk, "terminated")

    lab.until_quiet()
    went_well(service, began)


def _is_at(run, name):
    with platform_context():
        fresh = Run.objects.get(pk=run.pk)
        return fresh.position >= fresh.steps.get(name=name).position


@pytest.mark.parametrize(
    ("making", "removing"),
    [
        ("deploy:intent", "remove:intent"),
        ("deploy:effect", "remove:effect"),
        ("claim_node:effect", "release_address:outcome"),
        ("hand_over:outcome", "release_address:commit"),
        ("hand_over:commit", "remove:claim"),
    ],
)
def test_a_worker_that_is_killed_leaves_one_server_and_an_exact_bill(product, making, removing):
    began = now()
    worker = product.start_worker(dies_at=making)
    order = lab.an_order()
    service = Service.objects.get(order=order)
    if making == "hand_over:commit":
        assert lab.until("its death", lambda: worker.poll() is not None)
        product.children.pop("worker")
    else:
        product.wait_for_death()
    product.start_worker(dies_at=removing)
    lab.until_state(service.pk, "active")

    end(service)
    worker = product.children["worker"]
    assert lab.until("its death", lambda: worker.poll() is not None)
    product.children.pop("worker")
    with platform_context():
        Run.objects.update(lease_until=None)
    product.start_worker()
    lab.until_state(service.pk, "terminated")

    lab.until_quiet()
    went_well(service, began)


def test_a_worker_killed_while_undoing_does_not_leave_a_server(product):
    began = now()
    product.start_worker(dies_at="deploy:undo-effect")
    order = lab.an_order()
    service = Service.objects.get(order=order)
    run = lab.until("a run", lambda: Run.objects.filter(service=service.pk).first())
    lab.until("deploying", lambda: _is_at(run, "deploy"))
    orders.cancel_order(order_id=order.pk, actor=User.objects.get())
    product.wait_for_death()
    product.start_worker()

    gone = lab.until_state(service.pk, "terminated", "failed")
    lab.until_quiet()

    assert gone.state == "terminated"
    assert not Fact.objects.filter(state="active").exists()
    ledger.must_be_sound()
    with platform_context():
        assert not RunStep.objects.filter(status="leaked").exists()
        assert RunEvent.objects.filter(kind="undone", step="deploy").count() == 1
        assert Node.objects.get(pk=gone.node_id).status == "available"
    starts = [lab.events_of(one, began).count("deployment_start") for one in lab.infra_ids()]
    assert sum(starts) <= 1
