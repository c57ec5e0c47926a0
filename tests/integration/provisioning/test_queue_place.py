"""Who chose to wait and loses a node without another one being free takes its old place."""

import pytest

from apps.catalog.models import PriceBook
from apps.inventory.models import Allocation, Node
from apps.orders import selectors as orders_selectors
from apps.orders import services as orders
from apps.orders.models import QueueEntry
from apps.orders.states import OrderStatus, ServiceState
from apps.provisioning.models import Run
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=1)


def waiting_without_node():
    """Its only node failed."""
    order = world.an_accepted_order(if_unavailable="queue")
    node = Node.objects.get(pk=world.the_service(order).node_id)
    world.fake().nodes[node.infra_id].deploy_error = "PXE timed out"
    for _round in range(8):
        world.step()
    service = world.the_service(order)
    assert service.condition == "in_queue"
    return order, service


def test_it_waits_at_its_old_place_and_holds_its_quota_and_no_node(site, acme):
    order, service = waiting_without_node()

    entry = QueueEntry.objects.get(service=service.pk)
    assert entry.entered_at == order.decided_at
    assert orders_selectors.queue_place(order.pk) == 1
    assert orders_selectors.gpus_in_use(tenant=acme.pk) == service.gpus
    assert not Allocation.objects.filter(service=service.pk, released_at=None).exists()


def test_no_order_overtakes_it_not_even_one_that_waits_already(site, acme, globex):
    order, _service = waiting_without_node()
    with platform_context():
        book = PriceBook.objects.create(code="list-usd", name="List", currency="USD")
        world.builders.a_price(book=book, sku="bm.h200.8x", amount=3)
    with tenant_context(globex):
        later = world.an_accepted_order(if_unavailable="queue", name="later")
        assert later.status == OrderStatus.QUEUED
        assert orders_selectors.queue_place(later.pk) == 2
    with platform_context():
        QueueEntry.objects.filter(order=later.pk).update(entered_at="2020-01-01T00:00:00Z")
        world.another_node(site)

    ready = world.until_ready(order)

    assert ready.state == ServiceState.ACTIVE
    with tenant_context(globex):
        later.refresh_from_db()
        assert later.status == OrderStatus.QUEUED
        assert orders_selectors.queue_place(later.pk) == 1


def test_of_two_that_lost_their_nodes_the_one_accepted_first_goes_first(platform, acme):
    with platform_context():
        site = world.a_fake_site(nodes=2)
    first = world.an_accepted_order(if_unavailable="queue", name="first")
    second = world.an_accepted_order(if_unavailable="queue", name="second")
    for node in world.fake().nodes.values():
        node.deploy_error = "PXE timed out"
    for _round in range(8):
        world.step()
    with platform_context():
        world.another_node(site)

    world.until_ready(first)

    assert world.the_service(second).condition == "in_queue"
    assert orders_selectors.queue_place(second.pk) == 1


def test_who_cancels_while_waiting_leaves_the_queue_and_returns_the_quota(site, acme):
    order, service = waiting_without_node()
    orders.cancel_order(order_id=order.pk, actor=world.User.objects.first(), reason="no")

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert not QueueEntry.objects.filter(left_at=None).exists()
    assert orders_selectors.gpus_in_use(tenant=acme.pk) == 0
    assert Run.objects.get(order=order.pk).status == "undone"
