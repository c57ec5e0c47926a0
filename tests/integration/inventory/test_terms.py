"""Holds with an end, terms that lie ahead, borrowed nodes: all under the one constraint."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.catalog.models import Offering
from apps.core import clock
from apps.inventory import selectors, services
from apps.inventory.errors import HeldLater, OutOfCapacity
from apps.inventory.models import Allocation, Node, Site
from apps.inventory.states import NodeStatus
from apps.tenancy.context import platform_context, tenant_context
from tests.builders import move_clock
from tests.integration.inventory.builders import CLASS, TRAIT, a_node, a_proof, a_site, an_offering

DAY, HOUR = timedelta(days=1), timedelta(hours=1)


@pytest.fixture
def seoul(acme: Any) -> Site:
    """A site with two nodes and an hour between customers; the test runs in acme."""
    with platform_context():
        an_offering()
        site = a_site()
        a_node(site)
        a_node(site)
    return site


def take(site: Site, tenant: Any, count: int = 1, **other: Any) -> list[Allocation]:
    given = {
        "resource_class": CLASS, "traits": [TRAIT], "gpus_each": 8, "tenant": tenant.pk,
        "order": uuid4(), "services": [uuid4() for _ in range(count)],
    }  # fmt: skip
    return services.allocate(site=site, **(given | other))


def book(site: Site, tenant: Any, starts_at: datetime, ends_at: datetime, count: int = 1) -> UUID:
    reservation = uuid4()
    services.hold_term(
        site=site, resource_class=CLASS, traits=[TRAIT], gpus_each=8, tenant=tenant.pk,
        reservation=reservation, quantity=count, starts_at=starts_at, ends_at=ends_at,
    )  # fmt: skip
    return reservation


def free(site: Site, **asked: Any) -> tuple[int, int]:
    (row,) = selectors.availability(site=site, **asked)
    return row.free, row.borrowable


def clean(node_id: UUID) -> None:
    with platform_context():
        now = clock.now()
        services.recycle(node=Node.objects.get(pk=node_id), proof=a_proof(now, now))


def test_a_service_with_an_agreed_end_leaves_room_for_a_reservation_after_it(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    (one, other) = take(seoul, acme, 2, until=now + DAY)
    assert {one.during.upper, other.during.upper} == {now + DAY + HOUR}
    with pytest.raises(OutOfCapacity):
        book(seoul, acme, now + DAY, now + 5 * DAY)  # the turn-around is missing
    book(seoul, acme, now + DAY + HOUR, now + 5 * DAY, 2)


def test_an_order_without_an_end_gets_no_node_somebody_reserved(
    acme: Any, globex: Any, seoul: Site
) -> None:
    now = clock.now()
    with tenant_context(globex):
        book(seoul, globex, now + 2 * DAY, now + 5 * DAY)
    assert free(seoul) == (1, 1)
    assert free(seoul, until=now + DAY) == (2, 0)
    assert free(seoul, until=now + 2 * DAY) == (1, 1)
    take(seoul, acme)
    with pytest.raises(OutOfCapacity, match="Only 0"):
        take(seoul, acme)
    take(seoul, acme, until=now + DAY)
    assert free(seoul) == (0, 0)


def test_a_short_order_takes_the_reserved_node_and_leaves_the_other_for_ever(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    book(seoul, acme, now + 2 * DAY, now + 5 * DAY)
    reserved = Allocation.objects.get().node_id
    (short,) = take(seoul, acme, until=now + DAY)
    assert short.node_id == reserved


def test_who_accepts_a_recall_borrows_until_a_turn_around_before_the_reservation(
    acme: Any, globex: Any, seoul: Site
) -> None:
    now = clock.now()
    with tenant_context(globex):
        reservation = book(seoul, globex, now + 2 * DAY, now + 5 * DAY)
    (first,) = take(seoul, acme, accepts_recall=True)
    assert services.lent_until(first, seoul) is None, "nobody is recalled while others are free"
    (lent,) = take(seoul, acme, accepts_recall=True)
    assert services.lent_until(lent, seoul) == now + 2 * DAY - HOUR
    with tenant_context(globex):
        services.release_term(reservation=reservation)
    with platform_context():
        assert [one.pk for one in selectors.loans_that_may_last()] == [lent.pk]
    longer = services.move_hold_end(service=lent.service, until=None)
    assert longer is not None
    assert longer.during.upper is None
    assert services.lent_until(longer, seoul) is None


def test_a_node_reserved_within_the_shortest_loan_is_not_lent(acme: Any, seoul: Site) -> None:
    now = clock.now()
    book(seoul, acme, now + 1.9 * HOUR, now + 5 * DAY, 2)
    assert free(seoul) == (0, 0)
    with pytest.raises(OutOfCapacity):
        take(seoul, acme, accepts_recall=True)


def test_a_hold_is_lengthened_up_to_the_next_reservation_and_no_further(
    acme: Any, globex: Any, seoul: Site
) -> None:
    now = clock.now()
    (held, _other) = take(seoul, acme, 2, until=now + DAY)
    with tenant_context(globex):
        book(seoul, globex, now + 3 * DAY, now + 5 * DAY, 2)
    assert services.held_until(service=held.service) == now + 3 * DAY - HOUR
    with pytest.raises(HeldLater):
        services.move_hold_end(service=held.service, until=now + 3 * DAY)
    services.move_hold_end(service=held.service, until=now + 2 * DAY)
    assert Allocation.objects.get(pk=held.pk).during.upper == now + 2 * DAY + HOUR


def test_reservations_of_one_node_follow_each_other_with_a_turn_around(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    book(seoul, acme, now + 5 * DAY, now + 6 * DAY, 2)
    for starts, ends in ((6 * DAY, 7 * DAY), (4 * DAY, 5 * DAY), (5.5 * DAY, 5.6 * DAY)):
        with pytest.raises(OutOfCapacity):
            book(seoul, acme, now + starts, now + ends)
    book(seoul, acme, now + 6 * DAY + HOUR, now + 7 * DAY, 2)
    book(seoul, acme, now + 4 * DAY, now + 5 * DAY - HOUR, 2)


def test_the_database_refuses_a_service_and_a_reservation_at_one_time(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    take(seoul, acme, 2)
    with pytest.raises(OutOfCapacity, match="Only 0"):
        book(seoul, acme, now + 100 * DAY, now + 101 * DAY)


def test_a_service_lives_on_a_reserved_node_and_gives_it_back_for_the_rest_of_the_term(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    reservation = book(seoul, acme, now, now + 5 * DAY)
    (used,) = take(seoul, acme, reservation=reservation)
    assert Allocation.objects.get().pk == used.pk
    with pytest.raises(OutOfCapacity):
        take(seoul, acme, reservation=reservation)
    services.release(service=used.service)
    rest = Allocation.objects.get(released_at=None)
    assert (rest.reservation, rest.service, rest.during.upper) == (reservation, None, now + 5 * DAY)
    assert Node.objects.get(pk=used.node_id).status == NodeStatus.CLEANING
    with pytest.raises(OutOfCapacity):
        take(seoul, acme, reservation=reservation)
    clean(used.node_id)
    take(seoul, acme, reservation=reservation)
    assert services.release(service=used.service) is None


def test_after_its_term_a_reservation_holds_nothing(acme: Any, seoul: Site) -> None:
    now = clock.now()
    reservation = book(seoul, acme, now, now + DAY, 2)
    assert free(seoul) == (0, 0)
    move_clock(now + DAY)
    assert free(seoul) == (2, 0)
    move_clock(now + 3 * DAY)
    assert services.release_term(reservation=reservation, at=now + DAY) == 2
    assert services.release_term(reservation=reservation, at=now + DAY) == 0
    assert {one.during.upper for one in Allocation.objects.all()} == {now + DAY}


def test_a_service_that_lost_its_reserved_node_gets_another_for_the_rest_of_the_term(
    acme: Any, seoul: Site
) -> None:
    now = clock.now()
    reservation = book(seoul, acme, now, now + 5 * DAY)
    (old,) = take(seoul, acme, reservation=reservation)
    services.quarantine(node=old.node, reason="7 of 8 GPUs")
    new = services.replace_allocation(service=old.service, resource_class=CLASS, traits=[TRAIT])
    assert new.node_id != old.node_id
    assert (new.reservation, new.during.upper) == (reservation, now + 5 * DAY)
    assert Allocation.objects.filter(released_at=None).count() == 1


def test_a_reserved_node_that_breaks_is_replaced_by_another(acme: Any, seoul: Site) -> None:
    now = clock.now()
    reservation = book(seoul, acme, now + 2 * DAY, now + 5 * DAY)
    held = Allocation.objects.get()
    with platform_context():
        services.quarantine(node=held.node, reason="ECC")
        (row,) = selectors.terms_without_a_node()
        moved = services.move_term(hold=row.pk, traits=[TRAIT])
        assert moved is not None
        assert moved.node_id != held.node_id
        assert not selectors.terms_without_a_node().exists()
        services.quarantine(node=moved.node, reason="ECC")
        assert services.move_term(hold=moved.pk, traits=[TRAIT]) is None
        assert services.move_term(hold=moved.pk, traits=[TRAIT]) is None
        assert moved.node.tickets.filter(category="reservation").count() == 1
    assert Allocation.objects.get(released_at=None).reservation == reservation


def test_a_service_goes_on_on_demand_after_its_term_unless_somebody_reserved_the_node(
    acme: Any, globex: Any, seoul: Site
) -> None:
    now = clock.now()
    reservation = book(seoul, acme, now, now + DAY, 2)
    one, other = take(seoul, acme, 2, reservation=reservation)
    Node.objects.filter(pk=one.node_id).update(is_cordoned=True)
    with tenant_context(globex):
        book(seoul, globex, now + 3 * DAY, now + 4 * DAY)
    Node.objects.filter(pk=one.node_id).update(is_cordoned=False)
    move_clock(now + DAY)
    assert services.leave_term(service=one.service, until=None, at=now + DAY)
    assert services.leave_term(service=one.service, until=None, at=now + DAY), "again: the same"
    assert not services.leave_term(service=other.service, until=None, at=now + DAY)
    assert services.leave_term(service=other.service, until=now + 2 * DAY, at=now + DAY)
    assert Allocation.objects.filter(released_at=None, reservation=None).count() == 2


@pytest.mark.parametrize("columns", [{"is_cordoned": True}, {"plans": ["reserved"]}])
def test_nodes_kept_from_a_plan_are_not_given_to_it(
    acme: Any, seoul: Site, columns: dict[str, Any]
) -> None:
    Node.objects.filter(pk=Node.objects.order_by("pk")[0].pk).update(**columns)
    assert free(seoul) == (1, 0)
    with pytest.raises(OutOfCapacity):
        take(seoul, acme, 2)


def test_the_next_free_instant_is_told_when_it_is_known(acme: Any, seoul: Site) -> None:
    now, offering = clock.now(), Offering.objects.get()

    def known(quantity: int = 1, length: timedelta | None = None) -> datetime | None:
        return selectors.free_from(site=seoul, offering=offering, quantity=quantity, length=length)

    take(seoul, acme, until=now + DAY)
    take(seoul, acme, until=now + 2 * DAY)
    assert (known(1), known(2), known(3)) == (now + DAY + HOUR, now + 2 * DAY + HOUR, None)
    book(seoul, acme, now + 3 * DAY, now + 4 * DAY)
    assert (known(1), known(1, HOUR)) == (now + 2 * DAY + HOUR, now + DAY + HOUR)
    assert known(2) == now + 4 * DAY + HOUR
    assert known(2, HOUR) == now + 2 * DAY + HOUR
    (row,) = selectors.availability(site=seoul)
    assert (row.free, row.free_from) == (0, now + 2 * DAY + HOUR)
