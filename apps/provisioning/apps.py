"""App configuration."""

from django.apps import AppConfig


class ProvisioningConfig(AppConfig):
    """See docs/architecture.md."""

    name = "apps.provisioning"
