"""The qualification list: what was proven and cleaned here, by combination, counted once."""

from typing import Any

import pytest

from apps.core import csvsafe
from apps.inventory import selectors
from apps.inventory.models import Node, Qualification
from apps.orders import services as orders
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.provisioning import world

PARTS = {"bmc": "24.01", "nic": "ConnectX-7"}  # the rest its servers report


@pytest.fixture
def site(acme: Any) -> Any:
    """A fake site of two servers of one make."""
    with platform_context():
        made = world.a_fake_site()
        Node.objects.update(hardware=PARTS | {"serial": "kept out of it"})
        yield made


def test_a_handed_over_and_cleaned_server_qualifies_its_combination(acme: Any, site: Any) -> None:
    with tenant_context(acme):
        for _twice in range(2):
            service = world.until_ready(world.an_accepted_order())
            orders.terminate_service(service_id=service.pk, actor=service.order.placed_by)
            world.until_gone(service)
            world.deliver()
    (found,) = Qualification.objects.all()
    assert found.hardware.items() >= PARTS.items()
    assert "serial" not in found.hardware
    assert (found.deploys, found.cleanings, found.is_simulated) == (2, 2, True)
    assert found.last_run
    assert found.last_node
    assert found.first_proven_at < found.last_proven_at
    text = b"".join(csvsafe.encoded(selectors.qualification_lines())).decode()
    assert "ConnectX-7" in text
    assert selectors.qualifications(text="24.01").count() == 1
    assert not selectors.qualifications(text="24.02").exists()


def test_another_firmware_is_another_combination_and_unknown_hardware_is_none(
    acme: Any, site: Any
) -> None:
    first, second = Node.objects.order_by("pk")
    Node.objects.filter(pk=first.pk).update(hardware=PARTS | {"bmc": "25.01"})
    Node.objects.filter(pk=second.pk).update(hardware={})
    with tenant_context(acme):
        world.until_ready(world.an_accepted_order())
        world.until_ready(world.an_accepted_order())
        world.deliver()
    kinds = {one.hardware.get("bmc") for one in Qualification.objects.all()}
    assert "25.01" in kinds
    assert "24.01" not in kinds
