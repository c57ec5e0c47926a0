"""App configuration."""

from django.apps import AppConfig


class MeteringConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.metering"
