"""Approvals, starts and ends by API alone."""

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.roles import Role
from apps.core import clock
from apps.orders.models import Approval, Service
from tests import builders
from tests.integration.api.program import Program
from tests.integration.provisioning import world

SKU = "bm.h200.8x"
DAY = timedelta(days=1)
POLICY = {"approval_from_gpus": 8, "approval_hours": 24, "longest_days": None}


@pytest.fixture
def member(shop: Any, program: Program) -> Program:
    """A program of somebody whose orders need approval."""
    program.ask("PUT", "order-policy", POLICY)
    return Program.of(builders.a_person(role=Role.MEMBER))


@pytest.fixture
def project(program: Program) -> str:
    """A project to order in."""
    return str(program.post("projects", {"name": "vision"})["id"])


def an_order_of(program: Program, project: str, **term: Any) -> Any:
    quote = program.post("quotes", {"offering": SKU, "site": world.SITE, "quantity": 1} | term)
    body = {
        "quote": quote["id"], "project": project, "name": "train", "ssh_public_keys": [world.KEY],
    }  # fmt: skip
    return program.post("orders", body, status=202)


def test_an_order_waits_is_approved_and_shows_who_said_so(
    program: Program, member: Program, project: str
) -> None:
    order = an_order_of(member, project)
    assert order["status"] == "placed"
    assert order["standing"]["code"] == "waiting_for_approval"
    assert order["expected_at"] == "unknown"
    assert order["approval"]["status"] == "waiting"

    (waiting,) = program.get("approvals", status="waiting")["items"]
    member.refused("POST", f"approvals/{waiting['id']}/approve", {}, status=403)
    answer = program.post(f"approvals/{waiting['id']}/approve", {"reason": "go on"}, status=200)
    assert (answer["status"], answer["reason"]) == ("approved", "go on")
    shown = member.get(f"orders/{order['id']}")
    assert shown["status"] == "accepted"
    assert shown["approval"]["decided_by"]


def test_a_refusal_needs_a_reason(program: Program, member: Program, project: str) -> None:
    order = an_order_of(member, project)
    question = f"approvals/{order['approval']['id']}/refuse"
    assert program.refused("POST", question, {}, status=422)["field"] == "reason"
    program.post(question, {"reason": "too expensive"}, status=200)
    shown = member.get(f"orders/{order['id']}")
    assert (shown["status"], shown["status_reason"]) == ("refused", "too expensive")
    assert Approval.objects.get().status == "refused"


def test_the_policy_is_read_by_all_and_set_by_those_who_approve(
    program: Program, member: Program
) -> None:
    assert member.get("order-policy")["approval_from_gpus"] == 8
    assert member.ask("PUT", "order-policy", POLICY).status_code == 403
    refused = program.refused("PUT", "order-policy", POLICY | {"longest_days": 100_000}, status=422)
    assert refused["field"] == "longest_days"


def test_an_order_is_scheduled_moved_and_ends(program: Program, shop: Any, project: str) -> None:
    start = (clock.now() + DAY).replace(microsecond=0)
    term = {"starts_at": start.isoformat(), "ends_at": (start + DAY).isoformat()}
    order = an_order_of(program, project, **term)
    assert order["status"] == "scheduled"
    assert order["standing"]["code"] == "scheduled"
    assert order["expected_at"] == order["starts_at"]
    moved = program.ask(
        "PUT", f"orders/{order['id']}/schedule", {"starts_at": None, "ends_at": term["ends_at"]}
    )
    assert moved.status_code == 202
    assert moved.json()["status"] == "accepted"
    service = Service.objects.get()
    assert service.ends_at == start + DAY
    later = (start + 2 * DAY).isoformat()
    shown = program.post(f"services/{service.pk}/extend", {"ends_at": later}, status=200)
    assert shown["ends_at"].startswith(later[:16])
    program.refused(
        "POST", f"services/{service.pk}/extend", {"ends_at": "2020-01-01T00:00:00Z"}, status=422
    )
