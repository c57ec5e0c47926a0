"""The same request with the same key has one effect and one answer."""

from typing import Any

from apps.accounts.models import AccessKey, Project
from apps.core.models import IdempotencyKey
from apps.orders.models import Order
from tests.integration.api.program import Program
from tests.integration.api.test_ordering import a_quote
from tests.integration.provisioning.world import KEY
from tests.people import a_person


def test_a_repeated_order_is_one_order_with_the_same_answer(shop: Any, program: Program) -> None:
    project = program.post("projects", {"name": "vision"})["id"]
    body = {
        "quote": a_quote(program)["id"],
        "project": project,
        "name": "train",
        "ssh_public_keys": [KEY],
    }

    first = program.ask("POST", "orders", body, idempotency_key="order-1")
    second = program.ask("POST", "orders", body, idempotency_key="order-1")

    assert (first.status_code, second.status_code) == (202, 202)
    assert second.json() == first.json()
    assert "Idempotency-Replayed" not in first
    assert second["Idempotency-Replayed"] == "true"
    assert Order.objects.count() == 1


def test_a_repeated_quote_is_one_quote(shop: Any, program: Program) -> None:
    body = {"offering": "bm.h200.8x", "site": shop.code, "quantity": 1}

    quotes = {program.post("quotes", body, idempotency_key="q")["id"] for _ in range(3)}

    assert len(quotes) == 1


def test_without_a_key_every_request_counts(shop: Any, program: Program) -> None:
    assert a_quote(program)["id"] != a_quote(program)["id"]


def test_the_same_key_with_another_body_is_a_conflict(program: Program) -> None:
    program.post("projects", {"name": "vision"}, idempotency_key="k")

    response = program.ask("POST", "projects", {"name": "speech"}, idempotency_key="k")

    assert response.status_code == 409
    assert response.json()["code"] == "idempotency_key_reused"
    assert not Project.objects.filter(name="speech").exists()


def test_keys_of_two_people_do_not_meet(program: Program) -> None:
    other = Program.of(a_person())

    program.post("projects", {"name": "vision"}, idempotency_key="k")
    other.post("projects", {"name": "speech"}, idempotency_key="k")

    assert Project.objects.count() == 2


def test_a_refused_request_leaves_its_key_free(program: Program) -> None:
    program.post("projects", {"name": "vision"})

    refused = program.ask("POST", "projects", {"name": "vision"}, idempotency_key="k")
    assert refused.status_code == 409

    assert not IdempotencyKey.objects.exists()
    program.post("projects", {"name": "speech"}, idempotency_key="k")


def test_a_malformed_key_is_refused(program: Program) -> None:
    response = program.ask("POST", "projects", {"name": "a"}, idempotency_key="x" * 201)

    assert response.status_code == 422
    assert response.json()["code"] == "idempotency_key_malformed"


def test_a_token_is_shown_once_and_never_kept(program: Program) -> None:
    first = program.post("access-keys", {"name": "ci"}, idempotency_key="k")
    second = program.post("access-keys", {"name": "ci"}, idempotency_key="k")

    assert first["token"]
    assert second == first | {"token": None}
    assert first["token"] not in str(IdempotencyKey.objects.get().answer)
    assert AccessKey.objects.filter(name="ci").count() == 1


def test_revoking_twice_with_a_key_answers_the_same(program: Program) -> None:
    key = program.post("access-keys", {"name": "ci"})["id"]

    answers = [
        program.ask("DELETE", f"access-keys/{key}", idempotency_key="gone").status_code
        for _ in range(2)
    ]

    assert answers == [204, 204]
