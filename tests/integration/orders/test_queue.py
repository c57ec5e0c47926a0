"""Waiting for capacity: fair between tenants, known as far as it is, and not for ever."""

from datetime import timedelta

import pytest

from apps.accounts.models import Project, User
from apps.core import clock
from apps.core.uuids import uuid7
from apps.inventory import services as inventory
from apps.inventory.models import Allocation, Node
from apps.notices.models import Notice
from apps.orders.deadlines import serve_due
from apps.orders.errors import WrongPatience
from apps.orders.models import Order, QueueEntry
from apps.orders.selectors import queue_place, queue_places, queue_standing
from apps.orders.tasks import serve_queues
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def person(site, acme):
    builders.a_project("training")
    return builders.a_person()


@pytest.fixture
def other(site, globex):
    """Somebody of another tenant."""
    with platform_context():
        builders.a_price(3, sku="bm.h200.8x", book=builders.a_price_book(currency="USD"))
    with tenant_context(globex):
        builders.a_project()
        return builders.a_person()


def queued(quantity=1, **choices):
    return world.an_accepted_order(
        if_unavailable="queue", name=f"q{Order.objects.count()}", quantity=quantity, **choices
    )


def free(count=1):
    """As many nodes go back into the pool."""
    for hold in Allocation.objects.filter(released_at=None, reservation=None)[:count]:
        inventory.release(service=hold.service)
        Node.objects.filter(pk=hold.node_id).update(status="available")


def serve():
    with platform_context():
        serve_queues.run()


def statuses(*placed):
    return [Order.objects.get(pk=one.pk).status for one in placed]


def test_fifty_orders_of_one_tenant_do_not_starve_another(person, other, globex):
    world.an_accepted_order(quantity=2)
    mine = [queued() for _number in range(4)]
    with tenant_context(globex):
        theirs = queued()
        assert queue_place(theirs.pk) == 2
    assert [queue_place(one.pk) for one in mine] == [1, 3, 4, 5]
    with platform_context():
        free()
    serve()
    assert statuses(*mine) == ["accepted", "queued", "queued", "queued"]
    with tenant_context(globex):
        late = queued()
        assert queue_place(theirs.pk) == 1
        assert queue_place(late.pk) == 3, "in turns"
    with platform_context():
        free()
    serve()
    with tenant_context(globex):
        assert statuses(theirs, late) == ["accepted", "queued"]
    assert queue_place(mine[1].pk) == 1, "whoever was served last comes last"


def test_a_large_order_is_not_overtaken_by_small_ones(person, other, globex):
    world.an_accepted_order(quantity=2)
    large = queued(2)
    with tenant_context(globex):
        small = queued()
    with platform_context():
        free()
    serve()
    assert statuses(large) == ["queued"]
    with tenant_context(globex):
        assert statuses(small) == ["queued"]
    with platform_context():
        free()
    serve()
    assert statuses(large) == ["accepted"]


def test_a_service_that_lost_its_server_goes_first(person, acme):
    order = world.an_accepted_order(quantity=2)
    waits = queued()
    entry = QueueEntry.objects.get()
    QueueEntry.objects.create(
        tenant=acme.pk, order=order.pk, site=entry.site, offering=entry.offering,
        resource_class=entry.resource_class, gpus=8, service=uuid7(),
    )  # fmt: skip
    with platform_context():
        lost = QueueEntry.objects.get(service__isnull=False)
        assert queue_places() == {lost.pk: 1, entry.pk: 2}
        free()
    serve()
    assert statuses(waits) == ["queued"], "it is kept for the service"
    QueueEntry.objects.filter(pk=lost.pk).update(left_at=clock.now())
    serve()
    assert statuses(waits) == ["accepted"]


def test_an_order_waits_no_longer_than_was_chosen(person):
    world.an_accepted_order(quantity=2)
    waits = queued(patience=5 * HOUR)
    assert ledger.used() == {"gpus": 24, "services": 3}
    builders.move_clock(clock.now() + 5 * HOUR)
    with platform_context():
        free()
    serve()
    assert statuses(waits) == ["queued"], "its end is about to be served"
    with platform_context():
        serve_due()
    assert statuses(waits) == ["expired"]
    world.deliver()
    assert Order.objects.get(pk=waits.pk).status_reason in (
        Notice.objects.get(kind="order.expired").body
    )
    assert not QueueEntry.objects.filter(left_at=None).exists()
    assert ledger.used()["gpus"] == 8


@pytest.mark.parametrize("patience", [timedelta(minutes=5), timedelta(days=365)])
def test_a_wait_out_of_range_is_refused(person, patience):
    with pytest.raises(WrongPatience, match="from 1 to 2160 hours"):
        queued(patience=patience)
    assert not Order.objects.exists()


def test_the_expected_instant_is_the_known_end_of_those_before(person):
    until = clock.now_seconds() + 3 * DAY
    world.an_accepted_order(ends_at=until)
    world.an_accepted_order(name="for-ever")
    first, second = queued(), queued()
    standing = queue_standing(first)
    assert standing is not None
    assert (standing.place, standing.expected_at) == (1, until + HOUR)
    behind = queue_standing(second)
    assert behind is not None
    assert (behind.place, behind.expected_at) == (2, None), "nobody knows when the next one ends"


def test_without_known_ends_the_usual_wait_is_told_once_enough_have_waited(person, acme):
    world.an_accepted_order(quantity=2)
    waits = queued()
    entry = QueueEntry.objects.get()
    standing = queue_standing(waits)
    assert standing is not None
    assert standing.expected_at is None
    for number in range(5):
        QueueEntry.objects.create(
            tenant=acme.pk, order=uuid7(), site=entry.site, offering=entry.offering, gpus=8,
            resource_class=entry.resource_class, entered_at=entry.entered_at - (9 + number) * DAY,
            left_at=entry.entered_at - 9 * DAY - number * DAY + 4 * HOUR, is_served=True,
        )  # fmt: skip
    standing = queue_standing(waits)
    assert standing is not None
    assert standing.expected_at == entry.entered_at + 4 * HOUR


def test_a_tenant_learns_its_place_and_nothing_of_others(person, other, globex):
    world.an_accepted_order(quantity=2)
    mine = queued()
    with tenant_context(globex):
        assert queue_place(mine.pk) is None
        assert queue_standing(mine) is None
        assert queue_places() == {}
        assert not QueueEntry.objects.exists()
        assert not User.objects.filter(pk=person.pk).exists()
        assert Project.objects.count() == 1
