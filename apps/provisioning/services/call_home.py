"""What a guest reports of itself."""

from typing import Any
from uuid import UUID

from django.db import DataError, transaction

from apps.core import clock
from apps.core.secrets import token_hash
from apps.provisioning.engine import claims, journal
from apps.provisioning.errors import CallHomeMalformed, CallHomeRefused, CallHomeTooLarge
from apps.provisioning.models import CallHome, Run

LARGEST_REPORT = 64 * 1024


def receive_call_home(*, run_id: UUID, token: str, report: dict[str, Any], remote: str) -> bool:
    """Keep a guest's report and wake its run; False when this very report came before.

    For the platform's side. Raises CallHomeRefused, the same for an unknown run, a wrong token and
    one that has ended.
    """
    with transaction.atomic():
        home = (
            CallHome.objects.select_for_update()
            .filter(run=run_id, token_hash=token_hash(token), revoked_at=None)
            .first()
        )
        if home is None:
            raise CallHomeRefused()
        if home.received_at is not None:
            return False
        home.received_at, home.report, home.remote_address = clock.now(), report, remote or None
        try:
            home.save(update_fields=["received_at", "report", "remote_address"])
        except DataError:  # JSON that PostgreSQL does not store: a NUL, half of a surrogate pair
            raise CallHomeMalformed() from None
        journal.write(Run.objects.get(pk=run_id), "called home", step="prove_ready", detail=remote)
        claims.wake([run_id])
    return True


def check_report_size(size: int) -> None:
    """Refuse what is larger than any honest report."""
    if size > LARGEST_REPORT:
        raise CallHomeTooLarge(most=LARGEST_REPORT)
