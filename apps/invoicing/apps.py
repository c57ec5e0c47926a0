"""App configuration."""

from django.apps import AppConfig


class InvoicingConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.invoicing"
