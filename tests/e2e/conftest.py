"""Browsers and people of the walk, and the product they walk through."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

from apps.accounts.roles import Role
from apps.tenancy.context import platform_context, tenant_context
from tests import builders, needs, people
from tests.e2e.person import Person
from tests.integration.provisioning.ironic import product as lab

ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
ODD_PRICE = ('"5400"', '"5425"')  # so that hardly any number of seconds comes out even
SIDES = {"operator": "console", "owner": "acme", "finance": "console"}


@pytest.fixture
def product(own_database: Any, tmp_path: Path, worker_id: str) -> Iterator[lab.Product]:
    """Web, worker and beat run; the lab is written down as a site, but nobody has asked it yet."""
    with lab.product_on(
        own_database.name, tmp_path, worker_id, resource_class="gpu.h200.8x"
    ) as made:
        lab.set_up_site(made, catalogue=lab.CATALOGUE.read_text().replace(*ODD_PRICE))
        made.start_beat()
        made.start_worker()
        made.start_web()
        yield made


@pytest.fixture
def emails(product: lab.Product, own_database: Any) -> dict[str, str]:
    """Who walks; made before a browser runs, whose loop would give Django another connection."""
    with tenant_context(own_database.tenant("acme")):
        owner = people.a_person(Role.OWNER)
        builders.a_project()
    with platform_context():
        operator = people.a_person(Role.OPERATOR)
        finance = people.a_person(Role.FINANCE)
    return {"owner": owner.email, "operator": operator.email, "finance": finance.email}


@pytest.fixture
def chromium() -> Iterator[Browser]:
    """Debian's Chromium; hosts under localhost resolve in it alone."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=needs.chromium(), args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def three_people(
    product: lab.Product, emails: dict[str, str], chromium: Browser
) -> Iterator[dict[str, Person]]:
    """An operator, the owner of acme and somebody of finance, each with a browser of their own."""
    made = {
        name: Person(chromium, f"http://{side}.localhost:{product.port}", emails[name])
        for name, side in SIDES.items()
    }
    yield made
    for person in made.values():
        person.leave()
