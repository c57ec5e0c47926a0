"""`manage.py make_translations`: bring the catalogues up to the program; new texts are empty."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from apps.core.catalogues import find_messages, merged, read_po, write_po


class Command(BaseCommand):
    """Add what is new, drop what is no longer used, keep every translation."""

    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """Go through every language but the source's."""
        wanted = find_messages(settings.BASE_DIR)
        for language, _label in settings.LANGUAGES:
            if language == settings.LANGUAGE_CODE:
                continue
            path = Path(settings.LOCALE_PATHS[0]) / language / "LC_MESSAGES" / "django.po"
            have = read_po(path) if path.exists() else {}
            entries = merged(wanted, have, language=language)
            write_po(path, entries)
            todo = sum(not entry.is_translated for entry in entries.values())
            self.stdout.write(f"{language}: {len(wanted)} texts, {todo} to translate")
