"""The OpenAPI description of each side is valid, complete, and true."""

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from django.core.handlers.wsgi import WSGIHandler
from django.core.signals import request_finished, request_started  # noqa: TID251 - taken off
from django.db import close_old_connections
from django.urls import URLPattern, get_resolver
from drf_spectacular.drainage import GENERATOR_STATS
from drf_spectacular.validation import validate_schema
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import checks

from apps.accounts.roles import PERMISSIONS
from apps.accounts.services import create_access_key
from apps.api import urls_platform, urls_tenant
from apps.api.openapi import described
from apps.api.operations import operation_of
from tests.people import host

SIDES = {
    "acme": ("neocloud.urls_tenant", urls_tenant),
    "console": ("neocloud.urls_platform", urls_platform),
}
OPEN_TO_ALL = {"showMe", "listNotices", "readNotice"}
EXAMPLES = 4  # of each operation
METHODS = ("get", "post", "put", "patch", "delete")


def routes(side: str) -> list[tuple[str, Any]]:
    """Address and view of every route of a side's API but the description itself."""
    return [
        (str(one.pattern), one.callback.view_class)  # type: ignore[attr-defined]
        for one in SIDES[side][1].urlpatterns
        if isinstance(one, URLPattern) and one.name != "openapi"
    ]


def operations(side: str) -> list[dict[str, Any]]:
    """Every operation a side's description has."""
    paths = described(SIDES[side][0])["paths"]
    return [one for methods in paths.values() for one in methods.values()]


@pytest.fixture(params=sorted(SIDES))
def side(request: pytest.FixtureRequest) -> str:
    """Each side."""
    return str(request.param)


def test_the_description_is_valid_openapi_3_1(side: str) -> None:
    GENERATOR_STATS.reset()

    schema = described.__wrapped__(SIDES[side][0])

    validate_schema(schema)
    assert schema["openapi"] == "3.1.0"
    assert not GENERATOR_STATS, "the generator complained"


def test_every_route_is_described(side: str) -> None:
    paths = described(SIDES[side][0])["paths"]
    declared = {
        (path, method) for path, view in routes(side) for method in METHODS if hasattr(view, method)
    }

    assert len(paths) == len(routes(side))
    assert sum(len(methods) for methods in paths.values()) == len(declared)


def test_each_side_is_told_only_of_its_own() -> None:
    tenant = described("neocloud.urls_tenant")["paths"]
    platform = described("neocloud.urls_platform")["paths"]

    assert "/api/v1/quotes" in tenant
    assert "/api/v1/quotes" not in platform
    assert "/api/v1/tenants" in platform
    assert "/api/v1/tenants" not in tenant


def test_every_operation_has_its_own_name_and_says_what_it_does(side: str) -> None:
    found = operations(side)

    names = [one["operationId"] for one in found]
    assert len(names) == len(set(names))
    assert all(one["summary"] and one["security"] for one in found)


def test_every_operation_names_a_permission_that_somebody_holds(side: str) -> None:
    known = frozenset().union(*PERMISSIONS.values())
    for _path, view in routes(side):
        for method in METHODS:
            operation = operation_of(view, method)
            if operation is not None and operation.permission is None:
                assert operation.id in OPEN_TO_ALL
            elif operation is not None:
                assert operation.permission in known


def test_every_refusal_is_a_problem(side: str) -> None:
    for operation in operations(side):
        refusals = [one for code, one in operation["responses"].items() if code >= "400"]
        assert {"401", "403", "422", "429"} <= operation["responses"].keys()
        for refusal in refusals:
            schema = refusal["content"]["application/problem+json"]["schema"]
            assert schema == {"$ref": "#/components/schemas/Problem"}


def test_changes_take_an_idempotency_key(side: str) -> None:
    for methods in described(SIDES[side][0])["paths"].values():
        for method, operation in methods.items():
            names = {one["name"] for one in operation.get("parameters", [])}
            if method == "get":
                assert "Idempotency-Key" not in names
            elif operation["operationId"] not in {
                "importNodes", "issueInvoice", "openServiceConsole", "restoreNode", "validateSite",
            }:  # fmt: skip
                assert "Idempotency-Key" in names


def test_the_urls_of_both_sides_lead_to_the_api() -> None:
    for urlconf, _module in SIDES.values():
        assert get_resolver(urlconf).resolve("/api/v1/me").url_name == "me"


@pytest.fixture
def _one_connection() -> Iterator[None]:
    """Requests through the bare WSGI application stay on the connection of the test."""
    for signal in (request_started, request_finished):
        signal.disconnect(close_old_connections)
    yield
    for signal in (request_started, request_finished):
        signal.connect(close_old_connections)


@pytest.mark.slow
@pytest.mark.usefixtures("_one_connection")
def test_no_request_made_from_the_description_is_answered_otherwise(
    side: str, request: pytest.FixtureRequest
) -> None:
    user = request.getfixturevalue("owner" if side == "acme" else "operator")
    request.getfixturevalue("shop")
    _key, token = create_access_key(name="fuzz", actor=user)
    schema = schemathesis.openapi.from_dict(described(SIDES[side][0]))
    schema.app = WSGIHandler()
    schema.config.update(base_url=f"http://{host(side)}")
    promised = [
        checks.not_a_server_error,
        checks.status_code_conformance,
        checks.content_type_conformance,
        checks.response_schema_conformance,
    ]

    limits = settings(
        max_examples=EXAMPLES,
        deadline=None,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )

    def ask(case: schemathesis.Case) -> None:
        response = case.call(
            headers={"Authorization": f"Bearer {token}", "Host": host(side)},
            base_url=f"http://{host(side)}",
        )
        case.validate_response(response, checks=promised)

    for result in schema.get_all_operations():
        limits(given(case=result.ok().as_strategy())(ask))()
