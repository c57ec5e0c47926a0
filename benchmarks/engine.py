"""What the engine costs: time per step, runs advanced a second, thousands that wait, capacity.

Run by `./dev bench engine`. The fake site answers at once, so all time is ours and the database's.
Prints: time and statements per step; runs advanced a second by 1, 2 and 4 worker processes; what
10,000 waiting runs cost two workers; allocations a second by 64 buyers of 64 tenants beside the
same rows written by bare SQL.
"""

import json
import logging
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django

django.setup()
logging.disable(logging.CRITICAL)

from django.conf import settings  # noqa: E402
from django.db import connection, connections  # noqa: E402

from apps.core import clock  # noqa: E402
from apps.core.uuids import uuid7  # noqa: E402
from apps.inventory.models import Node, Site  # noqa: E402
from apps.inventory.observations import ObservedNode  # noqa: E402
from apps.orders import services as orders  # noqa: E402
from apps.orders.models import Service, TenantLimit  # noqa: E402
from apps.orders.states import ServiceState  # noqa: E402
from apps.provisioning import blueprints  # noqa: E402
from apps.provisioning.engine import claims, runs, watcher  # noqa: E402
from apps.provisioning.models import Run, RunStep  # noqa: E402
from apps.provisioning.states import MOVING, RunStatus, StepStatus  # noqa: E402
from apps.tenancy.context import platform_context, tenant_context  # noqa: E402
from apps.tenancy.models import Tenant  # noqa: E402
from tests import builders, databases  # noqa: E402
from tests.integration.inventory.builders import CLASS  # noqa: E402
from tests.integration.provisioning import world  # noqa: E402

ROOT = Path(__file__).resolve().parents[1]
LIVES = 20
WAITING = int(os.environ.get("NEOCLOUD_WAITING", "10000"))
SECONDS = 30.0
DAY = timedelta(days=1)
SPREAD = """
UPDATE provisioning_run SET next_try_at = next_try_at + random() * interval '300 seconds'
WHERE status = 'forward'
"""


# ---------------------------------------------------------------------- one worker
@dataclass
class Counted:
    """Statements sent in a block."""

    statements: int = 0

    def __call__(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        self.statements += 1
        return execute(sql, params, many, context)


@contextmanager
def counting() -> Iterator[Counted]:
    """Count the statements of this connection."""
    counted = Counted()
    with connection.execute_wrapper(counted):
        yield counted


def lives(tenant: Tenant) -> None:
    """Servers made from order to hand-over, one after the other; only the engine's part counts."""
    spent = cpu = 0.0
    steps = statements = 0
    with tenant_context(tenant):
        for number in range(LIVES):
            order = world.an_accepted_order(name=f"life{number}")
            world.deliver()
            service = world.the_service(order)
            has_called = False
            while service.state == ServiceState.PROVISIONING:
                with platform_context():
                    Run.objects.filter(status__in=MOVING).update(
                        next_try_at=clock.now(), lease_until=None
                    )
                    (run_id,) = claims.due_runs()
                    with counting() as counted:
                        began, cpu_began = time.perf_counter(), time.process_time()
                        runs.advance(run_id)
                        spent += time.perf_counter() - began
                        cpu += time.process_time() - cpu_began
                    statements += counted.statements
                world.fake().settle()
                run = Run.objects.get(pk=run_id)
                if not has_called and run.steps.filter(name="prove_ready", attempts__gt=0).exists():
                    world.call_home(service)
                    has_called = True
                service.refresh_from_db()
            steps += sum(RunStep.objects.filter(run=run_id).values_list("attempts", flat=True))
    print(
        f"our own work: {1000 * spent / steps:.1f} ms a step ({1000 * cpu / steps:.1f} ms of it"
        f" Python), {statements / steps:.0f} statements; {LIVES} servers made,"
        f" {steps / LIVES:.0f} steps done or looked at each"
    )


# ---------------------------------------------------------------------- waiting runs
def wait_for_servers(tenant: Tenant, site: Site, count: int) -> None:
    """So many servers are installed already and have not called home."""
    blueprint = blueprints.BUILDERS["bare_metal"]
    position = next(i for i, step in enumerate(blueprint.steps) if step.name == "prove_ready")
    now, nodes = clock.now(), rack(site, count)
    with tenant_context(tenant):
        order = builders.an_order(sku="bm.h200.8x", site_id=site.pk, site_code=site.code)
        services = [
            Service(
                order=order, project=order.project, ordinal=number, name=f"w{number}",
                state=ServiceState.PROVISIONING, sku=order.sku, gpus=8, site_id=site.pk,
                site_code=site.code, condition="working",
            )
            for number in range(1, count + 1)
        ]  # fmt: skip
        Service.objects.bulk_create(services, batch_size=1000)
        made = [
            Run(
                blueprint=blueprint.name, version=blueprint.version, tenant=tenant.pk,
                order=order.pk, order_number=order.number, service=service.pk,
                service_name=service.name, sku=order.sku, offering=uuid7(), site=site, node=node,
                position=position, wanted={}, next_try_at=now, try_deadline=now + DAY,
            )
            for service, node in zip(services, nodes, strict=True)
        ]  # fmt: skip
        Run.objects.bulk_create(made, batch_size=1000)
        RunStep.objects.bulk_create(
            [
                RunStep(
                    run=run, tenant=tenant.pk, position=position, name="prove_ready",
                    status=StepStatus.WAITING, attempts=1, started_at=now, deadline=now + DAY,
                )
                for run in made
            ],
            batch_size=1000,
        )  # fmt: skip


def rack(site: Site, count: int) -> list[Node]:
    """So many more nodes at the site."""
    before = Node.objects.count()
    return Node.objects.bulk_create(
        [
            Node(
                site=site, infra_id=uuid7(), name=f"rack{before + number}", resource_class=CLASS,
                status="allocated", gpu_count=8,
            )
            for number in range(count)
        ],
        batch_size=1000,
    )  # fmt: skip


def forget_waiting() -> None:
    """None of them waits any more."""
    Run.objects.filter(status__in=MOVING).update(
        status=RunStatus.UNDONE, ended_at=clock.now(), next_try_at=None, lease_until=None
    )


def work(index: int, workers: int, seconds: float) -> None:
    """One worker process: takes its share of what is due, until the time is over; prints what it
    did. It is told what is due as by messages.
    """
    advanced, deadline = 0, time.monotonic() + seconds
    with platform_context(), counting() as counted:
        began = time.monotonic()
        while time.monotonic() < deadline:
            due = [one for one in claims.due_runs(limit=200) if one.int % workers == index]
            for run_id in due:
                advanced += runs.advance(run_id)
                if time.monotonic() > deadline:
                    break
            if not due:
                time.sleep(0.05)
    spent = time.monotonic() - began
    used = resource.getrusage(resource.RUSAGE_SELF)
    print(
        json.dumps(
            {
                "advanced": advanced / spent,
                "statements": counted.statements / spent,
                "memory": used.ru_maxrss / 1024,
                "cpu": (used.ru_utime + used.ru_stime) / spent,
            }
        )
    )


def watch(site_code: str, seconds: float) -> None:
    """The watcher of the site: looks as often as beat asks; prints what it asked and how long it
    took.
    """
    fake, looks, spent = world.FakeCompute.of(site_code), 0, 0.0
    with platform_context():
        waiting = Run.objects.filter(status__in=MOVING).values("node")
        for node in Node.objects.filter(pk__in=waiting):
            fake.add(ObservedNode(infra_id=node.infra_id, name=node.name, resource_class=CLASS))
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            for site_id in watcher.due_sites():
                began = time.monotonic()
                watcher.look(site_id)
                looks, spent = looks + 1, spent + time.monotonic() - began
            time.sleep(0.5)
    pages = -(-len(fake.nodes) // 1000)
    print(json.dumps({"calls": looks * pages / seconds, "look": spent / max(looks, 1)}))


def children(database: str, *asked: list[str]) -> list[dict[str, float]]:
    """Start processes of this benchmark at once; what each printed."""
    environment = {**os.environ, "DATABASE_URL": databases.url_of("neo_app", database)}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "benchmarks.engine", *words],
            cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True,
        )
        for words in asked
    ]  # fmt: skip
    return [json.loads(one.communicate()[0]) for one in started]


def rates(database: str, tenant: Tenant, site: Site) -> None:
    """Runs advanced a second, with more and more workers."""
    for workers in (1, 2, 4):
        in_context(lambda: wait_for_servers(tenant, site, 2000))
        told = children(database, *(["work", str(n), str(workers), "10"] for n in range(workers)))
        in_context(forget_waiting)
        print(
            f"{workers} worker{'s' * (workers > 1):<2}{_sum(told, 'advanced'):6.0f} runs advanced a"
            f" second, {_sum(told, 'statements'):.0f} statements"
        )


def many_waiting(database: str, tenant: Tenant, site: Site) -> None:
    """Thousands wait; two workers and a watcher look after them."""
    in_context(lambda: wait_for_servers(tenant, site, WAITING))
    in_context(lambda: _run_sql(SPREAD))
    *told, seen = children(
        database,
        ["work", "0", "2", str(SECONDS)],
        ["work", "1", "2", str(SECONDS)],
        ["watch", site.code, str(SECONDS)],
    )
    late = in_context(_lateness)
    print(
        f"{WAITING:,} waiting runs on 2 workers: {told[0]['memory']:.0f} and"
        f" {told[1]['memory']:.0f} MiB, {100 * _sum(told, 'cpu') / 2:.0f} % of a core each,"
        f" {_sum(told, 'statements'):.0f} statements a second, {_sum(told, 'advanced'):.0f} runs"
        f" looked at a second, the latest {late:.1f} s behind; {seen['calls']:.1f} calls to"
        f" the site a second, a look at {WAITING:,} nodes takes {1000 * seen['look']:.0f} ms"
    )


def _lateness() -> float:
    first = Run.objects.filter(status__in=MOVING).order_by("next_try_at").first()
    return max(0.0, (clock.now() - first.next_try_at).total_seconds()) if first else 0.0


def _run_sql(text: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(text)


def _sum(told: list[dict[str, float]], name: str) -> float:
    return sum(one[name] for one in told)


def in_context(job: Callable[[], Any]) -> Any:
    """On the platform's side, committed."""
    with platform_context():
        return job()


# ---------------------------------------------------------------------- the whole
def main() -> None:
    """Make a database, measure, drop it."""
    name = databases.copy(f"bench_engine_{os.getpid()}")
    settings.DATABASES["default"].update(databases.entry(databases.url_of("neo_app", name)))
    connections["default"].settings_dict.update(settings.DATABASES["default"])
    try:
        site, tenant = in_context(open_shop)
        in_context(lambda: lives(tenant))
        in_context(lambda: Site.objects.update(concurrency=1000))
        rates(name, tenant, site)
        many_waiting(name, tenant, site)
    finally:
        connections["default"].close()
        databases.drop(name)


def open_shop() -> tuple[Site, Tenant]:
    """A fake site with nodes for the lives, a tenant without limits."""
    site = world.a_fake_site(nodes=LIVES)
    tenant = Tenant.objects.get(slug="acme")
    with tenant_context(tenant):
        builders.a_person()
        builders.a_project()
        orders.ensure_tenant_limit(tenant=tenant.pk)
        TenantLimit.objects.update(max_gpus=1_000_000, max_services=100_000)
    return site, tenant


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["work", index, workers, seconds]:
            work(int(index), int(workers), float(seconds))
        case ["watch", code, seconds]:
            watch(code, float(seconds))
        case _:
            main()
