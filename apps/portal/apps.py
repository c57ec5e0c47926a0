"""App configuration."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.portal"
