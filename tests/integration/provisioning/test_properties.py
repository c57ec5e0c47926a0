"""Whatever customers, operators, sites and workers do, in whatever order: the invariants hold.

NEOCLOUD_EXAMPLES=500 tries that many stories, each time others; without it a fixed few.
"""

import os
from contextlib import ExitStack, suppress
from datetime import timedelta
from typing import Any

import pytest
from django.db import transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from apps.accounts.models import User
from apps.catalog.models import Offering
from apps.core.errors import (
    AppError,
    NodeFault,
    OutsideError,
    Refused,
    SiteUnreachable,
    Transient,
    Unknown,
)
from apps.core.models import OutboxEvent
from apps.inventory import services as inventory
from apps.inventory.models import Node, Site
from apps.inventory.states import NodeStatus, SiteStatus
from apps.orders import services as orders
from apps.orders.models import Order, Service
from apps.orders.states import OrderStatus
from apps.provisioning import services
from apps.provisioning.engine import claims, failpoints, runs
from apps.provisioning.models import Run
from apps.provisioning.states import OPEN, RunStatus
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import builders, invariants
from tests.integration.provisioning import world
from tests.integration.provisioning.clockwork import Clockwork, move_clock_by

pytestmark = pytest.mark.slow

EXAMPLES = int(os.environ.get("NEOCLOUD_EXAMPLES", "0"))
NODES = 4
SPARE = 30
CALLS = ("get_node", "reserve", "unreserve", "validate", "deploy", "undeploy", "set_power",
         "cleaning_since", "list_nodes")  # fmt: skip
ERRORS: tuple[type[OutsideError], ...] = (
    SiteUnreachable, Transient, NodeFault, Refused, Unknown,
)  # fmt: skip
which = st.integers(0, 7)


class Cloud(RuleBasedStateMachine):
    """Two tenants, one site with a few servers, one operator."""

    def __init__(self) -> None:
        super().__init__()
        self.stack = ExitStack()
        self.calls_left: int | None = None

    @initialize()
    def open(self) -> None:
        """Everything begins empty, in a transaction that is never committed."""
        self.stack.enter_context(platform_context())
        self.stack.enter_context(transaction.atomic())
        self.site = world.a_fake_site(nodes=NODES)
        Offering.objects.update(max_quantity=2)
        builders.a_price(3, sku="bm.h200.8x", book=builders.a_price_book(currency="USD"))
        self.operator = builders.a_person(role="operator")
        self.tenants = list(Tenant.objects.order_by("slug"))
        for tenant in self.tenants:
            with tenant_context(tenant):
                builders.a_person()
                builders.a_project()
        self.works = Clockwork(self.tenants, is_checking=False)
        world.fake().on_return = self._count_down

    def _count_down(self, _call: str, _node: Any) -> None:
        if self.calls_left is not None:
            self.calls_left -= 1
            if self.calls_left < 0:
                self.calls_left = None
                raise failpoints.Killed("in a call")

    # ------------------------------------------------------------------ customers
    @rule(who=st.booleans(), quantity=st.integers(1, 2), waits=st.booleans())
    def order(self, who: bool, quantity: int, waits: bool) -> None:
        """Somebody orders."""
        with tenant_context(self.tenants[who]), suppress(AppError):
            world.an_accepted_order(
                quantity=quantity, if_unavailable="queue" if waits else "fail",
                name=f"s{Order.objects.count()}",
            )  # fmt: skip

    @rule(who=st.booleans(), place=which)
    def cancel(self, who: bool, place: int) -> None:
        """Somebody cancels an order."""
        with tenant_context(self.tenants[who]):
            open_ones = Order.objects.filter(
                status__in=(OrderStatus.QUEUED, OrderStatus.ACCEPTED)
            ).order_by("serial")
            if order := _one(open_ones, place):
                with suppress(AppError):
                    orders.cancel_order(order_id=order.pk, actor=User.objects.get())

    @rule(who=st.booleans(), place=which)
    def terminate(self, who: bool, place: int) -> None:
        """Somebody ends a server, ready or not."""
        with tenant_context(self.tenants[who]):
            live = Service.objects.exclude(state__in=invariants.ENDED).order_by("pk")
            if service := _one(live, place):
                with suppress(AppError):
                    orders.terminate_service(service_id=service.pk, actor=User.objects.get())

    # ------------------------------------------------------------------ workers
    @rule()
    def work(self) -> None:
        """All that is due is done, time passes to what is next."""
        self.works.turn()

    @rule(place=which)
    def work_on_one(self, place: int) -> None:
        """One worker takes one run, out of turn; nothing else moves."""
        world.deliver()
        with platform_context():
            due = claims.due_runs()
            if due:
                self.works.mortal(runs.advance, due[place % len(due)])

    @rule(calls=st.integers(0, 3))
    def a_worker_dies_soon(self, calls: int) -> None:
        """The worker that makes the call after these is killed in it."""
        self.calls_left = calls

    @rule(place=which)
    def deliver_again(self, place: int) -> None:
        """An event comes twice."""
        with platform_context():
            if event := _one(OutboxEvent.objects.exclude(delivered_at=None).order_by("id"), place):
                OutboxEvent.objects.filter(pk=event.pk).update(delivered_at=None)

    @rule(minutes=st.sampled_from((1, 20, 60, 60 * 25)))
    def nobody_works(self, minutes: int) -> None:
        """All workers are away for a while."""
        move_clock_by(timedelta(minutes=minutes))

    # ------------------------------------------------------------------ the site
    @rule(call=st.sampled_from(CALLS), error=st.sampled_from(ERRORS), after=st.booleans())
    def a_call_fails(self, call: str, error: type[OutsideError], after: bool) -> None:
        """The next call of a name goes wrong."""
        world.fake().fail(call, error("drill"), after_effect=after)

    @rule()
    def the_site_goes_on(self) -> None:
        """What the site has begun gets a stage further."""
        world.fake().settle()

    @rule(place=which, deploying=st.booleans())
    def a_node_breaks(self, place: int, deploying: bool) -> None:
        """It can no longer be deployed, or no longer be cleaned."""
        node = list(world.fake().nodes.values())[place % NODES]
        if deploying:
            node.deploy_error = "PXE timed out"
        else:
            node.clean_error = "its disk did not answer"

    @rule(answers=st.booleans())
    def servers_call_home(self, answers: bool) -> None:
        """From now on they do, or they are silent."""
        self.works.calls_home = lambda _run: answers

    # ------------------------------------------------------------------ operators
    @rule()
    def pause_or_resume(self) -> None:
        """The site is paused, or sells again."""
        with platform_context():
            site = Site.objects.get(pk=self.site.pk)
            act = (
                inventory.pause_site if site.status == SiteStatus.ACTIVE else inventory.resume_site
            )
            act(site=site, actor=self.operator, reason="a drill")

    @rule(place=which, undoes=st.booleans())
    @precondition(lambda self: Run.objects.filter(status__in=OPEN).exists())
    def decide(self, place: int, undoes: bool) -> None:
        """An operator has a run tried again, or undone."""
        with platform_context(), suppress(AppError):
            run = _one(Run.objects.filter(status__in=OPEN).order_by("pk"), place)
            act: Any = services.undo_run if undoes else services.retry_step
            act(run_id=run.pk, actor=self.operator, reason="a drill")

    @rule(place=which)
    def mend(self, place: int) -> None:
        """A quarantined node is mended, cleaned at the site and put back."""
        with platform_context():
            bad = Node.objects.filter(status=NodeStatus.QUARANTINED).order_by("pk")
            if node := _one(bad, place):
                _mend(node, self.operator)

    # ------------------------------------------------------------------ what must hold
    @invariant()
    def all_is_right(self) -> None:
        """Between any two acts."""
        if hasattr(self, "works"):
            assert invariants.broken(self.tenants) == []

    def teardown(self) -> None:
        """Everything is mended, a person decides, and all comes to rest."""
        try:
            if hasattr(self, "works"):
                self._come_to_rest()
        finally:
            if hasattr(self, "works"):
                transaction.set_rollback(True)
            self.stack.close()

    def _come_to_rest(self) -> None:
        site = world.fake()
        site.on_return = lambda _call, _node: None
        site.forget_faults()
        for node in site.nodes.values():
            node.deploy_error = node.clean_error = ""
        with platform_context():
            here = Site.objects.get(pk=self.site.pk)
            if here.status != SiteStatus.ACTIVE:
                inventory.resume_site(site=here, actor=self.operator, reason="the end")
            for _number in range(SPARE):  # whoever waits for a server gets one
                world.another_node(here)
        self.works.calls_home = lambda _run: True
        self.works.is_checking = True
        self.works.decide = self._try_again
        self.works.rest()
        assert self.works.problems == []
        found = invariants.broken_at_rest(
            self.tenants,
            [node.seen for node in site.nodes.values()],
            deploys={infra: node.deploys for infra, node in site.nodes.items()},
        )
        assert found == []

    def _try_again(self, run: Run) -> None:
        assert run.status == RunStatus.HELD
        services.retry_step(run_id=run.pk, actor=self.operator, reason="the end")


def _one(rows: Any, place: int) -> Any:
    found = list(rows)
    return found[place % len(found)] if found else None


def _mend(node: Node, operator: User) -> None:
    """As a person would: repaired, removed and cleaned at the site, then returned."""
    there = world.fake().nodes[node.infra_id]
    there.deploy_error = there.clean_error = ""
    if Run.objects.filter(node=node, status__in=OPEN).exists():
        return
    with suppress(AppError, OutsideError):
        if there.seen.provision_state not in ("available", "cleaning", "deleting"):
            world.fake().undeploy(node.infra_id)
        world.fake().settle()
        world.fake().settle()
        services.return_node(node=node, actor=operator, reason="mended")


def test_the_invariants_hold_through_any_story(own_database: Any) -> None:
    asked = settings(
        max_examples=EXAMPLES or 20,
        stateful_step_count=30,
        deadline=None,
        derandomize=not EXAMPLES,
        print_blob=True,
        suppress_health_check=list(HealthCheck),
    )
    run_state_machine_as_test(Cloud, settings=asked)
