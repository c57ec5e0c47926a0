"""Clean proofs, quarantine, work on nodes, observations."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.machine import WrongStatus
from apps.core.models import OutboxEvent
from apps.inventory import selectors, services
from apps.inventory.errors import NodeHeld, NotProvenClean, OutOfCapacity
from apps.inventory.models import Allocation, Node, Site
from apps.inventory.states import NodeStatus
from apps.tenancy.context import platform_context
from tests.integration.inventory.builders import (
    CLASS,
    TRAIT,
    a_node,
    a_proof,
    a_site,
    an_offering,
    seen,
)

SECOND = timedelta(seconds=1)


def held(site: Site, tenant: Any) -> Allocation:
    (taken,) = services.allocate(
        site=site,
        resource_class=CLASS,
        traits=[TRAIT],
        gpus_each=8,
        tenant=tenant.pk,
        order=uuid4(),
        services=[uuid4()],
    )
    return taken


@pytest.fixture
def cleaning(acme: Any) -> Allocation:
    """A node whose tenant has left."""
    with platform_context():
        an_offering()
        site = a_site()
        a_node(site)
    taken = held(site, acme)
    services.release(service=taken.service)
    taken.refresh_from_db()
    return taken


def left_at(taken: Allocation) -> datetime:
    assert taken.released_at is not None
    return taken.released_at


def test_a_node_proven_clean_is_on_offer_again(cleaning: Allocation) -> None:
    proof = a_proof(left_at(cleaning) + SECOND, left_at(cleaning) + 5 * SECOND)
    node = services.recycle(node=cleaning.node, proof=proof)
    assert node.status == NodeStatus.AVAILABLE
    assert node.clean_proof == proof
    assert node.cleaned_at == left_at(cleaning) + 5 * SECOND
    assert [one.free for one in selectors.availability()] == [1]
    assert OutboxEvent.objects.filter(name="node.available", subject=node.pk).exists()


def test_a_cleaning_older_than_the_last_lease_proves_nothing(cleaning: Allocation) -> None:
    with pytest.raises(NotProvenClean, match="before its last customer left"):
        services.recycle(node=cleaning.node, proof=a_proof(left_at(cleaning) - 60 * SECOND))
    assert Node.objects.get().status == NodeStatus.CLEANING
    assert [one.free for one in selectors.availability()] == [0]


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"result": "failed"}, "did not succeed"),
        ({"result": None}, "did not succeed"),
        ({"steps": []}, "no step"),
        ({"started_at": None}, "no start"),
        ({"ended_at": "soon"}, "no start"),
        ({"ended_at": "2020-01-01T00:00:00+00:00"}, "no start"),
    ],
)
def test_a_proof_that_lacks_something_is_refused(
    cleaning: Allocation, parts: dict[str, Any], problem: str
) -> None:
    with pytest.raises(NotProvenClean, match=problem):
        services.recycle(node=cleaning.node, proof=a_proof(left_at(cleaning), **parts))
    assert Node.objects.get().status == NodeStatus.CLEANING


def test_an_allocated_node_is_not_recycled(acme: Any) -> None:
    with platform_context():
        an_offering()
        site = a_site()
        a_node(site)
    taken = held(site, acme)
    with pytest.raises(NotProvenClean, match="still holds"):
        services.recycle(node=taken.node, proof=a_proof(clock.now()))


def test_after_a_failed_cleaning_nothing_is_on_offer_and_operators_see_why(
    acme: Any, cleaning: Allocation
) -> None:
    site, name = cleaning.node.site, cleaning.node.name
    for state, error in (("clean failed", "disk 3 does not erase"), ("manageable", "disk 3")):
        with platform_context():
            one = seen(
                name, infra_id=cleaning.node.infra_id, provision_state=state, last_error=error
            )
            services.note_observation(site=site, observed=[one])
            (troubled,) = selectors.nodes_needing_attention()
            assert troubled.seen_last_error == error
        assert [one.free for one in selectors.availability()] == [0]
        with pytest.raises(OutOfCapacity):
            held(site, acme)


def test_a_quarantined_node_has_one_open_ticket(platform: None) -> None:
    node = a_node(a_site())
    for _again in range(2):
        services.quarantine(node=node, reason="7 of 8 GPUs", ticket_title="GPU missing")
    node.refresh_from_db()
    assert (node.status, node.status_reason) == (NodeStatus.QUARANTINED, "7 of 8 GPUs")
    assert node.tickets.get().title == "GPU missing"
    assert node.events.get().reason == "7 of 8 GPUs"


def test_a_quarantined_node_comes_back_by_hand_only_if_it_is_clean(cleaning: Allocation) -> None:
    node = services.quarantine(node=cleaning.node, reason="odd noise")
    with platform_context():
        with pytest.raises(NotProvenClean, match="not cleaned since"):
            services.restore_node(node=node, actor=None, reason="fan changed")
        proof = a_proof(left_at(cleaning) + SECOND, left_at(cleaning) + 2 * SECOND)
        node = services.restore_node(node=node, actor=None, reason="fan changed", proof=proof)
        assert node.status == NodeStatus.AVAILABLE


def test_a_held_node_is_neither_serviced_nor_retired_nor_restored(acme: Any) -> None:
    with platform_context():
        an_offering()
        site = a_site()
        a_node(site)
    taken = held(site, acme)
    services.quarantine(node=taken.node, reason="odd noise")
    with platform_context():
        for verb in (services.service_node, services.retire_node, services.restore_node):
            with pytest.raises(NodeHeld):
                verb(node=taken.node, actor=None, reason="try")


def test_work_on_a_node_takes_it_off_offer_until_restored(platform: None) -> None:
    an_offering()
    node = a_node(a_site())
    services.service_node(node=node, actor=None, reason="new fan")
    assert [one.free for one in selectors.availability()] == [0]
    services.restore_node(node=node, actor=None, reason="done")
    assert [one.free for one in selectors.availability()] == [1]
    services.retire_node(node=node, actor=None, reason="sold")
    with pytest.raises(WrongStatus):
        services.restore_node(node=node, actor=None, reason="back")


def test_an_observation_tells_which_nodes_changed(platform: None) -> None:
    site = a_site()
    first, second = a_node(site), a_node(site)
    again = [seen(n.name, infra_id=n.infra_id) for n in (first, second)]
    services.note_observation(site=site, observed=again)
    changed = services.note_observation(
        site=site,
        observed=[again[0], seen(second.name, infra_id=second.infra_id, provision_state="active")],
    )
    assert changed == [second]
    second.refresh_from_db()
    assert second.seen_provision_state == "active"
    assert second.seen_at is not None


def test_a_node_the_whole_list_lacks_is_missing_and_not_on_offer(platform: None) -> None:
    an_offering()
    site = a_site()
    a_node(site)
    services.note_observation(site=site, observed=[seen("stranger")])
    assert [one.free for one in selectors.availability()] == [1]
    services.note_observation(site=site, observed=[], is_complete=True)
    assert [one.free for one in selectors.availability()] == [0]
    assert selectors.nodes_needing_attention().count() == 1


def test_observing_many_nodes_takes_a_constant_number_of_statements(
    platform: None, django_assert_max_num_queries: Any
) -> None:
    site = a_site()
    nodes = [a_node(site) for _ in range(40)]
    observed = [
        seen(n.name, infra_id=n.infra_id, provision_state="cleaning", changed_at=datetime.now(UTC))
        for n in nodes
    ]
    with django_assert_max_num_queries(8):
        assert len(services.note_observation(site=site, observed=observed)) == 40


def test_what_an_operator_does_to_a_node_is_audited(platform: None) -> None:
    from apps.accounts.models import User

    person = User.objects.create(email="op@example.com", name="Operator", role="operator")
    node = a_node(a_site())
    services.quarantine(node=node, reason="odd noise", actor=person)
    entry = AuditEntry.objects.get(action="node.quarantine")
    assert (entry.actor_id, entry.reason) == (person.pk, "odd noise")
    assert (entry.before, entry.after) == ({"status": "available"}, {"status": "quarantined"})


def test_lists_ask_a_constant_number_of_questions(
    platform: None, django_assert_num_queries: Any
) -> None:
    site = a_site()
    for _ in range(5):
        a_node(site, gpu_model=None)
    with django_assert_num_queries(2):
        for node in selectors.node_list(status="available", search="n"):
            assert (node.site.code, list(node.allocations.all())) == ("seoul", [])
    with django_assert_num_queries(1):
        (row,) = selectors.capacity_by_site_and_class()
    assert (row.total, row.free, row.allocated) == (5, 5, 0)
