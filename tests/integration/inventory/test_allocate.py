"""Taking nodes, giving them back, replacing them."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.core import clock
from apps.inventory import selectors, services
from apps.inventory.errors import NothingAllocated, OutOfCapacity
from apps.inventory.models import Allocation, Node, NodeEvent, Site
from apps.inventory.states import NodeStatus
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.inventory.builders import CLASS, TRAIT, a_node, a_site, an_offering


@pytest.fixture
def seoul(acme: Any) -> Site:
    """A site with two nodes; the test runs in acme."""
    with platform_context():
        an_offering()
        site = a_site()
        a_node(site)
        a_node(site)
    return site


def take(site: Site, tenant: Any, count: int = 1, **other: Any) -> list[Allocation]:
    given = {
        "resource_class": CLASS,
        "traits": [TRAIT],
        "gpus_each": 8,
        "tenant": tenant.pk,
        "order": uuid4(),
        "services": [uuid4() for _ in range(count)],
    }
    return services.allocate(site=site, **(given | other))


def free(site: Site) -> int:
    return sum(one.free for one in selectors.availability(site=site))


def test_each_service_gets_a_node_of_its_own(acme: Any, seoul: Site) -> None:
    wanted = [uuid4(), uuid4()]
    taken = take(seoul, acme, services=wanted)
    assert [one.service for one in taken] == wanted
    assert len({one.node_id for one in taken}) == 2
    for one in taken:
        stored = Allocation.objects.select_related("node").get(pk=one.pk)
        assert stored.node.status == NodeStatus.ALLOCATED
        assert (stored.gpus.lower, stored.gpus.upper, stored.gpu_count) == (0, 8, 8)
        assert stored.during.upper_inf
        assert stored.during.lower <= clock.now()
        assert stored.node.events.get().verb == "allocate"
    assert free(seoul) == 0


def test_too_few_nodes_are_refused_with_both_figures_and_nothing_is_taken(
    acme: Any, seoul: Site
) -> None:
    with pytest.raises(OutOfCapacity, match=r"Only 2 free gpu\.h200\.8x .* asked for 3.*queue"):
        take(seoul, acme, 3)
    assert free(seoul) == 2
    assert not NodeEvent.objects.exists()


def test_another_tenants_nodes_are_not_free_and_its_allocations_not_visible(
    acme: Any, globex: Any, seoul: Site
) -> None:
    with tenant_context(globex):
        take(seoul, globex, 2)
    assert free(seoul) == 0
    assert not Allocation.objects.exists()
    with pytest.raises(OutOfCapacity):
        take(seoul, acme)


@pytest.mark.parametrize(
    "columns",
    [
        {"status": "quarantined"},
        {"status": "maintenance"},
        {"status": "cleaning"},
        {"status": "enrolled"},
        {"status": "retired"},
        {"seen_maintenance": True},
        {"seen_provision_state": "manageable"},
        {"seen_provision_state": "clean failed"},
        {"seen_instance": UUID(int=7)},
        {"traits": ["CUSTOM_IB_NDR"]},
        {"gpu_count": 4},
        {"resource_class": "gpu.h100.8x"},
    ],
)
def test_what_cannot_be_taken_is_not_on_offer(
    acme: Any, seoul: Site, columns: dict[str, Any]
) -> None:
    first = Node.objects.order_by("pk").first()
    assert first is not None
    Node.objects.filter(pk=first.pk).update(**columns)
    assert free(seoul) == 1
    (taken,) = take(seoul, acme)
    assert taken.node_id != first.pk
    with pytest.raises(OutOfCapacity, match="Only 0"):
        take(seoul, acme)


@pytest.mark.parametrize("columns", [{"status": "paused"}, {"cleans_automatically": False}])
def test_a_site_that_is_paused_or_does_not_clean_sells_nothing(
    acme: Any, seoul: Site, columns: dict[str, Any]
) -> None:
    Site.objects.update(**columns)
    assert free(seoul) == 0
    with pytest.raises(OutOfCapacity):
        take(seoul, acme)


def test_the_database_refuses_a_second_holder_of_a_node(acme: Any, seoul: Site) -> None:
    (first,) = take(seoul, acme)
    Node.objects.filter(pk=first.node_id).update(status=NodeStatus.AVAILABLE)
    (second,) = take(seoul, acme)
    assert second.node_id != first.node_id
    with pytest.raises(OutOfCapacity, match="Only 0"):
        take(seoul, acme)


def test_a_released_node_is_cleaning_and_not_on_offer(acme: Any, seoul: Site) -> None:
    (taken,) = take(seoul, acme)
    before = clock.now()
    done = services.release(service=taken.service)
    assert done is not None
    stored = Allocation.objects.select_related("node").get(pk=taken.pk)
    assert stored.released_at is not None
    assert stored.released_at >= before
    assert stored.during.upper == stored.released_at
    assert stored.node.status == NodeStatus.CLEANING
    assert free(seoul) == 1


def test_releasing_twice_does_it_once(acme: Any, seoul: Site) -> None:
    (taken,) = take(seoul, acme)
    services.release(service=taken.service)
    assert services.release(service=taken.service) is None
    assert NodeEvent.objects.filter(node_id=taken.node_id, verb="release").count() == 1


def test_releasing_leaves_a_quarantined_node_in_quarantine(acme: Any, seoul: Site) -> None:
    (taken,) = take(seoul, acme)
    services.quarantine(node=taken.node, reason="7 of 8 GPUs")
    services.release(service=taken.service)
    assert Node.objects.get(pk=taken.node_id).status == NodeStatus.QUARANTINED


def test_a_replacement_is_another_node_for_the_same_service(acme: Any, seoul: Site) -> None:
    (old,) = take(seoul, acme)
    services.quarantine(node=old.node, reason="7 of 8 GPUs")
    new = services.replace_allocation(service=old.service, resource_class=CLASS, traits=[TRAIT])
    assert new.node_id != old.node_id
    assert (new.service, new.order, new.tenant) == (old.service, old.order, acme.pk)
    assert selectors.live_allocation(old.service) == new
    assert Node.objects.get(pk=old.node_id).status == NodeStatus.QUARANTINED


def test_without_a_replacement_the_service_keeps_what_it_holds(acme: Any, seoul: Site) -> None:
    (old, _other) = take(seoul, acme, 2)
    with pytest.raises(OutOfCapacity):
        services.replace_allocation(service=old.service, resource_class=CLASS, traits=[TRAIT])
    assert selectors.live_allocation(old.service) == old
    assert Node.objects.get(pk=old.node_id).status == NodeStatus.ALLOCATED


def test_a_service_without_a_node_cannot_be_replaced(acme: Any, seoul: Site) -> None:
    with pytest.raises(NothingAllocated):
        services.replace_allocation(service=uuid4(), resource_class=CLASS, traits=[])


def test_availability_asks_a_constant_number_of_questions(
    acme: Any, seoul: Site, django_assert_max_num_queries: Any
) -> None:
    with platform_context():
        for number in range(4):
            an_offering(f"bm.more.{number}")
            site = a_site(f"more{number}")
            a_node(site)
    with django_assert_max_num_queries(4):  # three, and the switch of sides
        assert len(selectors.availability()) == 25
