"""`manage.py check_translations`: every text has confirmed words in every language."""

from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.core.catalogues import find_messages, problems, read_po


class Command(BaseCommand):
    """Fail when a catalogue is behind the program."""

    help = __doc__
    requires_system_checks: list[str] = []

    def handle(self, *args: Any, **options: Any) -> None:
        """List what is wrong, then say how to mend it."""
        wanted = find_messages(settings.BASE_DIR)
        found = []
        for language, _label in settings.LANGUAGES:
            if language != settings.LANGUAGE_CODE:
                path = Path(settings.LOCALE_PATHS[0]) / language / "LC_MESSAGES" / "django.po"
                have = read_po(path) if path.exists() else {}
                found += [f"{language}: {line}" for line in problems(wanted, have)]
        for line in found:
            self.stderr.write(line)
        if found:
            raise CommandError(
                f"{len(found)} problems; run manage.py make_translations and fill in what is empty"
            )
        self.stdout.write(f"{len(wanted)} texts, all translated")
