"""What every page's frame needs: the side it is on, who is looking, what is unread."""

from collections.abc import Callable
from functools import cache
from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.core.realms import PLATFORM, speaker
from apps.notices.selectors import unread_count
from neocloud.navigation import AREAS, side_bar
from neocloud.preferences import THEMES, chosen_theme

AREA_NAMES = {"portal": _("Portal"), "console": _("Console"), "finance": _("Finance")}


def shell(request: HttpRequest) -> dict[str, Any]:
    """Template variables of the frame; what costs a query or a look-up is a callable."""
    tenant = getattr(request, "tenant", None)
    on_platform = speaker() == PLATFORM
    area = _area(request, on_platform=on_platform)
    return {
        "side": "platform" if on_platform else "tenant",
        "tenant": tenant if getattr(tenant, "slug", None) else None,
        "area": area,
        "area_name": AREA_NAMES[area],
        "theme": chosen_theme(request),
        "themes": THEMES,
        "navigation": _navigation(request, area),
        "notices_url_name": "console:notices" if on_platform else "portal:notices",
        "unread": _unread(request),
    }


def _area(request: HttpRequest, *, on_platform: bool) -> str:
    match = request.resolver_match
    if match is not None and match.app_name in AREAS:
        return match.app_name
    return "console" if on_platform else "portal"


def _navigation(request: HttpRequest, area: str) -> Callable[[], Any]:
    match = request.resolver_match
    current = match.view_name if match is not None else ""
    return lambda: side_bar(area, request.user, current)


def _unread(request: HttpRequest) -> Callable[[], int]:
    return cache(lambda: unread_count(request.user))
