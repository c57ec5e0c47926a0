"""Settings of `./dev up` and `./dev demo`: one machine, plain HTTP on loopback."""

from neocloud.settings.base import *  # noqa: F403

WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = True
STATIC_ROOT = None  # type: ignore[assignment]  # served from where they lie
