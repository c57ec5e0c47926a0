"""`manage.py compile_translations`: write the .mo files programs read, quickly, by ourselves."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from apps.core.catalogues import read_po, write_mo


class Command(BaseCommand):
    """Write what is newer than what was written before."""

    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Go through every catalogue of the product."""
        for folder in settings.LOCALE_PATHS:
            for source in sorted(Path(folder).glob("*/LC_MESSAGES/*.po")):
                target = source.with_suffix(".mo")
                if not target.exists() or target.stat().st_mtime < source.stat().st_mtime:
                    write_mo(target, read_po(source))
                    self.stdout.write(f"{target.relative_to(settings.BASE_DIR)}")
