"""How fast orders are placed, and what that is of the plain SQL limit measured in the same run.

Run by `./dev bench orders`. Prints: orders a second and their latencies, one at a time and eight
together; 64 simultaneous orders for 8 nodes; allocations a second beside the same rows written by
bare SQL.
"""

import logging
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django

django.setup()
logging.disable(logging.INFO)

import psycopg  # noqa: E402
from django.conf import settings  # noqa: E402
from django.db import connections, transaction  # noqa: E402

from apps.accounts.models import Project, User  # noqa: E402
from apps.catalog.models import Offering  # noqa: E402
from apps.inventory import services as inventory  # noqa: E402
from apps.inventory.errors import OutOfCapacity  # noqa: E402
from apps.inventory.models import Allocation, Node, Site  # noqa: E402
from apps.orders import services as orders  # noqa: E402
from apps.orders.models import TenantLimit  # noqa: E402
from apps.tenancy.context import tenant_context  # noqa: E402
from apps.tenancy.models import Tenant  # noqa: E402
from tests import builders, databases  # noqa: E402
from tests.integration.inventory.builders import CLASS, TRAIT  # noqa: E402
from tests.integration.provisioning import world  # noqa: E402
from tests.racing import apart, together  # noqa: E402

COUNT = 160
TOGETHER = 8
PLAIN = """
WITH picked AS (
    SELECT id, gpu_count FROM public.inventory_node
    WHERE status = 'available' AND resource_class = %(class)s AND site_id = %(site)s
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED
), moved AS (
    UPDATE public.inventory_node n SET status = 'allocated' FROM picked p WHERE n.id = p.id
), noted AS (
    INSERT INTO public.inventory_nodeevent (node_id, at, verb, status, reason, actor)
    SELECT id, clock_timestamp(), 'allocate', 'allocated', '', '' FROM picked
)
INSERT INTO public.inventory_allocation
    (id, node_id, gpus, during, tenant, "order", service, gpu_count, created_at)
SELECT gen_random_uuid(), id, int4range(0, gpu_count), tstzrange(clock_timestamp(), NULL),
       %(tenant)s, gen_random_uuid(), gen_random_uuid(), gpu_count, clock_timestamp()
FROM picked
"""


def open_shop(nodes: int) -> tuple[Site, Tenant]:
    """A fake site with nodes, and a tenant whose quotas are open."""
    site = world.a_fake_site(nodes=nodes)
    Offering.objects.update(max_quantity=8)
    tenant = Tenant.objects.get(slug="acme")
    with tenant_context(tenant):
        builders.a_person()
        builders.a_project()
        orders.ensure_tenant_limit(tenant=tenant.pk)
        TenantLimit.objects.update(max_gpus=100_000, max_services=100_000)
    return site, tenant


def empty() -> None:
    """Every node is free again, as after cleaning."""
    Allocation.objects.all().delete()
    Node.objects.update(status="available")


def leave_eight() -> None:
    """Eight nodes stay free."""
    others = list(Node.objects.order_by("pk").values_list("pk", flat=True)[8:])
    Node.objects.filter(pk__in=others).update(status="maintenance")


def quoted(tenant: Tenant, count: int) -> list[UUID]:
    """Quotes, made beforehand."""
    with tenant_context(tenant):
        person = User.objects.get()
        return [
            orders.make_quote(
                actor=person, offering_sku="bm.h200.8x", site_code=world.SITE, quantity=1
            ).pk
            for _number in range(count)
        ]


def placing(tenant: Tenant, quotes: Sequence[UUID]) -> Callable[[], list[float]]:
    """Confirm each quote, one after the other; how long each took."""

    def job() -> list[float]:
        times = []
        with tenant_context(tenant):
            person, project = User.objects.get(), Project.objects.get().pk
            for quote in quotes:
                began = time.perf_counter()
                orders.place_order(
                    actor=person, quote_id=quote, project_id=project, name="train",
                    ssh_public_keys=[world.KEY],
                )  # fmt: skip
                times.append(time.perf_counter() - began)
        return times

    return job


def allocating(site: Site, tenant: Tenant, count: int) -> Callable[[], list[float]]:
    """Take nodes through the service, one transaction each."""

    def job() -> list[float]:
        times = []
        with tenant_context(tenant):
            for _number in range(count):
                began = time.perf_counter()
                with transaction.atomic():
                    inventory.allocate(
                        site=site, resource_class=CLASS, traits=[TRAIT], gpus_each=8,
                        tenant=tenant.pk, order=uuid4(), services=[uuid4()],
                    )  # fmt: skip
                times.append(time.perf_counter() - began)
        return times

    return job


def plain(database: str, site: Site, tenant: Tenant, count: int) -> Callable[[], list[float]]:
    """The same rows by one bare statement each, past Django and row level security."""

    def job() -> list[float]:
        times = []
        given = {"class": CLASS, "site": site.pk, "tenant": tenant.pk}
        with psycopg.connect(databases.url_of("neo_owner", database), autocommit=True) as link:
            for _number in range(count):
                began = time.perf_counter()
                link.execute(PLAIN, given)
                times.append(time.perf_counter() - began)
        return times

    return job


def measured(what: str, jobs: Sequence[Callable[[], list[float]]]) -> float:
    """Run the jobs together, print the rate and the latencies; the rate per second."""
    began = time.perf_counter()
    results: list[Any] = together(jobs)
    spent = time.perf_counter() - began
    for result in results:
        if isinstance(result, Exception):
            raise result
    times = sorted(1000 * one for result in results for one in result)
    rate = len(times) / spent
    print(
        f"{what:<44}{rate:8.0f}/s   p50 {statistics.median(times):6.1f} ms"
        f"   p95 {times[int(len(times) * 0.95)]:6.1f} ms   max {times[-1]:6.1f} ms"
    )
    return rate


def shares(quotes: list[UUID]) -> list[list[UUID]]:
    """The quotes in as many parts as there are people."""
    return [quotes[start::TOGETHER] for start in range(TOGETHER)]


def race(tenant: Tenant) -> None:
    """64 at one moment for 8 nodes."""
    apart(empty)
    apart(leave_eight)
    quotes = apart(lambda: quoted(tenant, 64))
    began = time.perf_counter()
    results = together([placing(tenant, [quote]) for quote in quotes])
    spent = time.perf_counter() - began
    won = sum(isinstance(one, list) for one in results)
    lost = sum(isinstance(one, OutOfCapacity) for one in results)
    nodes = apart(lambda: Allocation.objects.values("node").distinct().count())
    print(
        f"64 simultaneous orders for 8 nodes: {won} accepted on {nodes} nodes, {lost} refused for"
        f" lack of capacity, {64 - won - lost} otherwise, in {spent:.2f} s"
    )
    if (won, nodes, lost) != (8, 8, 56):
        raise SystemExit("the race went wrong")


def main() -> None:
    """Make a database, measure, drop it."""
    name = databases.copy(f"bench_{os.getpid()}")
    settings.DATABASES["default"].update(databases.entry(databases.url_of("neo_app", name)))
    connections["default"].settings_dict.update(settings.DATABASES["default"])
    try:
        site, tenant = apart(lambda: open_shop(COUNT))
        quotes = apart(lambda: quoted(tenant, 2 * COUNT))
        measured("orders, one at a time", [placing(tenant, quotes[:COUNT])])
        apart(empty)
        measured(
            f"orders, {TOGETHER} people of one tenant",
            [placing(tenant, part) for part in shares(quotes[COUNT:])],
        )
        for people in (1, TOGETHER):
            count = COUNT // people
            apart(empty)
            ours = measured(
                f"allocations, {people} at once", [allocating(site, tenant, count)] * people
            )
            apart(empty)
            bare = measured(
                f"the same rows by bare SQL, {people} at once",
                [plain(name, site, tenant, count)] * people,
            )
            print(f"{'':<44}{100 * ours / bare:7.0f} % of the plain SQL limit")
        race(tenant)
    finally:
        connections["default"].close()
        databases.drop(name)


if __name__ == "__main__":
    main()
