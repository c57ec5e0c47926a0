"""App configuration."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.console"
