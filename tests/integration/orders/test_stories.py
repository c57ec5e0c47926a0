"""From quote to order, through the queue, to the last service's end: what each act leaves."""

from datetime import datetime, timedelta

import pytest

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.models import OutboxEvent
from apps.inventory.models import Allocation, Node
from apps.orders import services as orders
from apps.orders.errors import (
    NameNotConfirmed,
    NotCancellable,
    OthersWait,
    Protected,
    QuotaExceeded,
    TooManyServices,
)
from apps.orders.models import Fact, Order, QueueEntry, Service, TenantLimit
from apps.orders.selectors import queue_place
from apps.orders.services.states import SERVICE
from apps.orders.states import ServiceState
from apps.orders.tasks import serve_queues
from apps.provisioning.models import Run
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(site, acme):
    builders.a_project("training")
    return builders.a_person()


def serve():
    """Beat's task, on the platform's side."""
    with platform_context():
        serve_queues.run()


def a_free_node():
    """A node is proven clean and goes back into the pool."""
    with platform_context():
        node = Node.objects.filter(status="cleaning").first()
        Node.objects.filter(pk=node.pk).update(status="available")


def acts(subject):
    """The audit lines of a thing."""
    return list(
        AuditEntry.objects.filter(subject_id=str(subject.pk))
        .order_by("id")
        .values_list("action", flat=True)
    )


def test_placing_a_quote_twice_is_one_order(person):
    quote = orders.make_quote(
        actor=person, offering_sku="bm.h200.8x", site_code=world.SITE, quantity=1
    )
    asked = {
        "actor": person, "quote_id": quote.pk, "project_id": world.Project.objects.get().pk,
        "name": "train", "ssh_public_keys": [world.KEY],
    }  # fmt: skip

    first = orders.place_order(**asked)
    after = ledger.rows()
    again = orders.place_order(**(asked | {"name": "other"}))

    assert again.pk == first.pk
    assert again.name == "train"
    assert ledger.rows() == after
    ledger.must_be_sound()


def test_an_order_freezes_what_was_quoted(person):
    order = world.an_accepted_order()
    quote = order.quote

    for field in ("sku", "currency", "unit_price", "price_id", "billing_basis", "price_rule"):
        assert getattr(order, field) == getattr(quote, field)
    assert order.decided_at is not None
    assert acts(order) == ["order.placed", "order.accepted"]
    ledger.must_be_sound()


def test_order_numbers_count_up_for_each_tenant_by_itself(person, globex):
    first = world.an_accepted_order()
    second = world.an_accepted_order(name="second")
    with tenant_context(globex):
        other = builders.an_order()

    assert second.serial == first.serial + 1
    assert other.serial < second.serial
    assert second.number == f"ORD-{second.serial:06d}"


def test_a_service_is_charged_from_the_instant_that_stands_everywhere(person):
    service = world.until_ready(world.an_accepted_order())

    fact = Fact.objects.get(service=service, state=ServiceState.ACTIVE)
    event = OutboxEvent.objects.get(name="service.ready", subject=service.pk)
    assert fact.start_at == service.ready_at == datetime.fromisoformat(event.payload["ready_at"])
    assert service.ready_at.microsecond == 0
    assert fact.cause
    assert fact.run_id == Run.objects.get(service=service.pk).pk
    ledger.must_be_sound()


def test_terminating_again_and_again_changes_nothing(person):
    service = world.until_ready(world.an_accepted_order())
    assert ledger.used() == {"gpus": 8, "services": 1}

    orders.terminate_service(service_id=service.pk, actor=person, reason="done")
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert Order.objects.get().status == "closed"  # over for the customer, cleaned or not
    after = ledger.rows()
    for _repeat in range(2):
        orders.terminate_service(service_id=service.pk, actor=person)
    assert ledger.rows() == after
    gone = world.until_gone(service)
    orders.terminate_service(service_id=service.pk, actor=person)

    assert gone.state == ServiceState.TERMINATED
    assert Order.objects.get().status == "closed"
    assert acts(service).count("service.terminated") == 1
    ended = OutboxEvent.objects.get(name="service.terminating", subject=service.pk)
    assert datetime.fromisoformat(ended.payload["ended_at"]) == gone.ended_at
    ledger.must_be_sound()


def test_terminating_before_it_was_ready_costs_nothing_and_frees_the_server(person):
    service = world.the_service(world.an_accepted_order())
    world.step()

    orders.terminate_service(service_id=service.pk, actor=person)
    assert ledger.used() == {"gpus": 0, "services": 0}
    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert gone.ready_at is None
    assert not Fact.objects.filter(state=ServiceState.ACTIVE).exists()
    assert Node.objects.get(pk=service.node_id).status == "available"
    ledger.must_be_sound()


def test_terminating_before_any_work_began_leaves_no_work_behind(person):
    """The two events have different subjects: the second may be delivered first."""
    service = world.the_service(world.an_accepted_order())
    orders.terminate_service(service_id=service.pk, actor=person)
    OutboxEvent.objects.filter(name="order.accepted").update(
        next_try_at=clock.now() + timedelta(hours=1)
    )
    gone = world.until_gone(service)
    OutboxEvent.objects.filter(name="order.accepted").update(next_try_at=clock.now())
    world.step()

    assert gone.state == ServiceState.TERMINATED
    assert not Run.objects.filter(service=service.pk, blueprint="bare_metal").exists()
    assert world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id].deploys == 0
    assert Node.objects.get(pk=service.node_id).status == "available"
    ledger.must_be_sound()


def test_a_protected_service_ends_only_after_the_protection_is_taken_off(person):
    order = world.an_accepted_order()
    service = world.the_service(order)
    orders.protect_service(service_id=service.pk, is_protected=True, actor=person)

    with pytest.raises(Protected):
        orders.terminate_service(service_id=service.pk, actor=person)
    with pytest.raises(Protected):
        orders.cancel_order(order_id=order.pk, actor=person)
    assert world.the_service(order).state == ServiceState.PROVISIONING

    orders.protect_service(service_id=service.pk, is_protected=False, actor=person)
    orders.terminate_service(service_id=service.pk, actor=person)
    assert acts(service)[:2] == ["service.protection_changed"] * 2
    ledger.must_be_sound()


def test_the_name_typed_to_confirm_must_be_the_name(person):
    service = world.the_service(world.an_accepted_order(name="train"))

    with pytest.raises(NameNotConfirmed, match="train"):
        orders.terminate_service(service_id=service.pk, actor=person, confirm_name="Train")
    ended = orders.terminate_service(service_id=service.pk, actor=person, confirm_name="train")

    assert ended.state == ServiceState.DELETING


def test_cancelling_is_possible_until_a_server_is_in_use(person):
    order = world.an_accepted_order(quantity=2)
    orders.cancel_order(order_id=order.pk, actor=person, reason="changed my mind")
    after = ledger.rows()
    orders.cancel_order(order_id=order.pk, actor=person)
    assert ledger.rows() == after
    assert ledger.used() == {"gpus": 0, "services": 0}
    for service in Service.objects.filter(order=order):
        world.until_gone(service)
    assert acts(order)[-1] == "order.cancelled"

    ready = world.until_ready(world.an_accepted_order(name="second"))
    with pytest.raises(NotCancellable):
        orders.cancel_order(order_id=ready.order_id, actor=person)
    ledger.must_be_sound()


def test_an_order_closes_with_its_last_service(person):
    order = world.an_accepted_order(quantity=2)
    first, second = Service.objects.filter(order=order).order_by("ordinal")
    assert [first.name, second.name] == ["train-1", "train-2"]

    orders.terminate_service(service_id=first.pk, actor=person)
    world.until_gone(first)
    order.refresh_from_db()
    assert order.status == "accepted"
    orders.terminate_service(service_id=second.pk, actor=person)
    world.until_gone(second)

    order.refresh_from_db()
    assert order.status == "closed"
    ledger.must_be_sound()


# ---------------------------------------------------------------------- the queue
def queued(name, **choices):
    return world.an_accepted_order(name=name, if_unavailable="queue", **choices)


def test_who_waits_has_a_place_and_holds_quota_but_no_server(person):
    world.an_accepted_order(quantity=2)

    first, second = queued("first"), queued("second")

    assert [queue_place(first.pk), queue_place(second.pk)] == [1, 2]
    assert not Allocation.objects.filter(order=first.pk).exists()
    assert ledger.used() == {"gpus": 32, "services": 4}
    ledger.must_be_sound()


@pytest.mark.parametrize(
    ("columns", "error"),
    [({"max_gpus": 24}, QuotaExceeded), ({"max_services": 3}, TooManyServices)],
)
def test_what_waits_counts_against_the_limits(person, acme, columns, error):
    world.an_accepted_order(quantity=2)
    queued("first")
    TenantLimit.objects.filter(tenant=acme.pk).update(**columns)

    with pytest.raises(error):
        queued("second")


def test_the_queue_is_served_in_order_across_tenants(person, globex):
    both = world.an_accepted_order(quantity=2)
    with platform_context():
        builders.a_price(3, sku="bm.h200.8x", book=builders.a_price_book(currency="USD"))
    mine = queued("mine")
    with tenant_context(globex):
        builders.a_project("theirs")
        theirs = queued("theirs")
        assert queue_place(theirs.pk) == 2
        assert queue_place(mine.pk) is None
    last = queued("last")
    orders.cancel_order(order_id=both.pk, actor=person)
    for service in Service.objects.filter(order=both):
        world.until_gone(service)

    serve()

    mine.refresh_from_db()
    last.refresh_from_db()
    assert [mine.status, last.status] == ["accepted", "queued"]
    assert queue_place(last.pk) == 1
    ledger.must_be_sound()
    with tenant_context(globex):
        theirs.refresh_from_db()
        assert theirs.status == "accepted"
        ledger.must_be_sound()


@pytest.mark.parametrize("choice", ["fail", "queue"])
def test_nobody_overtakes_who_waits_for_more(person, choice):
    one = world.an_accepted_order(name="one")
    waiting = queued("two", quantity=2)
    assert waiting.status == "queued"

    if choice == "fail":
        with pytest.raises(OthersWait, match="1 in the queue"):
            world.an_accepted_order(name="late")
    else:
        assert queued("late").status == "queued"

    orders.cancel_order(order_id=one.pk, actor=person)
    world.until_gone(world.the_service(one))
    serve()
    waiting.refresh_from_db()
    assert waiting.status == "accepted"
    ledger.must_be_sound()


def test_cancelling_leaves_the_queue_and_lets_the_next_one_up(person):
    world.an_accepted_order(quantity=2)
    first, second = queued("first"), queued("second")

    orders.cancel_order(order_id=first.pk, actor=person)

    assert queue_place(first.pk) is None
    assert queue_place(second.pk) == 1
    assert ledger.used() == {"gpus": 24, "services": 3}
    serve()
    assert Order.objects.get(pk=first.pk).status == "cancelled"
    ledger.must_be_sound()


def test_one_head_that_cannot_be_served_holds_back_its_own_queue_only(person):
    world.an_accepted_order(quantity=2)
    waits = queued("waits")
    QueueEntry.objects.create(
        tenant=QueueEntry.objects.get().tenant, order=builders.uuid7(), resource_class="other",
        site=QueueEntry.objects.get().site, offering=builders.uuid7(), gpus=8,
    )  # fmt: skip
    Node.objects.filter(status="allocated").update(status="cleaning")
    Allocation.objects.update(released_at=clock.now())
    a_free_node()

    serve()

    waits.refresh_from_db()
    assert waits.status == "accepted"


# ---------------------------------------------------------------------- the one writer
def test_only_one_place_writes_facts_and_states():
    from pathlib import Path

    from django.conf import settings

    root = Path(settings.BASE_DIR) / "apps"
    writers = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "Fact.objects.create" in path.read_text()
        or "Fact.objects.bulk_create" in path.read_text()
    }
    movers = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        if "SERVICE.move(" in path.read_text()
    }
    assert writers == {"invoicing/cases.py", "orders/services/states.py"}  # cases: a rehearsal
    assert movers == {"orders/services/states.py"}
    assert SERVICE.verbs
