"""`manage.py write_states`: draw docs/states from the status tables; with --check only compare."""

from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from apps.core.machine import state_pages, write_state_pages


class Command(BaseCommand):
    """Every machine of every app has a page."""

    help = __doc__
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        """One flag."""
        parser.add_argument(
            "--check", action="store_true", help="fail if the pages are not current"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Read the tables, then write or compare."""
        for config in apps.get_app_configs():
            if config.name.startswith("apps.") and find_spec(f"{config.name}.states"):
                import_module(f"{config.name}.states")
        folder = Path(settings.BASE_DIR) / "docs" / "states"
        if not options["check"]:
            for path in write_state_pages(folder):
                self.stdout.write(str(path.relative_to(settings.BASE_DIR)))
            return
        pages = state_pages()
        old = [
            name
            for name, text in pages.items()
            if not (folder / name).exists() or (folder / name).read_text(encoding="utf-8") != text
        ]
        old += [path.name for path in folder.glob("*.md") if path.name not in pages]
        if old:
            raise CommandError(f"run manage.py write_states: {', '.join(sorted(old))}")
