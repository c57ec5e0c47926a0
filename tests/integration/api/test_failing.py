"""When work fails, by API alone: policies, hands, overrides and leaks."""

from typing import Any

import pytest

from apps.provisioning.models import Run
from apps.tenancy.context import tenant_context
from tests.integration.api.program import Program
from tests.integration.provisioning.world import SITE, an_accepted_order, deliver

SKU = "bm.h200.8x"
WHY = {"reason": "agreed in the weekly"}


@pytest.fixture
def run(shop: Any, console: Program, acme_apart: Any) -> Run:
    """A run that has just begun."""
    with tenant_context(acme_apart):
        an_accepted_order()
    deliver()
    return Run.objects.get()


def test_a_policy_is_set_where_it_is_to_apply_and_shown_with_its_source(
    shop: Any, console: Program
) -> None:
    body = {"site": SITE, "offering": SKU, "hold_hours": 3, **WHY}

    made = console.ask("PUT", "failure-policies", body)

    assert made.status_code == 200, made.content
    found = console.get("failure-policies/effective", site=SITE, offering=SKU)
    assert (found["policy"]["hold_hours"], found["decided_by"]["site"]) == (3, SITE)
    elsewhere = console.get("failure-policies/effective")
    assert (elsewhere["policy"]["hold_hours"], elsewhere["decided_by"]) == (24, None)
    gone = console.ask("POST", f"failure-policies/{found['policy']['id']}/remove", WHY)
    assert gone.status_code == 204
    assert console.get("failure-policies")["items"] == []


def test_nonsense_is_refused_with_the_field(shop: Any, console: Program) -> None:
    answer = console.refused("PUT", "failure-policies", {"on_refused": "queue", **WHY}, status=422)
    assert answer["field"] == "on_refused"


def test_a_run_is_taken_over_and_another_node_is_asked_for(run: Run, console: Program) -> None:
    held = console.post(f"runs/{run.pk}/take-over", WHY, status=202)
    assert held["status"] == "held"

    going = console.post(f"runs/{run.pk}/replace-node", {"blames_node": False, **WHY}, status=202)

    assert (going["status"], going["outcome"]) == ("undoing", "replace")


def test_only_what_may_be_vouched_for_is_and_leaks_are_listed(run: Run, console: Program) -> None:
    path = f"runs/{run.pk}/overrides"
    refused = console.refused("POST", path, {"evidence": "seen " * 10}, status=409)
    assert refused["code"] == "nothing_to_vouch_for"
    assert console.get(path)["items"] == []
    assert console.get("leaks", is_gone="false")["items"] == []
