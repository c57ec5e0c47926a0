"""Cordons, tickets and planned work: nobody new on a node, and its customers told in time."""

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import Invalid
from apps.core.models import OutboxEvent
from apps.inventory import services as inventory
from apps.inventory.errors import MaintenanceEnded, OutOfCapacity, TicketClosed
from apps.inventory.models import Node, NodeEvent
from apps.inventory.selectors import availability
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.provisioning import world
from tests.people import an_operator


@pytest.fixture
def site(acme: Any) -> Any:
    """A fake site of two servers; the test runs on the platform's side."""
    with platform_context():
        yield world.a_fake_site()


def cordon_all(reason: str = "fans") -> None:
    """Nobody new anywhere."""
    for node in Node.objects.all():
        inventory.cordon_node(node=node, actor=an_operator(), reason=reason)


def test_a_cordoned_node_is_given_to_nobody_and_sold_again_when_it_is_lifted(
    acme: Any, site: Any
) -> None:
    cordon_all()
    with tenant_context(acme):
        assert [one.free for one in availability(site=site)] == [0]
        with pytest.raises(OutOfCapacity):
            world.an_accepted_order()
    with platform_context():
        node = Node.objects.first()
        inventory.uncordon_node(node=node, actor=an_operator(), reason="repaired")
        assert OutboxEvent.objects.filter(name="node.available", subject=node.pk).exists()
    with tenant_context(acme):
        order = world.an_accepted_order()
        assert world.the_service(order).node_id == node.pk


def test_who_holds_a_cordoned_node_keeps_it(acme: Any, site: Any) -> None:
    with tenant_context(acme):
        service = world.until_ready(world.an_accepted_order())
    with platform_context():
        cordon_all()
        node = Node.objects.get(pk=service.node_id)
        assert inventory.services_on(node) == [service.pk]
    with tenant_context(acme):
        service.refresh_from_db()
        assert service.state == "active"
        world.until_gone(_ended(service))
    with platform_context():
        node.refresh_from_db()
        assert (node.status, node.is_cordoned) == ("available", True)
        assert inventory.services_on(node) == []


def _ended(service: Any) -> Any:
    return orders.terminate_service(service_id=service.pk, actor=service.order.placed_by)


def test_a_whole_rack_is_cordoned_at_once_and_once(site: Any) -> None:
    Node.objects.update(rack="R01")
    operator = an_operator()
    assert len(inventory.cordon_rack(site=site, rack="R01", actor=operator, reason="water")) == 2
    assert inventory.cordon_rack(site=site, rack="R01", actor=operator, reason="water") == []
    assert NodeEvent.objects.filter(verb="cordon").count() == 2
    assert AuditEntry.objects.filter(action="node.cordoned").count() == 2


def test_a_ticket_is_opened_carried_on_and_closed(site: Any) -> None:
    node, operator = Node.objects.first(), an_operator()
    with pytest.raises(Invalid, match="category"):
        inventory.open_ticket(node=node, title="x", category="soul", actor=operator)
    with pytest.raises(Invalid):
        inventory.open_ticket(node=node, title=" ", actor=operator)
    ticket = inventory.open_ticket(node=node, title="fan 3", category="cooling", actor=operator)
    ticket = inventory.update_ticket(ticket=ticket, action="fan ordered", actor=operator)
    assert (ticket.action, ticket.category) == ("fan ordered", "cooling")
    assert ticket.updated_at
    inventory.close_ticket(ticket=ticket, resolution="replaced", actor=operator)
    with pytest.raises(TicketClosed):
        inventory.update_ticket(ticket=ticket, action="again", actor=operator)
    told = AuditEntry.objects.filter(subject_type="ticket").order_by("id")
    assert [one.action for one in told] == ["ticket.opened", "ticket.changed", "ticket.closed"]


def planned(site: Any, **columns: Any) -> Any:
    """Work on every node of the site, tomorrow."""
    tomorrow = clock.now() + timedelta(days=1)
    given = {
        "site": site,
        "nodes": list(Node.objects.filter(site=site)),
        "title": "New firmware",
        "starts_at": tomorrow,
        "ends_at": tomorrow + timedelta(hours=2),
        "actor": an_operator(),
    }
    return inventory.plan_maintenance(**(given | columns))


def test_planned_work_is_told_to_whom_it_touches_each_of_its_own(
    acme: Any, globex: Any, site: Any
) -> None:
    with platform_context():
        builders.a_price(book=builders.a_price_book(currency="USD"), sku="bm.h200.8x", amount=3)
    for tenant, name in ((acme, "ours"), (globex, "theirs")):
        with tenant_context(tenant):
            world.until_ready(world.an_accepted_order(name=name))
    with platform_context():
        Notice.objects.all().delete()
        work = planned(site, detail="secret: rack 4 of somebody")
        assert all(Node.objects.values_list("is_cordoned", flat=True))
        assert not OutboxEvent.objects.filter(name="service.maintenance").exists()
        assert inventory.announce_maintenance(maintenance=work, actor=an_operator()) == 2
        inventory.announce_maintenance(maintenance=work, actor=an_operator())
    world.deliver()

    for tenant, mine, other in ((acme, "ours", "theirs"), (globex, "theirs", "ours")):
        with tenant_context(tenant):
            (notice,) = Notice.objects.filter(kind="service.maintenance")
            assert mine in notice.subject
            assert "New firmware" in notice.body
            assert other not in notice.subject + notice.body
            assert "secret" not in notice.body
            assert notice.recipient == User.objects.first().pk

    with platform_context():
        inventory.end_maintenance(maintenance=work, actor=an_operator(), reason="not needed")
        with pytest.raises(MaintenanceEnded):
            inventory.announce_maintenance(maintenance=work, actor=an_operator())
    world.deliver()
    with tenant_context(acme):
        assert Notice.objects.filter(subject__contains="cancelled").count() == 1


def test_the_retirement_of_a_server_is_told_as_such(acme: Any, site: Any) -> None:
    with tenant_context(acme):
        world.until_ready(world.an_accepted_order())
    with platform_context():
        work = planned(site, is_retirement=True, title="End of life")
        inventory.announce_maintenance(maintenance=work, actor=an_operator(Role.OPERATOR))
    world.deliver()
    with tenant_context(acme):
        assert Notice.objects.filter(subject__contains="retired").count() == 1


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"title": " "}, "title"),
        ({"nodes": []}, "nodes"),
        ({"ends_at": clock}, "ends_at"),
    ],
)
def test_work_that_cannot_be_is_refused_and_cordons_nothing(
    site: Any, wrong: dict[str, Any], field: str
) -> None:
    if "ends_at" in wrong:
        wrong = {"ends_at": clock.now() - timedelta(days=1)}
    with pytest.raises(Invalid) as refusal:
        planned(site, **wrong)
    assert refusal.value.field == field
    assert not any(Node.objects.values_list("is_cordoned", flat=True))
