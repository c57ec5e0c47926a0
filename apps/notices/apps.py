"""App configuration."""

from django.apps import AppConfig


class NoticesConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.notices"
