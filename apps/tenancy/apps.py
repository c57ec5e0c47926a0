"""App configuration."""

from django.apps import AppConfig


class TenancyConfig(AppConfig):
    """Tenants and the only code that switches schemas."""

    name = "apps.tenancy"

    def ready(self) -> None:
        """Register the start-up checks and let pgtrigger's autodetector stand in
        migrate_schemas.
        """
        from django.core.management.commands import makemigrations
        from django.db.migrations.recorder import MigrationRecorder
        from django_tenants.management.commands.migrate_schemas import MigrateSchemasCommand

        from apps.core import outbox
        from apps.tenancy import checks, tasks, upgrades  # noqa: F401

        outbox.WAKERS.append(tasks.wake_relay)

        MigrateSchemasCommand.autodetector = makemigrations.Command.autodetector
        MigrationRecorder.has_table = upgrades.has_migration_table  # type: ignore[method-assign,assignment]
