"""App configuration."""

from django.apps import AppConfig


class CoreConfig(AppConfig):
    """Shared words: realms, clock, money, periods, machines, outbox, idempotency, secrets."""

    name = "apps.core"
