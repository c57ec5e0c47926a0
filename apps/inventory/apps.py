"""App configuration."""

from django.apps import AppConfig


class InventoryConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.inventory"
