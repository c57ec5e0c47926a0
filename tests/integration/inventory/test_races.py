"""Many callers at one moment.

Each node and each address has one holder, and nobody is refused wrongly.
"""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import transaction

from apps.inventory import selectors, services
from apps.inventory.errors import AddressesExhausted, OutOfCapacity
from apps.inventory.models import AddressLease, Allocation, Node, Site
from apps.inventory.states import NodeStatus
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from tests.integration.inventory.builders import CLASS, TRAIT, a_node, a_pool, a_site, an_offering
from tests.racing import apart, together


def _stock(nodes: int) -> tuple[Site, list[Tenant]]:
    an_offering()
    site = a_site()
    for _ in range(nodes):
        a_node(site)
    a_pool(site, last_address="10.20.0.40")
    return site, list(Tenant.objects.order_by("slug"))


def _taker(site: Site, tenant: Tenant, count: int = 1) -> Callable[[], list[UUID]]:
    def take() -> list[UUID]:
        with tenant_context(tenant), transaction.atomic():
            taken = services.allocate(
                site=site,
                resource_class=CLASS,
                traits=[TRAIT],
                gpus_each=8,
                tenant=tenant.pk,
                order=uuid4(),
                services=[uuid4() for _ in range(count)],
            )
        return [one.node_id for one in taken]

    return take


def _free() -> int:
    return sum(one.free for one in selectors.availability())


def test_sixty_four_callers_for_eight_nodes_make_eight_allocations(committed: None) -> None:
    site, tenants = apart(lambda: _stock(8))
    results = together([_taker(site, tenants[number % 2]) for number in range(64)])
    taken = [node for result in results if isinstance(result, list) for node in result]
    refusals = [result for result in results if not isinstance(result, list)]
    assert len(taken) == len(set(taken)) == 8, refusals
    assert [type(one) for one in refusals] == [OutOfCapacity] * 56
    assert {(one.facts["free"], one.facts["wanted"]) for one in refusals} == {(0, 1)}
    held = apart(lambda: list(Allocation.objects.values_list("node_id", flat=True)))
    assert sorted(held) == sorted(taken)
    assert apart(_free) == 0


def test_two_callers_for_the_last_node_twenty_times(committed: None) -> None:
    site, tenants = apart(lambda: _stock(1))

    def reset() -> None:
        Allocation.objects.all().delete()
        Node.objects.update(status=NodeStatus.AVAILABLE)

    for _round in range(20):
        results = together([_taker(site, tenant) for tenant in tenants])
        kinds = sorted(type(one).__name__ for one in results)
        assert kinds == ["OutOfCapacity", "list"]
        assert apart(lambda: (_free(), Allocation.objects.count())) == (0, 1)
        apart(reset)


def test_callers_who_block_each_other_are_not_all_refused(committed: None) -> None:
    """Each of two wants all four nodes: whoever waits may have them, so exactly one is refused."""
    site, tenants = apart(lambda: _stock(4))

    def reset() -> None:
        Allocation.objects.all().delete()
        Node.objects.update(status=NodeStatus.AVAILABLE)

    for _round in range(20):
        results = together([_taker(site, tenant, 4) for tenant in (*tenants, *tenants)])
        assert sorted(type(one).__name__ for one in results) == ["OutOfCapacity"] * 3 + ["list"]
        apart(reset)


def test_a_node_set_free_by_a_rollback_is_taken_by_who_waited(committed: None) -> None:
    site, tenants = apart(lambda: _stock(1))

    class ChangedMind(Exception):
        """The order went wrong after the node was taken."""

    def take_and_roll_back() -> None:
        with tenant_context(tenants[0]), transaction.atomic():
            _taker(site, tenants[0])()
            raise ChangedMind

    for _round in range(10):
        results = together([take_and_roll_back, _taker(site, tenants[1])])
        assert isinstance(results[1], list), results
        apart(lambda: (Allocation.objects.all().delete(), Node.objects.update(status="available")))


def test_racing_services_get_different_addresses(committed: None) -> None:
    site, tenants = apart(lambda: _stock(0))

    def lease(tenant: Tenant) -> Callable[[], str]:
        def job() -> str:
            with tenant_context(tenant):
                return services.lease_address(site=site, tenant=tenant.pk, service=uuid4()).address

        return job

    results: list[Any] = together([lease(tenants[number % 2]) for number in range(40)])
    given = [one for one in results if isinstance(one, str)]
    assert len(given) == len(set(given)) == 31
    assert {type(one) for one in results if not isinstance(one, str)} == {AddressesExhausted}
    vlans = apart(lambda: set(AddressLease.objects.values_list("tenant", "vlan")))
    assert len(vlans) == 2
    assert len({vlan for _tenant, vlan in vlans}) == 2


def test_only_one_watcher_has_a_site(committed: None) -> None:
    site, _tenants = apart(lambda: _stock(0))
    results = together([lambda: services.claim_site_watch(site_id=site.pk, seconds=60)] * 8)
    assert sorted(results) == [False] * 7 + [True]


@pytest.mark.parametrize("callers", [4])
def test_releasing_at_one_moment_gives_the_node_back_once(committed: None, callers: int) -> None:
    site, tenants = apart(lambda: _stock(1))
    apart(_taker(site, tenants[0]))
    service = apart(lambda: Allocation.objects.get().service)

    def release() -> bool:
        with tenant_context(tenants[0]):
            return services.release(service=service) is not None

    assert sorted(together([release] * callers)) == [False] * (callers - 1) + [True]
