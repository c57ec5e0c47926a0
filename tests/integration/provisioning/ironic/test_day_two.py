"""Running servers of real Ironic: switched, installed anew, moved to another host, and guests that
are not what was bought.
"""

from contextlib import suppress

import pytest

from apps.accounts.models import User
from apps.catalog.models import Offering
from apps.core import clock
from apps.core.errors import OutsideError
from apps.inventory.models import Node, Site
from apps.orders import services as orders
from apps.orders.models import Fact, Service
from apps.provisioning import services as provisioning
from apps.provisioning.models import Run, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning.ironic import product as lab

pytestmark = [pytest.mark.ironic, pytest.mark.slow]


def a_server(product):
    """A running server."""
    order = lab.an_order()
    product.start_worker()
    return lab.until_state(Service.objects.get(order=order).pk, "active")


def do(service, verb, **choices):
    """Ask for a work and wait until it has ended."""
    run = provisioning.operate(
        service_id=service.pk, verb=verb, actor=User.objects.get(), **choices
    )
    return ended(run)


def ended(run):
    fresh = lab.until("the work's end", lambda: _ended(run), seconds=150)
    assert fresh.status == "succeeded", fresh.reason
    return Service.objects.get(pk=run.service)


def _ended(run):
    with platform_context():
        return Run.objects.filter(pk=run.pk, ended_at__isnull=False).first()


def infra_of(node_id):
    with platform_context():
        return Node.objects.get(pk=node_id).infra_id


def seen(service):
    return lab.ironic().get_node(infra_of(service.node_id))


def states_of(service):
    facts = Fact.objects.filter(service=service).order_by("start_at", "recorded_at")
    return [fact.state for fact in facts]


def look_now():
    with platform_context():
        Site.objects.update(watch_due_at=clock.now())


def test_a_server_is_switched_rescued_and_installed_anew_and_nothing_of_it_stays(product):
    service = a_server(product)
    node, keys, address = service.node_id, service.host_keys, service.address
    assert seen(service).lessee == str(Run.objects.get(service=service.pk).tenant)

    off = do(service, "power_off")
    assert (off.state, seen(off).power_state) == ("stopped", "power off")
    on = do(off, "power_on")
    assert (on.state, seen(on).power_state) == ("active", "power on")
    do(on, "reboot")

    in_rescue = do(on, "rescue", password="a long password")
    assert (in_rescue.condition, seen(on).provision_state) == ("rescue", "rescue")
    assert do(in_rescue, "unrescue").condition == ""

    anew = do(on, "reinstall")
    assert (anew.state, anew.node_id, anew.address) == ("active", node, address)
    assert anew.host_keys != keys
    assert states_of(service) == ["provisioning", "active", "stopped", "active"]

    orders.terminate_service(service_id=service.pk, actor=User.objects.get())
    lab.until_state(service.pk, "terminated")
    left = lab.ironic().carried(infra_of(node))
    assert left.is_empty
    with platform_context():
        step = RunStep.objects.get(run__service=service.pk, name="verify")
        assert all(item["ok"] for item in step.evidence)
        assert Node.objects.get(pk=node).status == "available"


def test_a_host_in_trouble_is_seen_and_replaced_under_the_same_service(product):
    service = a_server(product)
    old = service.node_id
    lab.ironic()._call("PUT", f"/v1/nodes/{infra_of(old)}/maintenance", {"reason": "fan"})
    try:
        look_now()
        lab.until(
            "degraded",
            lambda: Service.objects.filter(pk=service.pk, condition="degraded").exists(),
        )

        run = provisioning.replace_host(
            service_id=service.pk, actor=User.objects.get(), reason="fan"
        )
        after = ended(run)

        assert after.state == "active"
        assert after.node_id != old
        assert after.address == service.address
        assert states_of(service) == ["provisioning", "active", "suspended", "active"]
        assert lab.ironic().get_node(infra_of(old)).instance_id is None
        with platform_context():
            assert Node.objects.get(pk=old).status == "quarantined"
    finally:
        with suppress(OutsideError):
            lab.ironic().end_maintenance(infra_of(old))


@pytest.mark.parametrize("manner", ["gpus=7", "wrong-key", "silent", "ecc"])
def test_a_guest_that_is_not_what_was_bought_is_never_handed_over(product, manner):
    order = lab.an_order()
    service = Service.objects.get(order=order)
    bad = service.node_id
    _let_guest_be(bad, manner)
    try:
        if manner == "silent":
            with platform_context():
                Offering.objects.filter(sku=lab.SKU).update(readiness_seconds=20)
        product.start_worker()

        ready = lab.until(
            "a server", lambda: Service.objects.filter(pk=service.pk, state="active").first(),
            seconds=150,
        )  # fmt: skip

        assert ready.node_id != bad
        assert states_of(ready) == ["provisioning", "active"]
        with platform_context():
            assert Node.objects.get(pk=bad).status == "quarantined"
    finally:
        _let_guest_be(bad, "healthy")


def _let_guest_be(node_id, manner):
    change = [{"op": "add", "path": "/extra/lab_guest", "value": manner}]
    lab.until("the node's lock", lambda: _patched(infra_of(node_id), change))


def _patched(infra_id, change):
    try:
        lab.ironic()._call("PATCH", f"/v1/nodes/{infra_id}", change)
    except OutsideError:
        return False
    return True
