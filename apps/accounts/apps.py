"""App configuration."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.accounts"

    def ready(self) -> None:
        """Begin to listen to sign-ins."""
        from apps.accounts import sign_in_audit  # noqa: F401
