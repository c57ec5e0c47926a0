"""App configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.accounts"
