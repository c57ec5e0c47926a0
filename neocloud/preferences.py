"""The language and the theme a browser shows: cookies, chosen in the person menu or before signing
in.
"""

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import path
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext_lazy as _
from django.views.decorators.http import require_POST

from apps.accounts.models import User
from apps.accounts.services import set_language

THEME_COOKIE = "neo_theme"
THEMES = (("auto", _("As the device")), ("light", _("Light")), ("dark", _("Dark")))
YEAR = 365 * 24 * 3600


def chosen_theme(request: HttpRequest) -> str:
    """light, dark or auto; anything else in the cookie means auto."""
    theme = request.COOKIES.get(THEME_COOKIE, "auto")
    return theme if theme in dict(THEMES) else "auto"


@require_POST
def choose(request: HttpRequest) -> HttpResponse:
    """Keep what was chosen in this browser and go back to the page."""
    back = request.POST.get("next", "/")
    if not url_has_allowed_host_and_scheme(back, allowed_hosts={request.get_host()}):
        back = "/"
    response = HttpResponseRedirect(back)
    known = {settings.LANGUAGE_COOKIE_NAME: dict(settings.LANGUAGES), THEME_COOKIE: dict(THEMES)}
    given = {settings.LANGUAGE_COOKIE_NAME: "language", THEME_COOKIE: "theme"}
    for cookie, values in known.items():
        value = request.POST.get(given[cookie], "")
        if value in values:
            response.set_cookie(
                cookie,
                value,
                max_age=YEAR,
                samesite="Lax",
                secure=settings.SESSION_COOKIE_SECURE,
                httponly=cookie != THEME_COOKIE,
            )
    language = request.POST.get("language", "")
    if isinstance(request.user, User) and language in dict(settings.LANGUAGES):
        set_language(person=request.user, language=language)  # mail follows
    return response


urlpatterns = [path("preferences", choose, name="preferences")]
