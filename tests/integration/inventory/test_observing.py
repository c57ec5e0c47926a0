"""Keeping what a site says of its nodes: all columns, few statements, no needless writing."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from apps.core.uuids import uuid7
from apps.inventory.models import Node
from apps.inventory.observations import ObservedNode
from apps.inventory.services import note_observation
from apps.inventory.services.observing import COLUMNS, seen_columns
from tests.builders import move_clock
from tests.integration.inventory.builders import a_node, a_site

pytestmark = pytest.mark.django_db


def seen_of(node: Node) -> ObservedNode:
    return ObservedNode(
        infra_id=node.infra_id,
        name=node.name,
        resource_class=node.resource_class,
        provision_state="active",
        target_provision_state="deleted",
        power_state="power on",
        maintenance=True,
        fault='said "no"\n',
        is_reserved=True,
        instance_id=uuid7(),
        last_error="제어기 오류",
        changed_at=datetime(2026, 3, 1, 12, 30, 15, 123456, tzinfo=UTC),
    )


def test_every_column_is_kept_as_it_was_seen(platform):
    site = a_site()
    nodes = [a_node(site), a_node(site)]
    seen = [seen_of(node) for node in nodes]

    changed = note_observation(site=site, observed=seen)

    assert {node.pk for node in changed} == {node.pk for node in nodes}
    for node, one in zip(nodes, seen, strict=True):
        node.refresh_from_db()
        assert {name: getattr(node, name) for name in COLUMNS} == seen_columns(one)
    assert note_observation(site=site, observed=seen) == []


def test_a_thousand_nodes_take_as_many_statements_as_one(platform, django_assert_max_num_queries):
    site = a_site()
    nodes = [a_node(site) for _number in range(30)]
    with django_assert_max_num_queries(8):
        note_observation(site=site, observed=[seen_of(node) for node in nodes], is_complete=True)


def test_nodes_that_stay_as_they_are_are_written_once_a_minute(platform):
    site = a_site()
    node = a_node(site)
    seen = seen_of(node)
    move_clock("2026-03-01T12:00:00")
    note_observation(site=site, observed=[seen])
    first = Node.objects.get(pk=node.pk).seen_at

    move_clock("2026-03-01T12:00:30")
    note_observation(site=site, observed=[seen])
    assert Node.objects.get(pk=node.pk).seen_at == first

    move_clock("2026-03-01T12:01:30")
    note_observation(site=site, observed=[seen])
    assert Node.objects.get(pk=node.pk).seen_at > first


def test_a_change_between_two_of_them_is_kept_at_once(platform):
    site = a_site()
    node = a_node(site)
    seen = seen_of(node)
    note_observation(site=site, observed=[seen])

    note_observation(site=site, observed=[replace(seen, power_state="power off")])

    assert Node.objects.get(pk=node.pk).seen_power_state == "power off"
