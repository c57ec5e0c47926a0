"""What every page's frame needs: the side it is on, who is looking, what is unread."""

from typing import Any

from django.http import HttpRequest

from apps.core.realms import PLATFORM, speaker


def shell(request: HttpRequest) -> dict[str, Any]:
    """Template variables of the frame: `side` (platform or tenant) and `tenant`."""
    tenant = getattr(request, "tenant", None)
    return {
        "side": "platform" if speaker() == PLATFORM else "tenant",
        "tenant": tenant if getattr(tenant, "slug", None) else None,
    }
