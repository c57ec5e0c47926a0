"""App configuration."""

from django.apps import AppConfig


class CatalogConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.catalog"
