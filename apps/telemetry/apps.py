"""App configuration."""

from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.telemetry"
