"""`manage.py upgrade`: bring the database to this program's version. Run it as neo_owner."""

from typing import Any

from django.core.management.base import BaseCommand

from apps.tenancy.upgrades import upgrade


class Command(BaseCommand):
    """Migrate public, the template and every tenant; apply grants, policies and functions."""

    help = __doc__
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        """One flag."""
        parser.add_argument("--force", action="store_true", help="apply rules even if unchanged")

    def handle(self, *args: Any, **options: Any) -> None:
        """Say what was done."""
        done = upgrade(force=options["force"])
        self.stdout.write("\n".join(done) if done else "nothing to do")
