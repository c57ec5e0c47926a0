"""Acts at one moment on one thing: one outcome, whoever was first."""

import random
from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.core import clock
from apps.core.errors import AppError
from apps.inventory.models import Allocation
from apps.orders import services as orders
from apps.orders.deadlines import serve_due
from apps.orders.errors import ServiceOver
from apps.orders.models import Approval, Deadline, Fact, Order, Service
from apps.orders.states import ServiceState
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world
from tests.racing import apart, together


@pytest.fixture
def acme(committed: None) -> Tenant:
    """A tenant with an owner, and a member whose orders need approval; two servers."""

    def make() -> Tenant:
        world.a_fake_site(nodes=2)
        tenant = Tenant.objects.get(slug="acme")
        with tenant_context(tenant):
            owner = builders.a_person(name="Olga")
            builders.a_person(role=Role.MEMBER, name="Max")
            builders.a_project()
            orders.set_order_policy(
                approval_from_gpus=8, approval_hours=72, longest_days=None, actor=owner
            )
        return tenant

    return apart(make)


def inside(tenant: Tenant, act: Any) -> Any:
    def job() -> Any:
        with tenant_context(tenant):
            return act()

    return job


def owner() -> User:
    return User.objects.get(name="Olga")


def overdue() -> None:
    """Whatever falls due is due now."""
    past = clock.now() - timedelta(hours=1)
    with platform_context():
        Deadline.objects.filter(done_at=None).update(due_at=past, next_try_at=past)


@pytest.mark.parametrize("seed", range(6))
def test_approving_refusing_cancelling_and_expiring_at_once_is_one_outcome(acme, seed):
    def ask() -> Any:
        order = world.an_accepted_order(person=User.objects.get(name="Max"))
        Approval.objects.filter(order=order).update(expires_at=clock.now())
        overdue()
        return order.pk, order.approval.pk

    order_id, approval_id = apart(inside(acme, ask))
    jobs = [
        inside(acme, lambda: orders.approve(approval_id=approval_id, actor=owner())),
        inside(acme, lambda: orders.approve(approval_id=approval_id, actor=owner())),
        inside(acme, lambda: orders.refuse_approval(
            approval_id=approval_id, actor=owner(), reason="not now"
        )),
        inside(acme, lambda: orders.cancel_order(order_id=order_id, actor=owner())),
        serve_due,
    ]  # fmt: skip
    random.Random(seed).shuffle(jobs)
    results = together(jobs)
    assert all(not isinstance(one, Exception) or isinstance(one, AppError) for one in results), (
        results
    )

    def outcome() -> tuple[str, str, int, int]:
        order = Order.objects.get(pk=order_id)
        ledger.must_be_sound()
        return (
            order.status,
            Approval.objects.get(pk=approval_id).status,
            Service.objects.filter(order=order).count(),
            Allocation.objects.filter(order=order.pk, released_at=None).count(),
        )

    status, answer, made, held = apart(inside(acme, outcome))
    assert (status, answer) in {
        ("accepted", "approved"),
        ("cancelled", "approved"),  # approved, then cancelled before it was ready
        ("refused", "refused"),
        ("cancelled", "withdrawn"),
        ("expired", "expired"),
    }
    assert made == (answer == "approved")
    assert held == (status == "accepted")


def test_three_requests_to_terminate_give_the_quota_back_once(acme):
    def make() -> Any:
        service = world.until_ready(world.an_accepted_order(person=owner()))
        return service.pk

    service_id = apart(inside(acme, make))

    def end() -> Any:
        return orders.terminate_service(service_id=service_id, actor=owner()).state

    assert together([inside(acme, end)] * 2) == [ServiceState.DELETING] * 2
    assert apart(inside(acme, end)) == ServiceState.DELETING

    def used() -> Any:
        ledger.must_be_sound()
        return ledger.used(), Fact.objects.filter(state=ServiceState.DELETING).count()

    assert apart(inside(acme, used)) == ({"gpus": 0, "services": 0}, 1)


def test_an_end_that_has_come_comes_once_and_is_not_moved_any_more(acme):
    def make() -> Any:
        end = clock.now() + timedelta(hours=1)
        service = world.until_ready(world.an_accepted_order(person=owner(), ends_at=end))
        Service.objects.filter(pk=service.pk).update(ends_at=clock.now_seconds())
        overdue()
        return service.pk

    service_id = apart(inside(acme, make))
    later = apart(clock.now) + timedelta(days=3)

    def extend() -> Any:
        return orders.set_end(service_id=service_id, ends_at=later, actor=owner())

    def end() -> Any:
        return orders.terminate_service(service_id=service_id, actor=owner())

    results = together([inside(acme, extend), serve_due, serve_due, inside(acme, end)])
    assert isinstance(results[0], ServiceOver)
    assert not any(isinstance(one, Exception) for one in results[1:]), results

    def outcome() -> tuple[str, int, bool]:
        ledger.must_be_sound()
        facts = Fact.objects.filter(service=service_id, state=ServiceState.DELETING).count()
        is_armed = Deadline.objects.filter(subject=service_id, done_at=None).exists()
        return Service.objects.get(pk=service_id).state, facts, is_armed

    assert apart(inside(acme, outcome)) == ("deleting", 1, False)


def test_many_starts_at_one_moment_take_each_server_once(acme):
    def plan() -> None:
        start = clock.now() + timedelta(hours=1)
        for number in range(4):
            world.an_accepted_order(person=owner(), name=f"n{number}", starts_at=start)
        Order.objects.update(starts_at=clock.now())
        overdue()

    apart(inside(acme, plan))
    together([serve_due] * 4)

    def outcome() -> list[str]:
        ledger.must_be_sound()
        return sorted(Order.objects.values_list("status", flat=True))

    assert apart(inside(acme, outcome)) == ["accepted", "accepted", "refused", "refused"]
