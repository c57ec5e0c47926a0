"""`manage.py export_catalog`: the catalogue on sale as YAML, ready for `import_catalog`."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.catalog.services import export_catalog
from apps.tenancy.context import platform_context


class Command(BaseCommand):
    """Write it to standard output."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """Read on the platform's side."""
        with platform_context():
            self.stdout.write(export_catalog(), ending="")
