"""App configuration."""

from django.apps import AppConfig


class FinanceConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.finance"
