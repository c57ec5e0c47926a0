"""Errors become problem+json, a toast or a page, in one place."""

import json
from types import SimpleNamespace

import pytest
import structlog
from django.core.exceptions import PermissionDenied, SuspiciousOperation, ValidationError
from django.http import Http404, HttpResponse
from django.test import RequestFactory
from rest_framework import exceptions as rest

from apps.core.errors import (
    Conflict,
    Invalid,
    NodeFault,
    SignInRequired,
    SiteUnreachable,
    TooMany,
    Unavailable,
)
from neocloud import errors

HTMX = {"HX-Request": "true"}


class Taken(Conflict):
    code = "taken"
    message = "{name} is taken; choose another."


@pytest.fixture(autouse=True)
def _settings(settings):
    settings.LOGIN_URL = "/sign-in/"
    settings.TEMPLATES = [
        {
            "BACKEND": "django.template.backends.django.DjangoTemplates",
            "OPTIONS": {
                "loaders": [
                    (
                        "django.template.loaders.locmem.Loader",
                        {
                            "components/toast.html": "TOAST {{ title }}: {{ message }}",
                            "errors/error.html": "PAGE {{ status }} {{ message }} {{ request_id }}",
                        },
                    )
                ]
            },
        }
    ]


def ask(path="/orders/", method="get", **headers):
    return getattr(RequestFactory(headers=headers), method)(path)


def api(error):
    response = errors.answer(ask("/api/v1/orders/"), error)
    return response, json.loads(response.content)


def test_a_program_gets_a_problem_with_a_stable_code():
    response, body = api(Taken(name="acme", field="slug"))
    assert (response.status_code, response["Content-Type"]) == (409, "application/problem+json")
    assert body == {
        "type": "urn:neocloud:problem:taken",
        "title": "Not possible now",
        "status": 409,
        "code": "taken",
        "detail": "acme is taken; choose another.",
        "field": "slug",
        "errors": [{"field": "slug", "code": "taken", "detail": "acme is taken; choose another."}],
        "request_id": body["request_id"],
        "alternatives": [],
    }
    assert body["request_id"]


def test_a_part_of_a_page_gets_a_toast_and_keeps_the_status():
    response = errors.answer(ask(**HTMX), Taken(name="<b>"))
    assert response.status_code == 409
    assert (response["HX-Retarget"], response["HX-Reswap"]) == ("#toasts", "beforeend")
    assert response.content == b"TOAST Not possible now: &lt;b&gt; is taken; choose another."
    assert "HX-Request" in response["Vary"]


def test_a_browser_gets_a_page_with_the_number_of_the_request():
    request = ask(**{"X-Request-ID": "abcdefgh-1"})
    response = errors.answer(request, Taken(name="acme"))
    assert response.content == b"PAGE 409 acme is taken; choose another. abcdefgh-1"
    assert response["Cache-Control"] == "no-store"


@pytest.mark.parametrize("headers", [{}, HTMX])
def test_an_error_is_told_even_when_the_templates_are_broken(settings, headers):
    settings.TEMPLATES = []
    response = errors.answer(ask(**headers), Taken(name="<b>"))
    assert response.status_code == 409
    assert b"&lt;b&gt; is taken" in response.content


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (Http404("secret"), 404, "not_found"),
        (PermissionDenied("secret"), 403, "forbidden"),
        (SuspiciousOperation("secret"), 400, "malformed_request"),
        (rest.ParseError(), 400, "malformed_request"),
        (rest.NotFound(), 404, "not_found"),
        (rest.PermissionDenied(), 403, "forbidden"),
        (rest.MethodNotAllowed("PUT"), 405, "method_not_allowed"),
        (rest.NotAcceptable(), 406, "not_acceptable"),
        (rest.UnsupportedMediaType("text/x"), 415, "unsupported_media_type"),
        (rest.Throttled(wait=7), 429, "too_many_requests"),
        (rest.NotAuthenticated(), 401, "sign_in_required"),
        (rest.AuthenticationFailed(), 401, "sign_in_required"),
        (rest.APIException("secret"), 500, "internal_error"),
        (NodeFault("secret"), 503, "site_trouble"),
        (SiteUnreachable("secret"), 503, "site_unreachable"),
        (ValueError("secret"), 500, "internal_error"),
    ],
)
def test_whatever_goes_wrong_has_a_code_and_tells_nothing_of_the_inside(error, status, code):
    response, body = api(error)
    assert (response.status_code, body["status"], body["code"]) == (status, status, code)
    assert b"secret" not in response.content
    assert b"Traceback" not in response.content


def test_waiting_time_is_given_as_a_header():
    assert api(TooMany(retry_after=7))[0]["Retry-After"] == "7"
    assert api(Unavailable(retry_after=9))[0]["Retry-After"] == "9"
    assert api(rest.Throttled(wait=7))[0]["Retry-After"] == "7"


def test_every_wrong_field_of_a_request_is_named_with_its_path():
    _response, body = api(
        rest.ValidationError(
            {
                "sku": ["No {such offering.", "Second."],
                "items": [{}, {"quantity": ["Too big."]}],
                "non_field_errors": ["Together wrong."],
            }
        )
    )
    assert body["status"] == 422
    assert [(part["field"], part["detail"]) for part in body["errors"]] == [
        ("sku", "No {such offering."),
        ("sku", "Second."),
        ("items.1.quantity", "Too big."),
        (None, "Together wrong."),
    ]


def test_a_model_that_does_not_validate_names_its_fields():
    error = ValidationError({"name": ["Too long."], "__all__": ["Both {x}."]})
    _response, body = api(error)
    assert [(part["field"], part["detail"]) for part in body["errors"]] == [
        ("name", "Too long."),
        (None, "Both {x}."),
    ]


def test_several_errors_are_listed():
    _response, body = api(Invalid.many([Invalid("A", field="a"), Invalid("B", field="b")]))
    assert [part["field"] for part in body["errors"]] == ["a", "b"]


def test_only_known_errors_are_answered_at_once():
    middleware = errors.ErrorMiddleware(lambda _request: HttpResponse())
    assert middleware.process_exception(ask(), ValueError("x")) is None
    known = middleware.process_exception(ask(), Taken(name="acme"))
    assert known is not None
    assert known.status_code == 409


def test_an_error_of_the_middleware_keeps_its_own_status():
    try:
        raise Unavailable()
    except Unavailable:
        assert errors.server_error(ask()).status_code == 503
    assert errors.server_error(ask()).status_code == 500


def test_an_ended_session_sends_the_whole_page_to_sign_in_with_the_way_back():
    request = ask("/orders/rows/", **HTMX, **{"HX-Current-URL": "http://testserver/orders/?page=2"})
    response = errors.login_required_response(request)
    assert response.status_code == 401
    assert response["HX-Redirect"] == "/sign-in/?next=%2Forders%2F%3Fpage%3D2"
    assert response.content == b""


def test_a_page_goes_to_sign_in_and_back_to_itself():
    response = errors.answer(ask("/orders/?page=2"), SignInRequired())
    assert response.status_code == 302
    assert response["Location"] == "/sign-in/?next=%2Forders%2F%3Fpage%3D2"


@pytest.mark.parametrize(
    "elsewhere", ["http://evil.example/x", "//evil.example", "javascript:alert(1)", ""]
)
def test_the_way_back_never_leads_elsewhere(elsewhere):
    request = ask(**HTMX, **{"HX-Current-URL": elsewhere})
    assert errors.login_required_response(request)["HX-Redirect"] == "/sign-in/"


def test_a_form_that_was_posted_goes_back_to_its_page():
    request = ask("/orders/place/", "post", Referer="http://testserver//orders/new/")
    assert errors.login_required_response(request)["Location"] == (
        "/sign-in/?next=%2Forders%2Fnew%2F"
    )


def test_a_program_that_is_not_signed_in_gets_no_redirect():
    for error in (SignInRequired(), rest.NotAuthenticated()):
        response, body = api(error)
        assert (response.status_code, body["code"]) == (401, "sign_in_required")
        assert response["WWW-Authenticate"]


def test_an_old_form_is_told_in_place():
    response = errors.csrf_failure(ask("/orders/", "post", **HTMX), reason="token missing")
    assert response.status_code == 403
    assert b"open too long" in response.content
    assert b"token missing" not in response.content


def test_the_rest_framework_answers_through_the_same_place():
    context = {"request": SimpleNamespace(_request=ask("/api/v1/tenants/"))}
    response = errors.api_exception_handler(Taken(name="acme"), context)
    assert response is not None
    assert (response.status_code, response["Content-Type"]) == (409, "application/problem+json")


def test_the_rest_framework_lets_unforeseen_errors_through():
    context = {"request": None}
    assert errors.api_exception_handler(ValueError("x"), context) is None


def test_a_failure_is_logged_with_its_request_and_its_facts():
    with structlog.testing.capture_logs() as lines:
        request = ask(**{"X-Request-ID": "abcdefgh-1"})
        errors.answer(request, Taken(name="acme"))
        errors.answer(request, NodeFault("no power"))
        errors.answer(request, ValueError("x"))
    assert [line["event"] for line in lines] == ["request.failed"] * 3
    assert [line["log_level"] for line in lines] == ["info", "warning", "error"]
    assert all(line["request_id"] == "abcdefgh-1" for line in lines)
    assert lines[0]["facts"] == {"name": "acme"}
    assert (lines[1]["kind"], lines[1]["outside"]) == ("node_fault", "no power")
    assert isinstance(lines[2]["exc_info"], ValueError)
