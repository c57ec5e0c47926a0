"""Many orders made and ended while everything goes wrong at random, on the fake site.

Run by `./dev bench soak`; NEOCLOUD_SOAK_ORDERS and NEOCLOUD_SOAK_SEED ask for other stories. Of the
site's calls 5 % fail in each way there is, two in a hundred workers are killed between calls, some
messages come twice. Prints what was struck and what came of it; the code is 1 if anything is wrong.
"""

import logging
import os
import random
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django

django.setup()
logging.disable(logging.CRITICAL)

from django.conf import settings  # noqa: E402
from django.db import connection, connections  # noqa: E402

from apps.accounts.models import User  # noqa: E402
from apps.core.errors import (  # noqa: E402
    AppError,
    NodeFault,
    OutsideError,
    SiteUnreachable,
    Transient,
    Unknown,
)
from apps.inventory.models import Node  # noqa: E402
from apps.inventory.states import NodeStatus  # noqa: E402
from apps.metering import selectors as metering  # noqa: E402
from apps.orders import services as orders  # noqa: E402
from apps.orders.models import Order, Service, TenantLimit  # noqa: E402
from apps.orders.states import ServiceState  # noqa: E402
from apps.provisioning import services  # noqa: E402
from apps.provisioning.engine import claims, failpoints, runs  # noqa: E402
from apps.provisioning.models import Leak, Run, RunEvent  # noqa: E402
from apps.provisioning.states import OPEN  # noqa: E402
from apps.tenancy.context import platform_context, tenant_context  # noqa: E402
from apps.tenancy.models import Tenant  # noqa: E402
from tests import builders, databases, invariants  # noqa: E402
from tests.integration.provisioning import world  # noqa: E402
from tests.integration.provisioning.clockwork import Clockwork, move_clock_by  # noqa: E402

ORDERS = int(os.environ.get("NEOCLOUD_SOAK_ORDERS", "500"))
SEED = int(os.environ.get("NEOCLOUD_SOAK_SEED", "1"))
NODES, WORKERS, OPEN_AT_ONCE = 40, 3, 30
SHARE = 0.05
BEFORE: dict[str, type[BaseException]] = {
    "refused": SiteUnreachable, "error before effect": Transient, "node at fault": NodeFault,
    "worker killed in the call": failpoints.Killed,
}  # fmt: skip
AFTER: dict[str, type[BaseException]] = {
    "time-out after effect": SiteUnreachable, "error after effect": Transient,
    "wrong answer": Unknown, "worker killed after the call": failpoints.Killed,
}  # fmt: skip
READS = ("list_nodes", "get_node", "cleaning_since", "validate")
KILLS_BETWEEN = 0.02
OVERLAPS = """
SELECT count(*) FROM inventory_allocation a JOIN inventory_allocation b
  ON a.node_id = b.node_id AND a.id < b.id AND a.during && b.during AND a.gpus && b.gpus
"""


class Soak:
    """One site, two tenants, some workers in threads, and dice."""

    def __init__(self, count: int, seed: int) -> None:
        self.count, self.dice = count, random.Random(seed)
        self.struck: Counter[str] = Counter()
        self.site = world.a_fake_site(nodes=NODES)
        builders.a_price(3, sku="bm.h200.8x", book=builders.a_price_book(currency="USD"))
        self.operator = builders.a_person(role="operator")
        self.tenants = list(Tenant.objects.order_by("slug"))
        for tenant in self.tenants:
            with tenant_context(tenant):
                builders.a_person()
                builders.a_project()
                orders.ensure_tenant_limit(tenant=tenant.pk)
                TenantLimit.objects.update(max_gpus=100_000, max_services=100_000)
        self.works = Clockwork(self.tenants, is_checking=False)
        self.works.decide = self._decide
        self.works.each = self._together
        self.pool = ThreadPoolExecutor(WORKERS)
        self.is_stormy = True
        world.fake().on_call, world.fake().on_return = self._before, self._after

    # ------------------------------------------------------------------ what goes wrong
    def _before(self, call: str, _node: UUID | None) -> None:
        self._strike(BEFORE, call)

    def _after(self, call: str, _node: UUID | None) -> None:
        self._strike(AFTER, call)

    def _strike(self, kinds: dict[str, type[BaseException]], call: str) -> None:
        for name, kind in kinds.items():
            if self.is_stormy and self.dice.random() < SHARE:
                if call == "list_nodes" and not issubclass(kind, OutsideError):
                    continue  # the watcher shares this process
                if kind is NodeFault and call in READS:
                    continue
                self.struck[name] += 1
                raise kind("soak")

    # ------------------------------------------------------------------ workers
    def _together(self, due: list[UUID]) -> None:
        """Every run that is due, by several workers at once; some messages come twice."""
        again = [one for one in due if self.dice.random() < SHARE]
        self.struck["message repeated"] += len(again)
        offset = _offset()
        list(self.pool.map(lambda one: self._work(one, offset), due + again))

    def _work(self, run_id: UUID, offset: str) -> None:
        with platform_context(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('neo.clock_offset', %s, false)", [offset])
            try:
                if self.is_stormy and self.dice.random() < KILLS_BETWEEN:
                    self._die_somewhere(run_id)
                runs.advance(run_id)
            except failpoints.Killed:
                self.works.deaths += 1

    def _die_somewhere(self, run_id: UUID) -> None:
        """The claim is taken, and the worker is gone before it did anything."""
        if claims.claim(run_id) is not None:
            self.struck["worker killed after its claim"] += 1
            raise failpoints.Killed("soak")

    # ------------------------------------------------------------------ people
    def _decide(self, run: Run) -> None:
        services.retry_step(run_id=run.pk, actor=self.operator, reason="looked at")

    def _customers(self) -> None:
        placed = sum(_in(tenant, Order.objects.count) for tenant in self.tenants)
        live = sum(_in(tenant, _live) for tenant in self.tenants)
        for _number in range(min(5, OPEN_AT_ONCE - live, self.count - placed)):
            with tenant_context(self.dice.choice(self.tenants)), suppress(AppError):
                world.an_accepted_order(name="soak", if_unavailable="queue")
        for tenant in self.tenants:
            with tenant_context(tenant):
                self._end_some()

    def _end_some(self) -> None:
        for service in Service.objects.filter(state__in=(S.ACTIVE, S.PROVISIONING)):
            chance = 0.3 if service.state == S.ACTIVE else 0.004
            if self.dice.random() < chance:
                self.struck["ended while being made"] += service.state == S.PROVISIONING
                orders.terminate_service(service_id=service.pk, actor=User.objects.get())

    def _mend(self) -> None:
        """Quarantined nodes nobody works on are repaired, cleaned and put back."""
        with platform_context():
            busy = Run.objects.filter(status__in=OPEN).values("node")
            for node in Node.objects.filter(status=NodeStatus.QUARANTINED).exclude(pk__in=busy):
                with suppress(AppError, OutsideError, failpoints.Killed):
                    self._put_back(node)

    def _put_back(self, node: Node) -> None:
        site = world.fake()
        seen = site.nodes[node.infra_id].seen
        if Leak.objects.filter(node=node, gone_at=None).exists():
            return
        if seen.provision_state in ("active", "deploy failed", "error"):
            site.undeploy(node.infra_id)
        elif seen.provision_state == "available" and seen.instance_id:
            site.unreserve(node.infra_id, name="", instance=seen.instance_id)
        else:
            services.return_node(node=node, actor=self.operator, reason="mended")
            self.struck["node mended"] += 1

    # ------------------------------------------------------------------ the whole
    def run(self) -> int:
        """Place and end all orders, calm down, look at what is there."""
        began = time.monotonic()
        while not self._is_over():
            self._customers()
            self.works.turn()
            self._mend()
            move_clock_by(timedelta(seconds=self.dice.uniform(0, 120)))
        self.is_stormy = False
        world.fake().forget_faults()
        self.works.rest()
        for _turn in range(5):
            self._mend()
            self.works.turn()
        self.pool.shutdown()
        return self._report(time.monotonic() - began)

    def _is_over(self) -> bool:
        placed = sum(_in(tenant, Order.objects.count) for tenant in self.tenants)
        live = sum(_in(tenant, _live) for tenant in self.tenants)
        return placed >= self.count and not live

    def _report(self, spent: float) -> int:
        states: Counter[str] = Counter()
        charged = wrong = 0
        for tenant in self.tenants:
            with tenant_context(tenant):
                states.update(Service.objects.values_list("state", flat=True))
                for service in Service.objects.exclude(ready_at=None):
                    got = sum(
                        one.seconds
                        for one in metering.intervals(service=service.pk)
                        if one.state in invariants.PAYS
                    )
                    charged += got
                    wanted = int((service.ended_at - service.ready_at).total_seconds())
                    wrong += abs(got - wanted)
        with connection.cursor() as cursor:
            cursor.execute(OVERLAPS)
            (doubles,) = cursor.fetchone()
        problems = [
            *self.works.problems,
            *invariants.broken(self.tenants),
            *invariants.broken_at_rest(
                self.tenants,
                [node.seen for node in world.fake().nodes.values()],
                deploys={key: node.deploys for key, node in world.fake().nodes.items()},
            ),
        ]
        leaks = Leak.objects.filter(gone_at=None).count()
        calls = len(world.fake().calls)
        print(f"{sum(states.values())} services: {dict(states)}, in {spent:.0f} s")
        print(f"{calls} calls to the site, {self.works.deaths} workers killed")
        for name, count in sorted(self.struck.items()):
            print(f"  {name:<32}{count:6}")
        kinds = Counter(RunEvent.objects.values_list("kind", flat=True))
        print("  " + ", ".join(f"{kind} {count}" for kind, count in sorted(kinds.items())))
        print(
            f"{leaks} leaks left, {doubles} double allocations, {wrong} wrong seconds of"
            f" {charged} charged, {len(problems)} invariants broken"
        )
        for text in problems:
            print(f"WRONG {text}")
        return int(bool(leaks or doubles or wrong or problems))


S = ServiceState


def _in(tenant: Tenant, ask: Any) -> Any:
    with tenant_context(tenant):
        return ask()


def _live() -> int:
    return Service.objects.exclude(state__in=invariants.ENDED).count()


def _offset() -> str:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT coalesce(nullif(current_setting('neo.clock_offset', true), ''), '0')"
        )
        return str(cursor.fetchone()[0])


def main() -> int:
    """Make a database, soak, drop it."""
    name = databases.copy(f"soak_{os.getpid()}")
    settings.DATABASES["default"].update(databases.entry(databases.url_of("neo_app", name)))
    connections["default"].settings_dict.update(settings.DATABASES["default"])
    try:
        with platform_context():
            return Soak(ORDERS, SEED).run()
    finally:
        connections["default"].close()
        databases.drop(name)


if __name__ == "__main__":
    raise SystemExit(main())
