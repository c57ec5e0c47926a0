"""One test at a time has the lab's nodes and the product's processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from apps.tenancy.context import tenant_context
from tests import databases
from tests.integration.provisioning.ironic import product as lab


@pytest.fixture
def product(own_database: Any, tmp_path: Path, worker_id: str) -> Iterator[lab.Product]:
    """Web and beat are running; the test starts the workers it wants. It runs inside the tenant."""
    number = 2 + int(worker_id.removeprefix("gw")) % 12 if worker_id.startswith("gw") else 2
    with psycopg.connect(databases.superuser_url(), autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(7303)")  # the lab's nodes are shared by all tests
        lab.make_free()
        made = lab.Product(own_database.name, tmp_path, broker_database=number)
        try:
            tenant = lab.open_shop(made)
            made.start_beat()
            made.start_web()
            with tenant_context(tenant):
                yield made
        finally:
            made.stop()
            lab.make_free()
