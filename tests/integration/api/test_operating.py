"""The operator's side by API alone: tenants, prices, hardware, runs, invoices."""

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.roles import Role
from apps.core import clock
from apps.invoicing import runs
from apps.orders import projections
from apps.orders.models import TenantLimit
from apps.provisioning.models import Run
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.api.program import Program
from tests.integration.inventory.builders import a_node
from tests.integration.provisioning.world import SITE, an_accepted_order, deliver
from tests.people import an_operator

SKU = "bm.h200.8x"


@pytest.fixture
def draft(console: Program, acme_apart: Any) -> dict[str, Any]:
    """A draft of one hour of eight GPUs at 4000 KRW."""
    with tenant_context(acme_apart):
        builders.move_clock("2026-03-09T00:00:00")
        builders.a_price(4000)
        builders.a_used_service("2026-03-10T00:00:00", "2026-03-10T01:00:00")
        projections.rebuild()
        builders.move_clock("2026-04-02T00:00:00")
    body = {"tenant": str(acme_apart.pk), "period": "2026-03"}
    found: dict[str, Any] = console.post("invoices", body)
    return found


def test_a_tenants_limits_are_shown_and_set(console: Program, acme_apart: Any) -> None:
    path = f"tenants/{acme_apart.pk}/limits"

    answer = console.ask("PUT", path, {"max_gpus": 16, "max_services": 2})

    assert answer.status_code == 200
    assert console.get(path) == {
        "tenant": str(acme_apart.pk),
        "max_gpus": 16,
        "max_services": 2,
    }
    assert TenantLimit.objects.get(tenant=acme_apart.pk).max_gpus == 16


def test_a_new_price_ends_the_running_one(shop: Any, console: Program) -> None:
    (book,) = console.get("price-books", kind="list", currency="KRW")["items"]
    path = f"price-books/{book['id']}/prices"
    start = (clock.now_seconds() + timedelta(days=31)).isoformat()

    made = console.post(path, {"sku": SKU, "amount": "4100.5", "effective_from": start})

    assert made["amount"] == {"amount": "4100.5", "currency": "KRW"}
    old = next(one for one in console.get(path)["items"] if one["id"] != made["id"])
    assert old["effective_to"] == made["effective_from"]


@pytest.mark.parametrize("amount", ["-1", "1.1234567", "a lot"])
def test_an_amount_that_is_none_is_refused(shop: Any, console: Program, amount: str) -> None:
    (book,) = console.get("price-books", kind="list")["items"]
    body = {"sku": SKU, "amount": amount, "effective_from": "2030-01-01T00:00:00Z"}

    problem = console.refused("POST", f"price-books/{book['id']}/prices", body, status=422)

    assert problem["field"] == "amount"


def test_a_catalog_is_tried_before_it_is_imported(shop: Any, console: Program) -> None:
    text = console.get("catalog")["text"]

    report = console.post("catalog/import", {"text": text, "dry_run": True}, status=200)

    assert report["is_dry_run"]
    assert report["counts"]["changed"] == report["counts"]["refused"] == 0


def test_a_site_is_paused_with_a_reason_and_goes_on(shop: Any, console: Program) -> None:
    paused = console.post(f"sites/{SITE}/pause", {"reason": "power work"}, status=200)

    assert (paused["status"], paused["status_reason"]) == ("paused", "power work")
    assert "password" not in paused
    assert console.post(f"sites/{SITE}/resume", status=200)["status"] == "active"


def test_a_node_is_kept_out_of_the_pool_and_its_ticket_closed(shop: Any, console: Program) -> None:
    node = a_node(shop)

    kept = console.post(f"nodes/{node.pk}/quarantine", {"reason": "fan noise"}, status=200)

    assert kept["status"] == "quarantined"
    (ticket,) = console.get("tickets", node=str(node.pk), is_open="true")["items"]
    closed = console.post(f"tickets/{ticket['id']}/close", {"resolution": "new fan"}, status=200)
    assert closed["closed_at"]
    (event,) = console.get(f"nodes/{node.pk}/events")["items"]
    assert (event["verb"], event["reason"]) == ("quarantine", "fan noise")


def test_the_fleet_is_counted(shop: Any, console: Program) -> None:
    (row,) = console.get("fleet")["items"]

    assert (row["site"], row["total"], row["free"]) == (SITE, 2, 2)


def test_a_run_shows_its_steps_and_is_undone_by_a_person(
    shop: Any, console: Program, acme_apart: Any
) -> None:
    with tenant_context(acme_apart):
        an_accepted_order()
    deliver()
    run = Run.objects.get()

    steps = console.get(f"runs/{run.pk}/steps")["items"]
    undone = console.post(f"runs/{run.pk}/undo", {"reason": "wrong image"}, status=202)

    assert [step["status"] for step in steps] == ["pending"] * len(steps)
    assert undone["status"] == "undoing"
    kinds = [event["kind"] for event in console.get(f"runs/{run.pk}/events")["items"]]
    assert "created" in kinds


def test_what_an_auditor_may_not_do_is_refused(shop: Any, platform: None) -> None:
    auditor = Program.signed_in(an_operator(Role.AUDITOR), side="console")

    assert auditor.get("invoices")["items"] == []
    problem = auditor.refused("POST", f"sites/{SITE}/pause", {"reason": "x"}, status=403)
    assert "site.manage" in problem["detail"]


def test_a_draft_is_issued_explained_and_credited(draft: dict[str, Any], console: Program) -> None:
    path = f"invoices/{draft['id']}"
    assert draft["total"] == {"amount": "35200", "currency": "KRW"}

    issued = console.post(f"{path}/issue", status=200)
    assert issued["status"] == "issued"
    assert console.post(f"{path}/issue", status=200)["number"] == issued["number"]

    (line,) = console.get(f"{path}/lines")["items"]
    why = console.get(f"{path}/lines/{line['id']}/explain")
    assert why["gpu_seconds"] == line["gpu_seconds"] == 8 * 3600
    assert why["price"]["amount"] == {"amount": "4000", "currency": "KRW"}

    body = {"invoice": draft["id"], "line_ids": [line["id"]], "reason": "outage"}
    note = console.post("credit-notes", body)
    assert note["total"] == {"amount": "-35200", "currency": "KRW"}
    assert [one["id"] for one in console.get("credit-notes")["items"]] == [note["id"]]


def test_a_repeated_credit_is_given_once(draft: dict[str, Any], console: Program) -> None:
    console.post(f"invoices/{draft['id']}/issue", status=200)
    (line,) = console.get(f"invoices/{draft['id']}/lines")["items"]
    body = {"invoice": draft["id"], "line_ids": [line["id"]], "reason": "outage"}

    notes = {console.post("credit-notes", body, idempotency_key="c")["id"] for _ in range(2)}

    assert len(notes) == 1
    assert len(console.get("credit-notes")["items"]) == 1


def test_closing_a_month_drafts_every_tenant_of_the_currency(
    draft: dict[str, Any], console: Program
) -> None:
    asked = {"period": "2026-03", "currency": "KRW"}

    run = console.post("invoice-runs", asked, status=202)
    assert {"period": run["period"], "currency": run["currency"]} == asked
    with platform_context():
        runs.work(seconds=60)

    path = f"invoice-runs/{run['id']}"
    assert console.get(path)["status"] == "review"
    (row,) = [one for one in console.get(f"{path}/tenants")["items"] if one["document"]]
    assert (row["tenant_name"], row["status"]) == ("Acme AI", "drafted")
    assert (row["document"], row["total"]) == (draft["id"], draft["total"])
    assert console.post(f"{path}/issue", {}, status=202) == {"tenants": 1}


def test_a_draft_is_not_the_customers_to_see(draft: dict[str, Any], acme_apart: Any) -> None:
    with tenant_context(acme_apart):
        customer = Program.of(builders.a_person())
        customer.refused("GET", f"invoices/{draft['id']}", status=404)
        assert customer.get("invoices")["items"] == []


def test_issued_invoices_are_downloaded_as_csv(draft: dict[str, Any], console: Program) -> None:
    number = console.post(f"invoices/{draft['id']}/issue", status=200)["number"]

    answer = console.ask("GET", "invoices/csv?period=2026-03")

    text = b"".join(answer.streaming_content)
    assert answer["Content-Type"].startswith("text/csv")
    assert text.startswith(b"\xef\xbb\xbf")
    assert number.encode() in text
