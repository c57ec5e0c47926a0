"""One test at a time has the lab's nodes and the product's processes."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from apps.tenancy.context import tenant_context
from tests.integration.provisioning.ironic import product as lab


@pytest.fixture
def product(own_database: Any, tmp_path: Path, worker_id: str) -> Iterator[lab.Product]:
    """Web and beat are running; the test starts the workers it wants. It runs inside the tenant."""
    with lab.product_on(own_database.name, tmp_path, worker_id) as made:
        tenant = lab.open_shop(made)
        made.start_beat()
        made.start_web()
        with tenant_context(tenant):
            yield made
