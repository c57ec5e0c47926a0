"""`manage.py import_catalog FILE [--dry-run]`: make the catalogue what a YAML file says."""

from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.catalog.services import import_catalog
from apps.core.errors import AppError
from apps.tenancy.context import platform_context


class Command(BaseCommand):
    """Show every row that differs; keep all of them or none."""

    help = __doc__

    def add_arguments(self, parser: Any) -> None:
        """The file, and whether to keep anything."""
        parser.add_argument("file", type=Path)
        parser.add_argument("--dry-run", action="store_true", help="show, and keep nothing")

    def handle(self, *args: Any, **options: Any) -> None:
        """Import on the platform's side; refused rows end it with exit code 1."""
        try:
            text = options["file"].read_text(encoding="utf-8")
            with platform_context():
                report = import_catalog(text=text, actor=None, dry_run=options["dry_run"])
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        except AppError as error:
            raise CommandError(error.detail) from error
        self.stdout.write("\n".join(report.lines()))
        if report.refused:
            raise CommandError("Nothing was changed: correct the refused rows and import again.")
        if report.is_dry_run:
            self.stdout.write("Dry run: nothing was changed.")
