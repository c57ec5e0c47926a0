"""How fast a month is rated: intervals per second, and the share of the plain SQL limit of the run.

Run as `python -m benchmarks.rating [INTERVALS ...]`.

The limit is the plainest set-based SQL that gives the same lines from the same facts: each fact
lasts until the next one of its service, charged ones are cut by the prices, summed and rounded. It
knows of no corrections, late facts, currencies, contracts, bases, nodes or fixed prices, and it
stores five columns. The product's lines are compared with it.
"""

import logging
import os
import resource
import sys
import time
from collections.abc import Callable

import django
import psycopg

PER_SERVICE = 1000
MONTH, PERIOD = "2024-03-01T00:00:00+09:00", "2024-03"

_FACTS = """
INSERT INTO orders_fact
    (id, service_id, version, state, start_at, recorded_at, source, source_key, cause)
SELECT uuidv7(), s.id, 1, CASE WHEN mod(n, 2) = 0 THEN 'active' ELSE 'suspended' END, at, at,
       'live', s.id || '-' || n, 'benchmark'
FROM orders_service s
CROSS JOIN generate_series(0, %(last)s) AS n
CROSS JOIN LATERAL (SELECT %(month)s::timestamptz + n * %(step)s * interval '1 second' AS at) t
"""
_PLAIN = """
CREATE TEMP TABLE plain AS
SELECT service_id, price_id, amount AS unit_price, 8 * seconds AS gpu_seconds,
       round(8 * seconds * amount / 3600) AS amount
FROM (
    SELECT f.service_id, p.id AS price_id, p.amount,
           sum(date_part('epoch', least(f.end_at, p.until) - greatest(f.start_at, p.since))::bigint)
               AS seconds
    FROM (
        SELECT service_id, state, greatest(start_at, %(since)s) AS start_at,
               least(lead(start_at) OVER (PARTITION BY service_id ORDER BY start_at), %(until)s)
                   AS end_at
        FROM orders_fact WHERE start_at < %(until)s
    ) f
    JOIN (SELECT id, amount, effective_from AS since, coalesce(effective_to, 'infinity') AS until
          FROM public.catalog_price) p ON f.start_at < p.until AND f.end_at > p.since
    WHERE f.state = 'active' AND f.start_at < f.end_at
    GROUP BY f.service_id, p.id, p.amount
) s
"""
_DIFFERENT = """
SELECT count(*) FROM (
    SELECT service_id, unit_price, gpu_seconds, amount FROM plain
    EXCEPT
    SELECT service_id, unit_price, gpu_seconds, amount FROM invoicing_documentline
    WHERE document_id = %(document)s
) d
"""


def main(sizes: list[int]) -> None:
    """Measure each size on a database copy of its own."""
    django.setup()
    logging.disable(logging.INFO)
    from django.conf import settings
    from django.db import connections

    from tests import databases

    for size, per_service in [*((size, PER_SERVICE) for size in sizes), (2000, 2)]:
        name = databases.copy(f"bench_rating_{os.getpid()}")
        entry = databases.entry(databases.url_of("neo_app", name))
        connections["default"].settings_dict.update(entry)
        settings.DATABASES["default"].update(entry)
        try:
            measure(size, per_service)
        finally:
            connections["default"].close()
            databases.drop(name)


def measure(size: int, per_service: int = PER_SERVICE) -> None:
    """Fill one tenant with that many charged intervals, rate it, and print one line."""
    from django.db import connection

    from apps.core.periods import billing_month
    from apps.invoicing import exports, services
    from apps.tenancy.context import platform_context, tenant_context
    from apps.tenancy.models import Tenant
    from tests import databases
    from tests.builders import a_price, a_service, an_order

    with platform_context():
        tenant = Tenant.objects.get(slug="acme")
    per_service = min(per_service, size)
    step = 30 * 86400 // (2 * per_service)
    with tenant_context(tenant):
        a_price(4000, start="2024-01-01T00:00:00", end="2024-03-15T00:00:00")
        a_price(3900, start="2024-03-15T00:00:00")
        order = an_order()
        for ordinal in range(1, size // per_service + 1):
            a_service(order=order, ordinal=ordinal)
        with connection.cursor() as cursor:
            asked = {"month": MONTH, "step": step, "last": 2 * per_service - 1}
            cursor.execute(_FACTS, asked)
        with psycopg.connect(databases.superuser_url(connection.settings_dict["NAME"])) as owner:
            owner.execute("ANALYZE")
        month = billing_month(PERIOD, tenant.billing_timezone)
        edges = {"since": month.start, "until": month.end}
        limit = best_of_three(lambda: plain(edges))
        drafted = best_of_three(
            lambda: services.draft_invoice(tenant=tenant, period=PERIOD, actor=None)
        )
        draft = services.draft_invoice(tenant=tenant, period=PERIOD, actor=None)
        assert draft is not None
        lines = draft.lines.count()
        with connection.cursor() as cursor:
            cursor.execute(_DIFFERENT, {"document": draft.pk})
            assert cursor.fetchone() == (0,), "the plain SQL gives other lines"
        begun, rows, csv_bytes = time.perf_counter(), 0, 0
        issued = services.issue_invoice(document_id=draft.pk, actor=None)
        issuing = time.perf_counter() - begun
        begun = time.perf_counter()
        for chunk in exports.usage_csv(document_id=issued.pk):
            rows, csv_bytes = rows + chunk.count(b"\n"), csv_bytes + len(chunk)
        streaming = time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    intervals = size // per_service * per_service
    print(
        f"{intervals:>9,} intervals  {2 * intervals:>9,} facts  {lines:>6,} lines   "
        f"limit {intervals / limit:>9,.0f}/s   draft {drafted:6.2f} s = "
        f"{intervals / drafted:>8,.0f}/s   {limit / drafted:5.1%} of the limit\n"
        f"{'':>9} {size // per_service:>10,} services  issued in {issuing:.2f} s   CSV of usage "
        f"{rows - 1:,} rows, {csv_bytes / 1e6:.0f} MB, {rows / streaming:,.0f} rows/s, "
        f"peak memory {memory} MB"
    )


def plain(edges: dict[str, object]) -> None:
    """The lines of the month by the plainest SQL."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE IF EXISTS pg_temp.plain")
        cursor.execute(_PLAIN, edges)


def best_of_three(work: Callable[[], object]) -> float:
    """Seconds of the quickest of three runs."""
    times = []
    for _run in range(3):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


if __name__ == "__main__":
    main([int(argument) for argument in sys.argv[1:]] or [10_000, 100_000, 1_000_000])
