"""What every test may lean on: databases, tenants, people, a quiet network."""

import os
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connections

from tests import databases
from tests.needs import IRONIC_ANSWERS, needs


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Before any fixture: what the markers `browser` and `ironic` promise is there."""
    needs(mark.name for mark in item.iter_markers())


@pytest.fixture(autouse=True)
def _loopback_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests reach loopback and nothing else."""
    real = socket.socket.connect

    def connect(self: socket.socket, address: Any) -> Any:
        if isinstance(address, tuple) and not str(address[0]).startswith(
            ("127.", "::1", "localhost")
        ):
            raise RuntimeError(f"a test reached out to {address[0]}")
        return real(self, address)

    monkeypatch.setattr(socket.socket, "connect", connect)


@pytest.fixture(autouse=True)
def _ironic_answers(request: pytest.FixtureRequest) -> Iterator[None]:
    """Nobody crashes the lab's Ironic under a test; one with a product is alone with it anyway."""
    alone = "product" in request.fixturenames
    if alone or request.node.get_closest_marker("ironic") is None:
        yield
        return
    with psycopg.connect(databases.superuser_url(), autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock_shared(%s)", [IRONIC_ANSWERS])
        yield


@pytest.fixture(scope="session")
def django_db_setup(django_db_blocker: Any, worker_id: str) -> Iterator[None]:
    """A copy of the migrated template for this worker, opened as the app role."""
    name = databases.copy(f"{worker_id}_{os.getpid()}")
    connections["default"].settings_dict.update(databases.entry(databases.url_of("neo_app", name)))
    settings.DATABASES["default"].update(databases.entry(databases.url_of("neo_app", name)))
    yield
    with django_db_blocker.unblock():
        connections["default"].close()
    databases.drop(name)


@pytest.fixture(autouse=True)
def _nobody(request: pytest.FixtureRequest) -> Iterator[None]:
    """Each test begins and ends speaking for nobody, and forgets hosts and cached answers."""
    from django.core.cache import cache

    from apps.tenancy.context import NOBODY_SIDE, switch_to
    from apps.tenancy.middleware import forget_hosts

    switch_to(NOBODY_SIDE)
    forget_hosts()
    yield
    switch_to(NOBODY_SIDE)
    cache.clear()


@pytest.fixture
def platform(db: None) -> Iterator[None]:
    """The platform's side."""
    from apps.tenancy.context import platform_context

    with platform_context():
        yield


def _tenant(slug: str) -> Any:
    from apps.tenancy.context import platform_context
    from apps.tenancy.models import Tenant

    with platform_context():
        return Tenant.objects.get(slug=slug)


@pytest.fixture
def acme(db: None) -> Iterator[Any]:
    """The tenant acme (KRW), and the test runs in it."""
    from apps.tenancy.context import tenant_context

    with tenant_context(_tenant("acme")) as tenant:
        yield tenant


@pytest.fixture
def globex(db: None) -> Any:
    """Another tenant (USD); enter it with `tenant_context(globex)`."""
    return _tenant("globex")


@dataclass(frozen=True)
class OwnDatabase:
    """A database of one test's own, for what commits: races, seals, relays, workers."""

    name: str

    def tenant(self, slug: str) -> Any:
        """The tenant with that slug."""
        return _tenant(slug)

    def settle(self) -> None:
        """Wait until every transaction begun before now has ended, in other tests' databases too.

        Relay and sealer leave rows behind the oldest open transaction of the whole server alone.
        """
        with self.connect() as connection:
            (newest,) = connection.execute("SELECT pg_current_xact_id()::text::bigint").fetchone()
            for _wait in range(1500):
                (oldest,) = connection.execute(
                    "SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint"
                ).fetchone()
                if oldest > newest:
                    return
                connection.execute("SELECT pg_sleep(0.02)")
        raise AssertionError("another transaction of this server has been open for 30 s")

    def connect(self, role: str = "neo_app") -> Any:
        """Another connection to it, outside Django."""
        return psycopg.connect(databases.url_of(role, self.name), autocommit=True)


@pytest.fixture
def own_database(
    django_db_setup: None, django_db_blocker: Any, worker_id: str
) -> Iterator[OwnDatabase]:
    """A fresh copy of the template that the test may commit to; gone afterwards."""
    name = databases.copy(f"own_{worker_id}_{os.getpid()}")
    wrapper = connections["default"]
    wrapper.close()
    before = wrapper.settings_dict["NAME"], settings.DATABASES["default"]["NAME"]
    wrapper.settings_dict["NAME"] = settings.DATABASES["default"]["NAME"] = name
    with django_db_blocker.unblock():
        try:
            yield OwnDatabase(name)
        finally:
            for one in connections.all(initialized_only=True):
                one.close()
            wrapper.settings_dict["NAME"], settings.DATABASES["default"]["NAME"] = before
            databases.drop(name)
