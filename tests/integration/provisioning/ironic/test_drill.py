"""The rehearsed disaster: Ironic and the worker die in the middle of an order; both come back."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.accounts.models import User
from apps.inventory.models import AddressLease, Allocation, Node
from apps.orders import services as orders
from apps.orders.models import Fact, Service
from apps.provisioning.models import Run, RunEvent
from apps.tenancy.context import platform_context
from lab import control
from tests.integration.orders import ledger
from tests.integration.provisioning.ironic import product as lab

pytestmark = [pytest.mark.ironic, pytest.mark.slow]


@pytest.fixture
def disaster(product: lab.Product) -> Iterator[None]:
    """The lab's Ironic may be crashed; afterwards it answers again, whatever happened."""
    with lab.ironic_for_itself():
        yield
        control.request(_folder(), control.START_IRONIC, seconds=90)


def _folder() -> Path:
    return Path(os.environ["LAB_CONTROL"])


def strike(product: lab.Product) -> None:
    """A power cut of the site and of the machine that works for it."""
    control.request(_folder(), control.CRASH_IRONIC)
    worker = product.children.pop("worker")
    os.killpg(worker.pid, signal.SIGKILL)
    worker.wait()


def recover(product: lab.Product) -> None:
    """Both are back; nobody waits until the dead worker's lease runs out."""
    control.request(_folder(), control.START_IRONIC, seconds=90)
    with platform_context():
        Run.objects.update(lease_until=None)
    product.start_worker()


def an_order_in_the_middle(product: lab.Product) -> tuple[Service, Run]:
    """An order whose server is being installed."""
    order = lab.an_order()
    product.start_worker()
    service = Service.objects.get(order=order)
    run = lab.until("a run", lambda: Run.objects.filter(service=service.pk).first())
    infra_id = lab.until("its node", lambda: _infra_id(run))
    lab.until("deploying", lambda: lab.ironic().get_node(infra_id).provision_state == "deploying")
    return service, run


def _infra_id(run: Run) -> object:
    with platform_context():
        return Node.objects.filter(runs=run.pk).values_list("infra_id", flat=True).first()


def told_in(run: Run) -> list[str]:
    """What the page of the run tells, in order."""
    with platform_context():
        return list(
            RunEvent.objects.filter(run=run.pk).order_by("id").values_list("kind", flat=True)
        )


def nothing_is_held() -> None:
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not AddressLease.objects.filter(released_at=None).exists()
    ledger.must_be_sound()


@pytest.mark.usefixtures("disaster")
def test_the_order_finishes_when_ironic_and_the_worker_are_back(product):
    service, run = an_order_in_the_middle(product)

    strike(product)
    assert not Fact.objects.filter(service=service.pk, state="active").exists()
    recover(product)
    ready = lab.until_state(service.pk, "active", "failed")

    assert ready.state == "active"
    facts = list(Fact.objects.filter(service=service.pk).order_by("start_at", "recorded_at"))
    assert [fact.state for fact in facts] == ["provisioning", "active"]
    assert facts[1].start_at == ready.ready_at
    kinds = told_in(run)
    assert kinds[0] == "created"
    assert kinds.count("succeeded") == 1
    with platform_context():
        node = Node.objects.get(pk=ready.node_id)
        assert node.status == "allocated"
        assert not node.tickets.exists(), "the node is not to blame for its conductor"
    orders.terminate_service(service_id=service.pk, actor=User.objects.get())
    lab.until_state(service.pk, "terminated")
    lab.until_quiet()
    nothing_is_held()


@pytest.mark.usefixtures("disaster")
def test_an_order_cancelled_while_all_is_down_is_undone_and_costs_nothing(product):
    service, run = an_order_in_the_middle(product)

    strike(product)
    orders.cancel_order(order_id=service.order_id, actor=User.objects.get(), reason="no longer")
    recover(product)
    lab.until_state(service.pk, "terminated", "failed")
    lab.until_quiet()

    assert not Fact.objects.filter(service=service.pk, state="active").exists()
    nothing_is_held()
    kinds = told_in(run)
    assert "undo" in kinds
    assert kinds[-1] == "ended"
    with platform_context():
        assert Node.objects.get(pk=service.node_id).status == "available"
