"""App configuration."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.audit"
