"""A database where the work of racing callers is committed."""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.racing import committed_database


@pytest.fixture
def committed(django_db_setup: None, django_db_blocker: Any, worker_id: str) -> Iterator[None]:
    """Threads of `tests.racing` meet in a copy of their own."""
    with django_db_blocker.unblock(), committed_database(f"storm_{worker_id}_{os.getpid()}"):
        yield
