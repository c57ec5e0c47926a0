"""The console's world, and staff to look at it."""

from collections.abc import Iterator
from typing import Any

import pytest

from apps.accounts.roles import Role
from apps.tenancy.context import platform_context
from tests.integration.console.operator import World, a_world
from tests.people import Browser, a_browser, an_operator


@pytest.fixture
def world(acme: Any) -> Iterator[World]:
    """A tenant that may buy; the test runs on the platform's side."""
    made = a_world(acme)
    with platform_context():
        yield made


@pytest.fixture
def browser(world: World) -> Browser:
    """The platform administrator's browser."""
    return staff(Role.PLATFORM_ADMIN)


def staff(role: str) -> Browser:
    """The browser of somebody with that role."""
    return a_browser("console", user=an_operator(role))
