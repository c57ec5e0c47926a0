"""From offering to terminated service by API alone."""

from typing import Any
from uuid import UUID

import pytest

from apps.orders.models import Order, Service
from tests import builders
from tests.integration.api.program import Program
from tests.integration.provisioning.world import KEY, SITE, until_ready

SKU = "bm.h200.8x"


@pytest.fixture
def project(program: Program) -> str:
    """A project to order in."""
    return str(program.post("projects", {"name": "vision"})["id"])


def a_quote(program: Program, quantity: int = 1) -> dict[str, Any]:
    """Terms for some servers."""
    body = {"offering": SKU, "site": SITE, "quantity": quantity}
    found: dict[str, Any] = program.post("quotes", body)
    return found


def an_order_of(program: Program, project: str, **choices: Any) -> dict[str, Any]:
    """A confirmed quote for one server."""
    quote = a_quote(program, choices.pop("quantity", 1))
    body = {"quote": quote["id"], "project": project, "name": "train", "ssh_public_keys": [KEY]}
    found: dict[str, Any] = program.post("orders", body | choices, status=202)
    return found


def test_offerings_show_price_and_room(shop: Any, program: Program) -> None:
    (offering,) = program.get("offerings")["items"]

    assert offering["sku"] == SKU
    assert offering["unit_price"] == {"amount": "4000", "currency": "KRW"}
    assert offering["availability"] == [
        {"site": SITE, "site_name": "Fake-1", "free": 2, "total": 2}
    ]
    assert program.get(f"offerings/{SKU}") == offering


def test_an_offering_that_is_not_there_is_not_found(shop: Any, program: Program) -> None:
    program.refused("GET", "offerings/nothing", status=404)


def test_a_quote_holds_the_terms(shop: Any, program: Program) -> None:
    quote = a_quote(program, quantity=2)

    assert quote["unit_price"] == {"amount": "4000", "currency": "KRW"}
    assert quote["terms"]["hour_total"] == "64000"
    assert program.get(f"quotes/{quote['id']}") == quote


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"offering": "nothing"}, "offering"),
        ({"site": "nowhere"}, "site"),
        ({"quantity": 0}, "quantity"),
        ({"quantity": 1_000_000}, "quantity"),
        ({"currency": "USD"}, "currency"),
    ],
)
def test_bad_wishes_name_the_field(
    shop: Any, program: Program, change: dict[str, Any], field: str
) -> None:
    body = {"offering": SKU, "site": SITE, "quantity": 1} | change

    problem = program.refused("POST", "quotes", body, status=422)

    assert problem["field"] == field


def test_a_malformed_ssh_key_is_refused(shop: Any, program: Program, project: str) -> None:
    quote = a_quote(program)
    body = {"quote": quote["id"], "project": project, "name": "train", "ssh_public_keys": ["x"]}

    problem = program.refused("POST", "orders", body, status=422)

    assert problem["code"] == "ssh_key_malformed"
    assert not Order.objects.exists()


def test_placing_answers_at_once_with_what_goes_on(
    shop: Any, program: Program, project: str
) -> None:
    order = an_order_of(program, project)

    assert order["status"] == "accepted"
    assert order["progress"] == {
        "ready": 0, "of": 1, "queue_place": None, "queue_expected_at": None,
        "queue_expires_at": None,
    }  # fmt: skip

    (service,) = order["services"]
    assert service["status"] == "provisioning"
    assert service["condition"] == "working"


def test_the_expected_time_is_unknown_until_it_is_known(
    shop: Any, program: Program, project: str
) -> None:
    placed = an_order_of(program, project)

    order = program.get(f"orders/{placed['id']}")

    assert order["expected_at"] in (None, "unknown")


def test_too_few_servers_are_a_clear_refusal(shop: Any, program: Program, project: str) -> None:
    quote = a_quote(program, quantity=3)
    body = {"quote": quote["id"], "project": project, "name": "train", "ssh_public_keys": [KEY]}

    problem = program.refused("POST", "orders", body, status=409)

    assert problem["code"] == "out_of_capacity"


def test_a_queued_order_tells_its_place(shop: Any, program: Program, project: str) -> None:
    order = an_order_of(program, project, quantity=3, if_unavailable="queue")

    assert order["status"] == "queued"
    assert order["progress"]["queue_place"] == 1
    assert order["expected_at"] == "unknown"


def test_an_order_can_be_cancelled_before_it_is_ready(
    shop: Any, program: Program, project: str
) -> None:
    order = an_order_of(program, project)

    cancelled = program.post(f"orders/{order['id']}/cancel", {"reason": "mistake"}, status=202)

    assert cancelled["status"] == "cancelled"
    assert cancelled["status_reason"] == "mistake"
    assert cancelled["services"][0]["status"] == "deleting"


def test_a_ready_service_shows_access_health_history_and_use(
    shop: Any, program: Program, project: str
) -> None:
    placed = an_order_of(program, project)

    service = until_ready(Order.objects.get(pk=placed["id"]))

    way = program.get(f"services/{service.pk}/access")
    assert way["ssh_command"] == f"ssh {service.login}@{service.address}"
    health = program.get(f"services/{service.pk}/health")
    assert health["status"] == "active"
    assert health["evidence"]
    assert all(item["ok"] is not False for item in health["evidence"])
    states = program.get(f"services/{service.pk}/state-history")["items"]
    assert [state["state"] for state in states] == ["provisioning", "active"]
    usage = program.get(
        f"services/{service.pk}/usage", since="2020-01-01T00:00:00Z", until="2100-01-01T00:00:00Z"
    )
    assert {row["state"] for row in usage["items"]} <= {"active"}


def test_terminating_needs_the_name(shop: Any, program: Program, project: str) -> None:
    service = an_order_of(program, project)["services"][0]
    path = f"services/{service['id']}/terminate"

    problem = program.refused("POST", path, {"confirm_name": "another"}, status=422)

    assert problem["field"] == "confirm_name"
    ended = program.post(path, {"confirm_name": service["name"], "reason": "done"}, status=202)
    assert ended["status"] == "deleting"


def test_a_protected_service_is_not_terminated(shop: Any, program: Program, project: str) -> None:
    service = an_order_of(program, project)["services"][0]
    path = f"services/{service['id']}"

    assert program.ask("PUT", f"{path}/protection", {"is_protected": True}).status_code == 200
    problem = program.refused(
        "POST", f"{path}/terminate", {"confirm_name": service["name"]}, status=409
    )

    assert problem["code"] == "termination_protected"


def test_lists_are_narrowed_by_their_parameters(shop: Any, program: Program, project: str) -> None:
    order = an_order_of(program, project)

    assert len(program.get("orders", status="accepted")["items"]) == 1
    assert program.get("orders", status="queued")["items"] == []
    assert len(program.get("services", order=order["id"], status="provisioning")["items"]) == 1
    assert program.get("services", site="elsewhere")["items"] == []


def test_instants_are_utc_and_money_is_text(shop: Any, program: Program, project: str) -> None:
    order = an_order_of(program, project)

    assert order["created_at"].endswith("Z")
    assert order["unit_price"] == {"amount": "4000", "currency": "KRW"}


def test_the_cost_so_far_is_what_the_invoice_would_be(acme: Any, program: Program) -> None:
    builders.a_price(4000)
    builders.a_used_service("2026-03-10T00:00:00", "2026-03-10T01:00:00")
    builders.move_clock("2026-03-20T00:00:00")

    cost = program.get("usage")

    assert cost["subtotal"] == {"amount": "32000", "currency": "KRW"}
    assert cost["total"] == {"amount": "35200", "currency": "KRW"}


def test_another_tenants_things_are_not_found(
    shop: Any, program: Program, project: str, globex: Any
) -> None:
    from apps.tenancy.context import tenant_context
    from tests.people import a_person

    order = an_order_of(program, project)
    service = UUID(order["services"][0]["id"])

    with tenant_context(globex):
        other = Program.of(a_person(), side="globex")
        for path in (f"orders/{order['id']}", f"quotes/{order['quote']}", f"services/{service}"):
            other.refused("GET", path, status=404)
        body = {"confirm_name": "train"}
        other.refused("POST", f"services/{service}/terminate", body, status=404)
        other.refused("POST", f"orders/{order['id']}/cancel", {}, status=404)

    assert Service.objects.get(pk=service).state == "provisioning"
