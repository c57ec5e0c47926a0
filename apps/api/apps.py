"""App configuration."""

from django.apps import AppConfig


class ApiConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.api"
