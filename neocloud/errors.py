"""The one place that turns what went wrong into an answer: problem+json, a toast, or a page."""

import json
import sys
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode, urlsplit

import structlog
from django.conf import settings
from django.core.exceptions import (
    NON_FIELD_ERRORS,
    BadRequest,
    PermissionDenied,
    SuspiciousOperation,
    ValidationError,
)
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import resolve_url
from django.template.loader import render_to_string
from django.utils.cache import patch_vary_headers
from django.utils.html import format_html
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import get_language
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions as rest

from apps.core.errors import (
    AppError,
    FailureKind,
    Forbidden,
    Invalid,
    NotFound,
    OutsideError,
    SignInRequired,
    TooMany,
    Unavailable,
)
from neocloud.logging import request_facts, request_id_of

PROBLEM = "application/problem+json"
PROBLEM_TYPE = "urn:neocloud:problem:"
PROGRAMS = ("/api/", "/call-home/")

log = structlog.get_logger(__name__)


class MalformedRequest(AppError):
    """The request itself cannot be read."""

    code = "malformed_request"
    message = _("The request could not be read. Check its form and send it again.")
    title = _("Malformed request")
    status = 400


class MethodNotAllowed(AppError):
    """The address exists, but not for this method."""

    code = "method_not_allowed"
    message = _("This method is not possible here; the Allow header lists those that are.")
    title = _("Method not allowed")
    status = 405


class NotAcceptable(AppError):
    """None of the forms the client takes is one we make."""

    code = "not_acceptable"
    message = _("This address answers in JSON only. Send Accept: application/json.")
    title = _("Not acceptable")
    status = 406


class UnsupportedMedia(AppError):
    """The body is of a kind we do not read."""

    code = "unsupported_media_type"
    message = _("The body must be JSON. Send Content-Type: application/json.")
    title = _("Unsupported media type")
    status = 415


class PageTooOld(Forbidden):
    """The form's token is missing or from another session."""

    code = "csrf_failed"
    message = _("This page was open too long. Reload it and try again; nothing was changed.")
    title = _("Page too old")


class Unforeseen(AppError):
    """A fault of the program; the log has the rest, under the request id."""

    code = "internal_error"
    message = _(
        "Something went wrong on our side. Try again; if it stays, tell us the number below."
    )
    title = _("Fault on our side")
    status = 500


class SiteTrouble(Unavailable):
    """An outside system let us down."""

    code = "site_trouble"
    message = _("The infrastructure did not do what was asked. Try again in a few minutes.")


class ErrorMiddleware:
    """Answer errors a view raised; unforeseen ones come back through server_error."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Pass the request on; an address with a NUL names nothing, and no column could hold it."""
        if "\0" in request.path:
            return answer(request, Http404())
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        """The answer to an error we know, None for one we do not."""
        return answer(request, error) if is_known(error) else None


def is_known(error: BaseException) -> bool:
    """Whether an error has an answer of its own."""
    known = (
        AppError,
        OutsideError,
        Http404,
        PermissionDenied,
        SuspiciousOperation,
        BadRequest,
        MultiPartParserError,
        ValidationError,
        rest.APIException,
    )
    return isinstance(error, known)


def answer(request: HttpRequest, error: BaseException) -> HttpResponse:
    """The answer to any error, in the form the request asked for, logged as `request.failed`."""
    told = as_app_error(error)
    _log(request, told, error)
    if isinstance(told, SignInRequired):
        return login_required_response(request, told)
    if is_api(request):
        response = _problem(request, told)
    elif is_htmx(request):
        response = _toast(request, told)
    else:
        response = _page(request, told)
    return _with_headers(response, told)


def as_app_error(error: BaseException) -> AppError:
    """Any error as one a person may read; what we did not foresee says nothing of its inside."""
    if isinstance(error, AppError):
        return error
    for kinds, translate in _TRANSLATIONS:
        if isinstance(error, kinds):
            return translate(error)
    return Unforeseen()


def login_required_response(
    request: HttpRequest, told: SignInRequired | None = None
) -> HttpResponse:
    """Send the person to sign in, as a whole page and with the way back; the API gets a 401."""
    if is_api(request):
        response = _problem(request, told or SignInRequired())
        response["WWW-Authenticate"] = "Bearer"
        return response
    back, target = _way_back(request), resolve_url(settings.LOGIN_URL)
    if back != "/":  # from the start every role goes to its own first page
        target += f"?{urlencode({'next': back})}"
    if is_htmx(request):
        response = HttpResponse(status=401, headers={"HX-Redirect": target})
    else:
        response = HttpResponseRedirect(target)
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, ("HX-Request",))
    return response


def bad_request(request: HttpRequest, exception: BaseException | None = None) -> HttpResponse:
    """Django's handler400."""
    return answer(request, exception or MalformedRequest())


def permission_denied(request: HttpRequest, exception: BaseException | None = None) -> HttpResponse:
    """Django's handler403."""
    return answer(request, exception or Forbidden())


def not_found(request: HttpRequest, exception: BaseException | None = None) -> HttpResponse:
    """Django's handler404."""
    return answer(request, exception or NotFound())


def server_error(request: HttpRequest) -> HttpResponse:
    """Django's handler500: also where errors of the middleware arrive."""
    return answer(request, sys.exc_info()[1] or Unforeseen())


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """Django's CSRF_FAILURE_VIEW: readable, in place, and nothing was changed."""
    return answer(request, PageTooOld(reason=reason))


def api_exception_handler(error: Exception, context: dict[str, Any]) -> HttpResponse | None:
    """The REST framework's EXCEPTION_HANDLER; what we did not foresee goes on to server_error."""
    if not is_known(error):
        return None
    _roll_back()
    return answer(context["request"]._request, error)


def is_api(request: HttpRequest) -> bool:
    """Whether a program is asking."""
    return request.path.startswith(PROGRAMS)


def is_htmx(request: HttpRequest) -> bool:
    """Whether a part of a page is asking."""
    return request.headers.get("HX-Request") == "true"


def _problem(request: HttpRequest, error: AppError) -> HttpResponse:
    body = {
        "type": f"{PROBLEM_TYPE}{error.code}",
        "title": str(error.title),
        "status": error.status,
        "code": error.code,
        "detail": error.detail,
        "field": error.field,
        "errors": [
            {"field": part.field, "code": part.code, "detail": part.detail} for part in error.errors
        ],
        "request_id": request_id_of(request),
        "alternatives": list(error.alternatives),
    }
    text = json.dumps(body, ensure_ascii=False)
    told = text.encode(
        errors="backslashreplace"
    )  # half a surrogate pair that came is shown as \ud800
    return HttpResponse(told, status=error.status, content_type=PROBLEM)


def _toast(request: HttpRequest, error: AppError) -> HttpResponse:
    text = _rendered("components/toast.html", request, error)
    headers = {"HX-Retarget": "#toasts", "HX-Reswap": "beforeend"}
    return HttpResponse(text, status=error.status, headers=headers)


def _page(request: HttpRequest, error: AppError) -> HttpResponse:
    return HttpResponse(_rendered("errors/error.html", request, error), status=error.status)


def _rendered(template: str, request: HttpRequest, error: AppError) -> str:
    """The template, or bare words when even that fails: an error must not hide another."""
    context = {
        "level": "danger" if error.status >= 500 else "warning",
        "title": error.title,
        "message": error.detail,
        "errors": error.errors,
        "alternatives": error.alternatives,
        "code": error.code,
        "status": error.status,
        "request_id": request_id_of(request),
    }
    try:
        return render_to_string(template, context, request=request)
    except Exception:
        log.exception("request.error_page_failed", template=template)
    page = (
        '<!doctype html><html lang="{}"><meta charset="utf-8"><title>{}</title>'
        '<body><main role="alert"><h1>{}</h1><p>{}</p><p>{}</p></main></body></html>'
    )
    if is_htmx(request):
        return format_html(
            '<div role="alert"><strong>{}</strong> {}</div>', error.title, error.detail
        )
    return format_html(
        page,
        get_language() or settings.LANGUAGE_CODE,
        error.title,
        error.title,
        error.detail,
        request_id_of(request),
    )


def _with_headers(response: HttpResponse, told: AppError) -> HttpResponse:
    response["Cache-Control"] = "no-store"
    patch_vary_headers(response, ("HX-Request",))
    if isinstance(told, TooMany | Unavailable):
        response["Retry-After"] = str(told.retry_after)
    return response


def _way_back(request: HttpRequest) -> str:
    """The page to return to after signing in: a path of this host, never another place."""
    if is_htmx(request):
        wanted = request.headers.get("HX-Current-URL", "")
    elif request.method in {"GET", "HEAD"}:
        wanted = request.get_full_path()
    else:
        wanted = request.headers.get("Referer", "")
    host = request.get_host()
    if not wanted or not url_has_allowed_host_and_scheme(wanted, allowed_hosts={host}):
        return "/"
    parts = urlsplit(wanted)
    path = "/" + parts.path.lstrip("/")
    return f"{path}?{parts.query}" if parts.query else path


def _log(request: HttpRequest, told: AppError, error: BaseException) -> None:
    facts = {
        **request_facts(request),
        "code": told.code,
        "status": told.status,
        "field": told.field,
        "request_id": request_id_of(request),
        "facts": {name: str(value) for name, value in told.facts.items()},
    }
    if isinstance(error, OutsideError):
        facts |= {"kind": str(error.kind), "outside": error.detail}
    if told.status >= 500 and not isinstance(error, AppError | OutsideError):
        log.error("request.failed", **facts, exc_info=error)
    elif told.status >= 500:
        log.warning("request.failed", **facts)
    else:
        log.info("request.failed", **facts)


def _roll_back() -> None:
    """A view that answers an error inside a request's transaction must not commit it."""
    connection = transaction.get_connection()
    if connection.settings_dict.get("ATOMIC_REQUESTS") and connection.in_atomic_block:
        connection.set_rollback(True)


def _from_outside(error: Any) -> AppError:
    return SiteTrouble(kind=str(error.kind), code=_OUTSIDE_CODES.get(error.kind))


def _from_django_validation(error: Any) -> AppError:
    parts = []
    by_field = error.error_dict if hasattr(error, "error_dict") else {None: error.error_list}
    for name, problems in by_field.items():
        field = None if name == NON_FIELD_ERRORS else name
        for problem in problems:
            text = " ".join(problem.messages)
            parts.append(Invalid(_literal(text), field=field, code=problem.code or "invalid"))
    return Invalid.many(parts) if parts else Invalid()


def _from_rest_validation(error: Any) -> AppError:
    parts = [
        Invalid(_literal(str(detail)), field=path or None, code=str(detail.code))
        for path, detail in _flattened(error.detail, "")
    ]
    return Invalid.many(parts) if parts else Invalid()


def _flattened(detail: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Every message of the REST framework's nested ones, with the path of its field."""
    if isinstance(detail, dict):
        for key, inner in detail.items():
            name = "" if key == "non_field_errors" else str(key)
            yield from _flattened(inner, ".".join(filter(None, (path, name))))
    elif isinstance(detail, list):
        for index, inner in enumerate(detail):
            nested = isinstance(inner, dict | list) and bool(inner)
            yield from _flattened(inner, f"{path}.{index}".lstrip(".") if nested else path)
    else:
        yield path, detail


def _literal(text: str) -> str:
    """A finished sentence as a message template: its braces mean themselves."""
    return text.replace("{", "{{").replace("}", "}}")


def _from_rest(error: Any) -> AppError:
    for kinds, told in _REST_ERRORS:
        if isinstance(error, kinds):
            return told(error)
    return Unforeseen() if error.status_code >= 500 else MalformedRequest()


_OUTSIDE_CODES = {FailureKind.SITE_UNREACHABLE: "site_unreachable"}

_REST_ERRORS: tuple[tuple[Any, Callable[[Any], AppError]], ...] = (
    (rest.ValidationError, _from_rest_validation),
    ((rest.NotAuthenticated, rest.AuthenticationFailed), lambda _error: SignInRequired()),
    (rest.PermissionDenied, lambda _error: Forbidden()),
    (rest.NotFound, lambda _error: NotFound()),
    (rest.MethodNotAllowed, lambda _error: MethodNotAllowed()),
    (rest.NotAcceptable, lambda _error: NotAcceptable()),
    (rest.UnsupportedMediaType, lambda _error: UnsupportedMedia()),
    (rest.Throttled, lambda error: TooMany(retry_after=int(error.wait or 60))),
)

_TRANSLATIONS: tuple[tuple[Any, Callable[[Any], AppError]], ...] = (
    (OutsideError, _from_outside),
    (Http404, lambda _error: NotFound()),
    (PermissionDenied, lambda _error: Forbidden()),
    (ValidationError, _from_django_validation),
    ((SuspiciousOperation, BadRequest, MultiPartParserError), lambda _error: MalformedRequest()),
    (rest.APIException, _from_rest),
)
