"""Messages that come twice, late, or too early, on a committed database with workers in threads."""

from collections.abc import Iterator
from datetime import timedelta
from threading import Event, Thread
from typing import Any
from uuid import UUID

import pytest
from django.db import connection, transaction
from structlog.testing import capture_logs

from apps.accounts.models import User
from apps.core import clock
from apps.inventory.models import Allocation
from apps.metering import selectors as metering
from apps.orders.models import Order, Service
from apps.orders.selectors import gpus_in_use
from apps.provisioning.engine import claims, runs
from apps.provisioning.models import Run, RunStep
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from tests import builders
from tests.integration.provisioning import world
from tests.racing import apart, together

HOUR = timedelta(hours=1)


@pytest.fixture
def acme(committed: None) -> Iterator[Tenant]:
    """A tenant with a person and a project at a site with two nodes, committed."""

    def open_shop() -> Tenant:
        world.a_fake_site(nodes=2)
        tenant = Tenant.objects.get(slug="acme")
        with tenant_context(tenant):
            builders.a_person()
            builders.a_project()
        return tenant

    yield apart(open_shop)
    world.FakeCompute.forget_all()


def inside(tenant: Tenant, job: Any) -> Any:
    """Do something as the tenant, on a connection of its own."""

    def run() -> Any:
        with tenant_context(tenant):
            return job()

    return apart(run)


def later(passed: timedelta, job: Any) -> Any:
    """A job for which so much time has passed already."""

    def run() -> Any:
        with connection.cursor() as cursor:
            cursor.execute("SELECT set_config('neo.clock_offset', %s::text, false)", [passed])
        return job()

    return run


def deliver() -> None:
    """What is committed reaches its handlers, whatever else is open on this server."""
    apart(world.deliver)


def test_a_message_that_comes_again_while_its_worker_is_still_at_it_makes_nothing_twice(acme):
    """Case S03: the site answers after 75 minutes, the message comes twice more after 60."""
    order = inside(acme, world.an_accepted_order)
    deliver()
    (run_id,) = apart(claims.due_runs)
    is_in_call, may_answer = Event(), Event()

    def slow(call: str, _node: UUID | None) -> None:
        if call == "deploy" and not is_in_call.is_set():
            is_in_call.set()
            assert may_answer.wait(60)

    world.fake().on_return = slow
    told: list[list[dict[str, Any]]] = []

    def first() -> None:
        with capture_logs() as lines:
            apart(lambda: runs.advance(run_id))
        told.append(lines)

    worker = Thread(target=first)
    worker.start()
    assert is_in_call.wait(60)
    apart(lambda: RunStep.objects.filter(deadline__isnull=False).update(
        deadline=clock.now() + 2 * HOUR
    ))  # fmt: skip
    with capture_logs() as lines:
        results = together([later(HOUR, lambda: runs.advance(run_id))] * 2)
    assert sorted(results) == [False, True], "one found its lease over, the other found it taken"
    assert [one["event"] for one in lines].count("run.not_due") == 1
    may_answer.set()
    worker.join()
    assert "run.claim_lost" in [one["event"] for one in told[0]]

    world.fake().settle()
    apart(later(1.25 * HOUR, lambda: _go_on(run_id)))
    service = inside(acme, lambda: Service.objects.get(order=order))
    inside(acme, lambda: world.call_home(service))
    apart(later(1.25 * HOUR, lambda: _go_on(run_id)))
    with capture_logs() as lines:
        assert apart(later(2 * HOUR, lambda: runs.advance(run_id))) is False
    assert [one["event"] for one in lines] == ["run.not_due"]

    assert [name for name, _node in world.fake().calls].count("deploy") == 1
    assert apart(lambda: Allocation.objects.filter(released_at=None).count()) == 1
    assert inside(acme, lambda: gpus_in_use(tenant=acme.pk)) == 8
    spans = inside(acme, lambda: later(2 * HOUR, metering.intervals)())
    assert [one.state for one in spans] == ["provisioning", "active"]


def _go_on(run_id: UUID) -> None:
    Run.objects.filter(pk=run_id).update(next_try_at=clock.now(), lease_until=None)
    runs.advance(run_id)
    world.fake().settle()
    Run.objects.filter(pk=run_id).update(next_try_at=clock.now(), lease_until=None)
    runs.advance(run_id)


def test_a_worker_that_is_faster_than_the_commit_makes_one_run_afterwards(acme):
    """Case S22: the relay and a worker are idle while the order commits half a second later."""
    is_written, may_commit = Event(), Event()

    def slow() -> None:
        with tenant_context(acme), transaction.atomic():
            world.an_accepted_order(person=User.objects.get())
            is_written.set()
            assert may_commit.wait(60)

    def order() -> None:
        apart(slow)

    customer = Thread(target=order)
    customer.start()
    assert is_written.wait(60)
    deliver()
    assert apart(claims.due_runs) == []
    assert apart(Run.objects.count) == 0
    may_commit.set()
    customer.join()
    deliver()
    deliver()

    (run_id,) = apart(claims.due_runs)

    assert apart(lambda: runs.advance(run_id)) is True
    assert apart(Run.objects.count) == 1
    assert inside(acme, Order.objects.count) == 1


def test_an_order_that_is_rolled_back_leaves_no_run(acme):
    """Case S22: rolled back after everything was asked for."""

    def refuse() -> None:
        with tenant_context(acme), transaction.atomic():
            world.an_accepted_order(person=User.objects.get())
            transaction.set_rollback(True)

    apart(refuse)
    deliver()

    assert apart(Run.objects.count) == 0
    assert inside(acme, Order.objects.count) == 0
    assert world.fake().calls == []
