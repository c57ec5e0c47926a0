"""Faults on the way to real Ironic, at each step of a server's life: nothing leaks, nothing is done
twice, nothing is charged that was not ready.

The test itself advances the runs, so that nothing has to wait.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from apps.accounts.models import User
from apps.core import clock
from apps.inventory.models import Site
from apps.orders import services as orders
from apps.orders.models import Fact, Service
from apps.orders.states import ServiceState
from apps.provisioning.adapters.openstack import calls
from apps.provisioning.engine import claims, runs, watcher
from apps.provisioning.models import Run, RunEvent, RunStep
from apps.provisioning.states import MOVING
from apps.tenancy import relay
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import invariants
from tests.faultproxy import FaultProxy, Rule
from tests.integration.provisioning.ironic import product as lab

pytestmark = [pytest.mark.ironic, pytest.mark.slow]

ALLOCATE = {"method": "POST", "path": r"/v1/allocations$"}
VALIDATE = {"method": "GET", "path": r"/validate$"}
DESCRIBE = {"method": "PATCH", "path": r"/v1/nodes/"}
DEPLOY = {"method": "PUT", "path": r"/states/provision$"}
POWER = {"method": "PUT", "path": r"/states/power$"}
CALLS = (ALLOCATE, VALIDATE, DESCRIBE, DEPLOY, POWER)
HTML = "<html><body>Please log in.</body></html>"


@dataclass
class Shop:
    """The product before a proxy before the lab."""

    product: lab.Product
    proxy: FaultProxy
    tenant: Tenant
    began: str

    def turn(self) -> None:
        """Let everything that waits go on once."""
        with platform_context():
            while relay.deliver_waiting():
                pass
            Site.objects.update(watch_due_at=clock.now(), watch_lease_until=None)
            watcher.look(Site.objects.get().pk)
            Run.objects.filter(status__in=MOVING).update(next_try_at=clock.now(), lease_until=None)
            for run_id in claims.due_runs():
                runs.advance(run_id)

    def until(self, service: Service, *states: str) -> Service:
        """Turn until the service is in one of the states."""

        def there() -> Service | None:
            self.turn()
            return Service.objects.filter(pk=service.pk, state__in=states).first()

        return lab.until(f"{states}: {_told(service)}", there)

    def an_order(self) -> Service:
        """One server, ordered."""
        return Service.objects.get(order=lab.an_order())

    def end(self, service: Service) -> None:
        """The customer ends it; everything is put away, and all is as it must be."""
        orders.terminate_service(service_id=service.pk, actor=User.objects.get())
        self.until(service, ServiceState.TERMINATED)
        self.must_be_right()

    def must_be_right(self) -> None:
        """The invariants, with the lab asked past the proxy."""
        with platform_context():
            while relay.deliver_waiting():
                pass
        assert invariants.broken([self.tenant]) == []
        mine = lab.infra_ids()  # others are at work on the lab's other nodes
        nodes = [node for node in lab.ironic().list_nodes() if node.infra_id in mine]
        deploys = {node: lab.events_of(node, self.began).count("deployment_start") for node in mine}
        found = invariants.broken_at_rest([self.tenant], nodes, deploys=deploys)
        assert found == []


def _told(service: Service) -> Any:
    with platform_context():
        return [
            f"{event.kind} {event.step} {event.detail}"
            for event in RunEvent.objects.filter(run__service=service.pk).order_by("id")
        ]


@pytest.fixture
def shop(own_database: Any, tmp_path: Path, worker_id: str) -> Iterator[Shop]:
    """Web is running for what calls home; the test is the worker. Runs inside the tenant."""
    with lab.product_on(own_database.name, tmp_path, worker_id) as product:
        began = datetime.now(UTC).replace(tzinfo=None, microsecond=0).isoformat()
        with FaultProxy(os.environ["LAB_IRONIC_URL"]) as proxy:
            tenant = lab.open_shop(product, endpoint=proxy.url)
            product.start_web()
            with tenant_context(tenant):
                yield Shop(product, proxy, tenant, began)


FAULTS = {
    "5xx before its effect": [Rule(do="answer", status=500, **one) for one in CALLS],
    "cut after its effect": [Rule(do="drop", after=True, **one) for one in CALLS],
    "hang": [Rule(do="hang", **one) for one in CALLS],
    "time-out after its effect": [Rule(do="hang", after=True, **one) for one in CALLS],
    "a page instead of JSON": [
        Rule(do="answer", status=200, body=HTML, after=True, **one) for one in CALLS
    ],
    "half of the JSON": [Rule(do="half", **one) for one in (ALLOCATE, VALIDATE, DESCRIBE)],
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_server_is_made_and_removed_once_though_each_step_meets_a_fault(shop, monkeypatch, fault):
    monkeypatch.setattr(calls, "CALL_SECONDS", 1)
    shop.proxy.add(*FAULTS[fault])

    ready = shop.until(shop.an_order(), "active", "failed")
    assert ready.state == ServiceState.ACTIVE
    assert shop.proxy.rules.unused() == []
    shop.proxy.add(Rule(**{**vars(FAULTS[fault][0]), **DEPLOY}))  # now it removes
    shop.end(ready)

    assert shop.proxy.rules.unused() == []


def test_a_site_that_is_down_at_each_step_uses_up_no_try(shop):
    service = shop.an_order()
    for state in (ServiceState.ACTIVE, ServiceState.TERMINATED):
        turns = 0

        def there(state=state):
            nonlocal turns
            turns += 1
            if turns % 2:
                shop.proxy.refuse()
            else:
                shop.proxy.listen()
            shop.turn()
            return Service.objects.get(pk=service.pk).state == state

        lab.until(f"{state}: {_told(service)}", there)
        shop.proxy.listen()
        if state == ServiceState.ACTIVE:
            orders.terminate_service(service_id=service.pk, actor=User.objects.get())

    shop.must_be_right()
    with platform_context():
        assert not RunEvent.objects.filter(kind="held").exists()
        assert set(Run.objects.values_list("replacements", flat=True)) == {0}


def test_a_locked_node_is_asked_again_with_growing_waits_and_deployed_once(shop):
    """Case S20: 409 three times, then accepted."""
    locked = '{"error_message": "Node is locked by host lab, please retry"}'
    shop.proxy.add(
        Rule(
            do="answer", status=409, body=locked, times=3, content_type="application/json", **DEPLOY
        )
    )
    service = shop.an_order()
    waits = []

    def has_deployed():
        shop.turn()
        with platform_context():
            run = Run.objects.filter(service=service.pk).first()
            if run is None:
                return False  # its event is not delivered yet
            step = RunStep.objects.get(run=run, name="deploy")
        if step.status == "failed":
            waits.append((run.next_try_at - clock.now()).total_seconds())
        return step.status in ("waiting", "done")

    lab.until("deploying", has_deployed)
    asked = shop.proxy.seen(**DEPLOY)
    assert [one.spoiled for one in asked] == ["answer", "answer", "answer", ""]
    assert len(waits) == 3
    assert waits == sorted(waits)
    assert waits[2] > 2 * waits[0]

    ready = shop.until(service, "active", "failed")

    assert ready.state == ServiceState.ACTIVE
    shop.end(ready)


def test_a_refusal_is_held_and_undone_when_nobody_decides(shop):
    """HTTP 400: asking again changes nothing."""
    shop.proxy.add(Rule(do="answer", status=400, body="no such image", **DEPLOY))
    service = shop.an_order()

    def is_held():
        shop.turn()
        with platform_context():
            return Run.objects.filter(service=service.pk, status="held").exists()

    lab.until("a hold", is_held)
    with platform_context():
        Run.objects.update(next_try_at=clock.now())
        runs.end_expired_holds()

    failed = shop.until(service, "failed")

    assert not Fact.objects.filter(service=failed, state=ServiceState.ACTIVE).exists()
    shop.must_be_right()
