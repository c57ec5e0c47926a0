"""Browsers and people of the walks."""

import os
import shutil
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, sync_playwright

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.tenancy.context import platform_context
from tests import people
from tests.e2e.person import Person

# The walks use the product's processes and the lab as the life tests do.
from tests.integration.provisioning.ironic.conftest import product  # noqa: F401
from tests.integration.provisioning.ironic.product import Product

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; without it the test is skipped, or fails where nothing may be skipped."""
    program = shutil.which("chromium")
    if program is None:
        if os.environ.get("REQUIRE_ALL"):
            pytest.fail("Chromium is not installed, and REQUIRE_ALL allows no skip")
        pytest.skip("Chromium is not installed")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def emails(product: Product) -> dict[str, str]:  # noqa: F811
    """Who walks; made before a browser runs, whose loop would give Django another connection."""
    owner = User.objects.get()
    owner.set_password(people.PASSWORD)
    owner.save()
    with platform_context():
        operator = people.a_person(Role.OPERATOR)
        finance = people.a_person(Role.FINANCE)
    product.start_worker()
    return {"owner": owner.email, "operator": operator.email, "finance": finance.email}


@pytest.fixture
def three_people(
    product: Product,  # noqa: F811
    emails: dict[str, str],
    chromium: Browser,
) -> Iterator[dict[str, Person]]:
    """An operator, the owner of acme and somebody of finance, each in a browser of their own."""
    made = {
        name: Person(chromium, "acme" if name == "owner" else "console", product.port, email)
        for name, email in emails.items()
    }
    yield made
    for person in made.values():
        person.leave()
