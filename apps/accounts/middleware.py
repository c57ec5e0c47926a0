"""Per request: the language people read, and who acts from where."""

import ipaddress
from collections.abc import Callable

import structlog
from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.utils import translation

Answer = Callable[[HttpRequest], HttpResponse]
_KNOWN = {code for code, _name in settings.LANGUAGES}


class LanguageMiddleware:
    """The language of the cookie, else of the browser; PersonMiddleware puts the person's first."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve in the language chosen, and say so."""
        chosen = request.COOKIES.get(settings.LANGUAGE_COOKIE_NAME, "")
        language = chosen if chosen in _KNOWN else translation.get_language_from_request(request)
        with translation.override(language):
            request.LANGUAGE_CODE = language
            response = self.get_response(request)
            response.headers.setdefault("Content-Language", translation.get_language() or language)
        return response


class PersonMiddleware:
    """Bind who acts, and from where, to the logs and the audit trail; read on in their language."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve as the signed-in person, or as nobody; who was shut out is nobody to Django."""
        structlog.contextvars.bind_contextvars(ip=_address(request))
        user = request.user
        if user.is_authenticated:
            structlog.contextvars.bind_contextvars(person=str(user.pk))
            if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
                translation.activate(user.language)
        return self.get_response(request)


def _address(request: HttpRequest) -> str | None:
    """The peer's address, for the audit trail; None behind a socket without one."""
    try:
        return str(ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")))
    except ValueError:
        return None
