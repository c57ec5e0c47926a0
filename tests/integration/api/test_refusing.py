"""What is refused names what was wrong: permissions, unknown fields and parameters, bad values."""

from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest
from rest_framework import serializers

from apps.accounts.roles import Role
from apps.api.serializers.base import Filters
from tests.integration.api.program import Program
from tests.people import a_person


@pytest.fixture
def viewer(acme: Any) -> Program:
    """Somebody who may only look."""
    return Program.signed_in(a_person(Role.VIEWER))


def test_a_missing_permission_is_named(viewer: Program) -> None:
    problem = viewer.refused("POST", "quotes", {}, status=403)

    assert problem["code"] == "role_forbids"
    assert "order.place" in problem["detail"]


def test_looking_is_allowed_where_changing_is_not(viewer: Program) -> None:
    assert viewer.get("orders") == {"items": [], "next": None}


def test_an_unknown_field_is_named(program: Program) -> None:
    problem = program.refused("POST", "projects", {"name": "a", "colour": "red"}, status=422)

    assert problem["field"] == "colour"
    assert problem["code"] == "unknown_field"
    assert "description" in problem["detail"]


def test_all_mistakes_are_told_at_once(program: Program) -> None:
    problem = program.refused("POST", "quotes", {"quantity": 0, "colour": "red"}, status=422)

    assert {part["field"] for part in problem["errors"]} == {
        "colour",
        "quantity",
        "offering",
        "site",
    }


def test_an_unknown_parameter_is_named(program: Program) -> None:
    problem = program.refused("GET", "orders?colour=red", status=422)

    assert problem["field"] == "colour"


@pytest.mark.parametrize(
    ("address", "field"),
    [
        ("invoices?period=0000-01", "period"),
        ("invoices?period=2026-13", "period"),
        ("invoices?period=2026-3", "period"),
        ("invoices/csv?period=0000-01", "period"),
        ("invoices/csv?currency=XYZ", "currency"),
        ("orders?status=sold", "status"),
        ("orders?project=research", "project"),
        ("orders?site=Seoul 1", "site"),
        ("orders?created_after=yesterday", "created_after"),
        ("orders?created_after=2026-02-30T00:00:00Z", "created_after"),
        ("orders?created_after=2026-03-02T00:00:00Z&created_before=2026-03-01T00:00:00Z",
         "created_before"),
        ("services?offering=8 GPUs", "offering"),
        ("audit-events?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z", "until"),
        ("orders?limit=0", "limit"),
    ],
)  # fmt: skip
def test_a_parameter_no_row_can_have_is_named_instead_of_answering_an_empty_list(
    program: Program, address: str, field: str
) -> None:
    assert program.refused("GET", address, status=422)["field"] == field


FREE_TEXT = {"name", "resource_class", "action", "subject_type", "subject", "cursor"}


def test_every_condition_of_every_list_is_of_a_kind_that_refuses_nonsense() -> None:
    def kinds(one: type[Filters]) -> Iterator[type[Filters]]:
        yield one
        for below in one.__subclasses__():
            yield from kinds(below)

    for urls in ("apps.api.urls_platform", "apps.api.urls_tenant"):
        import_module(urls)
    assert len(list(kinds(Filters))) > 15
    unchecked = {
        f"{one.__name__}.{name}"
        for one in kinds(Filters)
        for name, field in one().fields.items()
        if type(field) is serializers.CharField and name not in FREE_TEXT
    }
    assert not unchecked


def test_a_parameter_given_twice_is_refused(program: Program) -> None:
    problem = program.refused("GET", "orders?status=draft&status=placed", status=422)

    assert problem["code"] == "parameter_repeated"


@pytest.mark.parametrize("cursor", ["x", "Zm9v", "W10", "WyJhIiwiYiJd", "%00"])
def test_a_cursor_nobody_gave_out_is_refused(program: Program, cursor: str) -> None:
    problem = program.refused("GET", f"orders?cursor={cursor}", status=422)

    assert problem["field"] == "cursor"


def test_a_body_that_is_no_json_is_refused(program: Program) -> None:
    problem = program.refused("POST", "projects", "{", status=400)

    assert problem["code"] == "malformed_request"


def test_a_body_that_is_no_object_is_refused(program: Program) -> None:
    problem = program.refused("POST", "projects", [1], status=422)

    assert problem["code"] == "body_not_object"


def test_a_method_that_does_not_exist_is_refused(program: Program) -> None:
    problem = program.refused("DELETE", "orders", status=405)

    assert problem["code"] == "method_not_allowed"


def test_an_instant_without_its_offset_is_refused(program: Program) -> None:
    problem = program.refused("GET", "orders?created_after=2026-03-01T00:00:00", status=422)

    assert problem["field"] == "created_after"
    assert "offset" in problem["detail"]


def test_an_address_that_does_not_exist_is_answered_in_json(program: Program) -> None:
    problem = program.refused("GET", "unicorns", status=404)

    assert problem["code"] == "not_found"


@pytest.mark.parametrize("levels", [40, 900, 100_000])
def test_a_body_nested_beyond_reason_is_malformed(program: Program, levels: int) -> None:
    problem = program.refused(
        "POST", "quotes", '{"a":' + "[" * levels + "]" * levels + "}", status=400
    )

    assert problem["code"] == "malformed_request"


@pytest.mark.parametrize("body", [{"if_unavailable": "\ud800"}, {"\ud800": 1}])
def test_half_a_surrogate_pair_is_refused_like_any_other_value(
    program: Program, body: dict[str, Any]
) -> None:
    program.refused("POST", "orders", body, status=422)


def test_an_address_with_a_nul_names_nothing(console: Program) -> None:
    problem = console.refused("GET", "sites/a%00b", status=404)

    assert problem["code"] == "not_found"


@pytest.mark.parametrize("path", ["/catalog/a%00b/", "/catalog/a%00b/quote/"])
def test_a_page_whose_address_has_a_nul_is_not_found(viewer: Program, path: str) -> None:
    assert viewer.client.get(path).status_code == 404
