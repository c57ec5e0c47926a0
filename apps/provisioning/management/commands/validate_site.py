"""`manage.py validate_site CODE [--deploy]`: ask a site what it needs to sell, and try it out."""

import time
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.core import clock
from apps.core.errors import AppError
from apps.inventory.selectors import site_by_code
from apps.provisioning import validation
from apps.provisioning.models import SiteCheck
from apps.provisioning.validation.rows import ITEMS
from apps.tenancy.context import platform_context

VERDICTS = {True: "ok", False: "BAD", None: "?"}


class Command(BaseCommand):
    """Print what was asked, what came and how long it took; 1 when something is not good."""

    help = __doc__

    def add_arguments(self, parser: Any) -> None:
        """The site, and whether one node is deployed and cleaned."""
        parser.add_argument("code")
        parser.add_argument(
            "--deploy",
            action="store_true",
            help="deploy and clean one free node, without a customer",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Ask, then follow the trial to its end; it goes on without this command, too."""
        with platform_context():
            try:
                site = site_by_code(options["code"])
            except AppError as error:
                raise CommandError(f"{options['code']}: {error.detail}") from None
            check = validation.validate_site(site=site, actor=None, with_trial=options["deploy"])
            shown = self._show(check, 0)
            while check.stage:
                if check.next_try_at is None or check.next_try_at <= clock.now():
                    validation.advance_check(check.pk)
                else:
                    time.sleep(0.5)
                check = SiteCheck.objects.get(pk=check.pk)
                shown = self._show(check, shown)
        if not check.is_good:
            raise CommandError("not good")

    def _show(self, check: SiteCheck, shown: int) -> int:
        for row in check.rows[shown:]:
            item = ITEMS[row["item"]]
            words = " ".join(filter(None, (str(item.label), row["about"], row["detail"])))
            verdict = VERDICTS[row["ok"]]
            self.stdout.write(f"{verdict:3} {row['seconds']:7.2f} s  {item.component}: {words}")
            if row["ok"] is False:
                self.stdout.write(f"{'':16}{item.way_out}")
        return len(check.rows)
