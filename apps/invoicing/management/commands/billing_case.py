"""`manage.py billing_case FILE`: play a billing case through the real program and print what it
gives.
"""

import json
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core.errors import AppError
from apps.invoicing import cases


class Command(BaseCommand):
    """Prints {"error": ..., "documents": [...]} as JSON and leaves the database as it was."""

    help = "Play a billing case file in a sandbox and print its documents as JSON."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", type=Path)
        parser.add_argument(
            "--sandbox",
            action="store_true",
            help="roll everything back afterwards; a case is never run in any other way",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            case = json.loads(options["file"].read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise CommandError(f"{options['file']}: {error}") from error
        try:
            answer = cases.run(case)
        except AppError as error:
            raise CommandError(error.detail) from error
        self.stdout.write(json.dumps(answer, ensure_ascii=False, indent=1))
