"""Per request: the language people read, and whether they may still be here."""

from collections.abc import Callable

import structlog
from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse
from django.utils import translation

Answer = Callable[[HttpRequest], HttpResponse]
_KNOWN = {code for code, _name in settings.LANGUAGES}


class LanguageMiddleware:
    """The language of the cookie, else of the browser; PersonMiddleware lets the person's choice win."""

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
    """Ends the session of a person who may no longer sign in, and binds who acts to the logs."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve as the signed-in person, or as nobody."""
        user = request.user
        if user.is_authenticated:
            if not user.is_active:
                logout(request)
            else:
                structlog.contextvars.bind_contextvars(person=str(user.pk))
                if settings.LANGUAGE_COOKIE_NAME not in request.COOKIES:
                    translation.activate(user.language)
        return self.get_response(request)
