"""App configuration."""

from django.apps import AppConfig


class OrdersConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.orders"
