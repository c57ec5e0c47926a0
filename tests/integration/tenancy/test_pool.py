"""Web processes share connections in a pool, and tenants never meet there (case S01)."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import psycopg
import pytest
from django.db import connection, connections, transaction

from apps.accounts.models import Project
from apps.core.models import WorkPending
from apps.tenancy.context import platform_context, tenant_context
from neocloud.pool import forget_tenant

REQUESTS, THREADS = 200, 8


@pytest.fixture
def pooled(own_database) -> Iterator[None]:
    """The pool of the web settings, with one connection, so that everybody must share it."""
    options = connections["default"].settings_dict["OPTIONS"]
    connections["default"].close()
    options["pool"] = {"min_size": 1, "max_size": 1, "timeout": 30, "reset": forget_tenant}
    yield
    connections["default"].close()
    connections["default"].close_pool()
    del options["pool"]


def _rows(own_database, table: str) -> int:
    with own_database.connect("neo_owner") as owner:
        return owner.execute(f"SELECT count(*) FROM {table}").fetchone()[0]


def _roll_back(name: str) -> None:
    with suppress(ZeroDivisionError), transaction.atomic():
        Project.objects.create(name=name)
        raise ZeroDivisionError


def test_two_tenants_on_one_pooled_connection_never_meet(own_database, pooled):
    tenants = {"acme": own_database.tenant("acme"), "globex": own_database.tenant("globex")}
    expected = {"acme": "111", "globex": "222"}
    for slug, tenant in tenants.items():
        with tenant_context(tenant):
            Project.objects.create(name="ORD-1", description=expected[slug])
    connection.close()
    start = threading.Barrier(THREADS)

    def serve(worker: int) -> list[tuple[str, str]]:
        start.wait()
        seen = []
        for number in range(REQUESTS // THREADS):
            slug = ("acme", "globex")[(worker + number) % 2]
            with tenant_context(tenants[slug]):
                read = Project.objects.get(name="ORD-1").description
                for part in "ab":
                    with transaction.atomic():
                        Project.objects.create(name=f"{worker}-{number}-{part}")
                        if number % 7 == 0:
                            _roll_back(f"lost {worker}-{number}-{part}")
            seen.append((expected[slug], read))
            connection.close()  # the end of a request gives it back
        return seen

    with ThreadPoolExecutor(THREADS) as pool:
        seen = [pair for pairs in pool.map(serve, range(THREADS)) for pair in pairs]
    assert len(seen) == REQUESTS
    assert [pair for pair in seen if pair[0] != pair[1]] == []
    assert _rows(own_database, "t_acme.accounts_project") == 1 + REQUESTS
    assert _rows(own_database, "t_globex.accounts_project") == 1 + REQUESTS


def test_a_connection_given_back_finds_no_table_and_is_nobody(own_database, pooled):
    acme = own_database.tenant("acme")
    with tenant_context(acme):
        WorkPending.objects.create(kind="k", tenant=acme.pk)
    connection.close()
    connection.ensure_connection()
    raw = connection.connection  # past the wrapper that would set the search path
    with pytest.raises(psycopg.errors.UndefinedTable):
        raw.execute("SELECT * FROM accounts_project")
    raw.rollback()
    assert raw.execute("SELECT count(*) FROM public.core_workpending").fetchone()[0] == 0


def test_a_connection_given_back_inside_a_broken_transaction_is_clean_again(own_database, pooled):
    connection.ensure_connection()
    raw = connection.connection
    raw.autocommit = False
    with pytest.raises(psycopg.errors.UndefinedTable):
        raw.execute("SELECT * FROM no_such_table")
    forget_tenant(raw)
    assert raw.execute("SHOW search_path").fetchone()[0] == '""'
    raw.rollback()
    raw.autocommit = True
    with platform_context():
        assert not WorkPending.objects.exists()
