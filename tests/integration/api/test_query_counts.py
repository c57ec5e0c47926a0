"""Lists ask the database the same number of times, however long they are: at most 12."""

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from apps.audit import services as audit
from apps.provisioning import services as provisioning
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.api.program import Program
from tests.integration.inventory.builders import a_node, a_site
from tests.integration.provisioning.world import a_fake_site, an_accepted_order

MOST = 12


def statements(program: Program, path: str) -> int:
    """How many statements a list takes, once the key's last use is noted."""
    program.get("me")
    with CaptureQueriesContext(connection) as found:
        program.get(path)
    return len(found)


def a_tenant_full_of_things() -> None:
    """One more of everything a tenant has."""
    person, project = builders.a_person(), builders.a_project()
    builders.a_used_service(project=project, person=person)
    audit.record(person, "test.done", project)


@pytest.mark.parametrize(
    "path",
    [
        "access-keys", "audit-events", "images", "invoices", "members", "notices", "offerings",
        "orders", "projects", "quotas", "quotes", "services", "ssh-keys",
    ],
)  # fmt: skip
def test_a_tenants_lists_take_few_statements(shop: Any, program: Program, path: str) -> None:
    a_tenant_full_of_things()
    before = statements(program, path)

    for _more in range(5):
        a_tenant_full_of_things()

    assert statements(program, path) == before <= MOST


@pytest.mark.parametrize(
    "path",
    [
        "access-keys", "allocations", "audit-events", "credit-notes", "fleet", "gpus", "invoices",
        "nodes", "notices", "offerings", "orders", "price-books", "runs", "services", "sites",
        "tenants", "tickets",
    ],
)  # fmt: skip
def test_the_operators_lists_take_few_statements(
    shop: Any, console: Program, globex: Any, path: str
) -> None:
    before = statements(console, path)

    with platform_context():
        for number in range(5):
            a_node(a_site(f"more-{number}"))
    assert statements(console, path) <= MOST
    assert statements(console, path) - before <= 1


def test_orders_and_services_of_all_tenants_take_few_statements(
    shop: Any, console: Program, acme_apart: Any
) -> None:
    before = [statements(console, path) for path in ("orders", "services", "runs", "allocations")]

    with tenant_context(acme_apart):
        an_accepted_order()
        an_accepted_order(name="serve")

    after = [statements(console, path) for path in ("orders", "services", "runs", "allocations")]
    assert max(after) <= MOST
    assert all(now - then <= 1 for now, then in zip(after, before, strict=True))


def test_an_order_takes_few_statements_whatever_its_number_of_servers(
    db: None, program: Program
) -> None:
    with platform_context():
        a_fake_site(nodes=5)
    one = an_accepted_order(name="one", quantity=1)
    four = an_accepted_order(name="four", quantity=4)
    for order in (one, four):
        for service in order.services.all():
            provisioning.start_run(service_id=service.pk)

    assert statements(program, f"orders/{four.pk}") == statements(program, f"orders/{one.pk}")
    assert program.get(f"orders/{four.pk}")["services"][3]["progress"]["step"] == 1
