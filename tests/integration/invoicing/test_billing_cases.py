"""The billing policy in numbers: every case file gives exactly its documents."""

import copy
import json
from pathlib import Path

import pytest

from apps.invoicing import cases
from apps.tenancy.models import Tenant

FILES = sorted((Path(__file__).parents[2] / "data" / "billing").glob("bs_*.json"))


def a_case(number: str) -> dict:
    return json.loads(next(path for path in FILES if path.stem == f"bs_{number}").read_text())


def as_sets(documents: list[dict]) -> list[dict]:
    """Lines are compared as a set."""
    return [
        {
            **document,
            "lines": sorted(json.dumps(line, sort_keys=True) for line in document["lines"]),
        }
        for document in documents
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_case_gives_its_documents(db, path):
    case = json.loads(path.read_text())
    answer = cases.run(case)
    assert answer["error"] == case["expected"]["error"]
    assert as_sets(answer["documents"]) == as_sets(case["expected"]["documents"])


def test_a_case_leaves_nothing_behind(platform):
    before = list(Tenant.objects.values_list("slug", flat=True))
    cases.run(a_case("04"))
    assert list(Tenant.objects.values_list("slug", flat=True)) == before


def test_a_charged_second_without_a_price_stops_the_run(db):
    case = a_case("04")
    case["prices"][0]["effective_from"] = "2026-06-05T10:30:00+09:00"
    answer = cases.run(case)
    assert (answer["error"], answer["documents"]) == ("no_price", [])
    assert "L40S-48G" in answer["message"]
    assert "2026-06-01T01:00:00Z" in answer["message"]


def test_two_prices_from_one_instant_stop_the_run(db):
    case = a_case("03")
    second = copy.deepcopy(case["prices"][0]) | {"id": "L9", "unit_price": "1"}
    case["prices"].append(second)
    answer = cases.run(case)
    assert (answer["error"], answer["documents"]) == ("price_conflict", [])


def test_an_interval_that_ends_before_it_starts_is_refused(db):
    case = a_case("04")
    state = case["allocations"][0]["states"][0]
    state["start"], state["end"] = state["end"], state["start"]
    assert cases.run(case)["error"] == "end_before_start"
