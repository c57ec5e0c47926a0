"""Taking nodes in: each row by itself, one identity for one node."""

from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.inventory import selectors, services
from apps.inventory.models import GPU, NIC, Node, NodeEvent, Site
from apps.inventory.observations import ObservedNIC, ObservedNode
from apps.inventory.states import NodeStatus
from tests.integration.inventory.builders import TRAIT, a_gpu_model, a_site, an_offering, seen


@pytest.fixture
def site(platform: None) -> Site:
    """A site that sells, and a catalogue with an H200."""
    an_offering()
    return a_site()


def take_in(site: Site, *observed: ObservedNode, **options: Any) -> Any:
    return services.import_nodes(site=site, observed=observed, actor=None, **options)


def results(report: Any) -> list[str]:
    return [row.result for row in report.rows]


def test_a_node_is_taken_in_with_its_parts_and_is_on_offer(site: Site) -> None:
    one = seen("n1", mac="52:54:00:AB:00:01", rack="R1", unit=12, serial="SN1")
    assert results(take_in(site, one)) == ["created"]
    node = Node.objects.get()
    assert (node.name, node.status, node.gpu_count) == ("n1", NodeStatus.AVAILABLE, 8)
    assert (node.rack, node.unit, node.serial, node.memory_mib) == ("R1", 12, "SN1", 2_097_152)
    assert (node.traits, node.gpu_model) == ([TRAIT], a_gpu_model())
    assert NIC.objects.get().mac == "52:54:00:ab:00:01"
    assert list(GPU.objects.order_by("position").values_list("position", flat=True)) == [*range(8)]
    assert [one.free for one in selectors.availability()] == [1]
    assert AuditEntry.objects.filter(action="nodes.imported").count() == 1


def test_importing_again_changes_nothing(site: Site) -> None:
    one = seen("n1", mac="52:54:00:ab:00:01", serial="SN1", bmc_address="10.0.0.5")
    take_in(site, one)
    before = NodeEvent.objects.count()
    assert results(take_in(site, one)) == ["unchanged"]
    assert (Node.objects.count(), NIC.objects.count(), GPU.objects.count()) == (1, 1, 8)
    assert NodeEvent.objects.count() == before


def test_one_mac_or_one_management_address_is_one_node(site: Site) -> None:
    """S23: case and separators do not matter, other rows are told one by one."""
    report = take_in(
        site,
        seen("n1", mac="02:AB:00:00:00:01"),
        seen("n2", mac="02-ab-00-00-00-01"),
        seen("n3", mac="02:ab:00:00:00:03", bmc_address="https://10.0.0.5/"),
        seen("n4", mac="02ab.0000.0004", bmc_address="10.0.0.5"),
        seen("n5", mac="02:ab:00:00:00:05"),
    )
    assert results(report) == ["created", "refused", "created", "refused", "created"]
    second, fourth = report.refused
    assert (second.errors[0].field, fourth.errors[0].field) == ("mac", "bmc_address")
    assert "belongs to node n1" in second.errors[0].message
    assert "belongs to node n3" in fourth.errors[0].message
    assert [node.name for node in Node.objects.order_by("name")] == ["n1", "n3", "n5"]
    later = take_in(site, seen("n2", mac="02AB00000001"))
    assert "belongs to node n1" in later.refused[0].errors[0].message


def test_a_mac_moves_to_another_node_once_the_first_gave_it_up(site: Site) -> None:
    mac, other = "02:ab:00:00:00:01", "02:ab:00:00:00:02"
    take_in(site, seen("n1", mac=mac))
    report = take_in(site, seen("n1", mac=other), seen("n2", mac=mac))
    assert results(report) == ["changed", "created"]
    assert report.rows[0].changes == {"nics": (mac, other)}


def test_names_are_unique_at_a_site_only(site: Site) -> None:
    take_in(site, seen("n1"))
    elsewhere = a_site("busan")
    assert results(take_in(elsewhere, seen("n1", infra_id=uuid4()))) == ["created"]
    report = take_in(site, seen("n1", infra_id=uuid4()))
    assert report.refused[0].errors[0].field == "name"


@pytest.mark.parametrize(
    ("columns", "field", "says"),
    [
        ({"mac": "52:54:00:ab:00"}, "nics.mac", "12 hexadecimal digits"),
        ({"mac": "52:54:00:ab:00:0g"}, "nics.mac", "12 hexadecimal digits"),
        ({"nics": (ObservedNIC("02ab00000001"), ObservedNIC("02AB00000001"))}, "mac", "n1"),
        ({"name": " "}, "name", "Set it on the node"),
        ({"resource_class": ""}, "resource_class", "Set it on the node"),
        ({"properties": {"cpus": -1}}, "cpus", "from 0 to"),
        ({"properties": {"disk_gb": "big"}}, "disk_gb", "from 0 to"),
        ({"properties": {"gpu": [{"model_code": "h300"}]}}, "properties.gpu", "known: h200"),
        ({"properties": {"gpu": [{"model_code": "h200", "count": 0}]}}, "properties.gpu", "1 to"),
    ],
)
def test_a_bad_row_is_refused_by_field_and_the_next_one_is_taken(
    site: Site, columns: dict[str, Any], field: str, says: str
) -> None:
    report = take_in(site, seen(**({"name": "n1"} | columns)), seen("n2"))
    assert results(report) == ["refused", "created"]
    assert report.refused[0].errors[0].field == field
    assert says in report.refused[0].errors[0].message
    assert Node.objects.get().name == "n2"


def test_a_dry_run_shows_what_would_come_and_keeps_nothing(site: Site) -> None:
    report = take_in(site, seen("n1"), dry_run=True)
    assert (results(report), report.is_dry_run, report.was_applied) == (["created"], True, False)
    assert not Node.objects.exists()
    assert not AuditEntry.objects.exists()


def test_a_change_at_the_site_is_shown_and_kept(site: Site) -> None:
    take_in(site, seen("n1"))
    changed = seen("n1", rack="R7", properties={"gpu": [{"reported_name": "NVIDIA H200"}]})
    (row,) = take_in(site, changed).rows
    assert row.result == "changed"
    assert row.changes["rack"] == ("", "R7")
    assert row.changes["gpus"] == ("8", "1")
    node = Node.objects.get()
    assert (node.rack, node.gpu_count, node.gpus.count()) == ("R7", 1, 1)


@pytest.mark.parametrize(
    "columns",
    [{"provision_state": "active"}, {"maintenance": True}, {"instance_id": uuid4()}],
)
def test_a_node_in_use_elsewhere_is_enrolled_until_it_is_available(
    site: Site, columns: dict[str, Any]
) -> None:
    take_in(site, seen("n1", **columns))
    assert Node.objects.get().status == NodeStatus.ENROLLED
    (row,) = take_in(site, seen("n1")).rows
    assert row.changes == {"status": ("enrolled", "available")}
    assert Node.objects.get().status == NodeStatus.AVAILABLE
