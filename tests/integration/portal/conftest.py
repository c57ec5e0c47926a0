"""The shop every portal test begins with."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.integration.portal.shop import Shop, a_shop
from tests.people import Browser, a_browser


@pytest.fixture
def shop(acme: Any) -> Shop:
    """A shop, and the test runs in the tenant acme that buys there."""
    return a_shop()


@pytest.fixture
def browser(shop: Shop) -> Browser:
    """The owner's browser."""
    return a_browser(user=shop.owner)


@pytest.fixture
def asks_at_most(browser: Browser) -> Callable[[int], AbstractContextManager[None]]:
    """What happens inside asks the database at most so often; switching sides is no question."""
    browser.get("/account/login/")  # so that the host is known, as it mostly is

    @contextmanager
    def limited(most: int) -> Iterator[None]:
        with CaptureQueriesContext(connection) as asked:
            yield
        questions = [one["sql"] for one in asked if not one["sql"].startswith("SET ")]
        assert len(questions) <= most, "\n".join(questions)

    return limited
