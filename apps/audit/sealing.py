"""The seal: a hash chain over committed entries, so that a changed or removed entry is found.

Entries of transactions still open are left for the next seal; ids are read in order.
"""

import hashlib
import json
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from apps.audit.models import AuditEntry, AuditSeal

_LOCK = 0x6E656F02
_FIELDS = (
    "id", "at", "actor_id", "actor_name", "actor_side", "action", "subject_type", "subject_id",
    "subject_label", "result", "reason", "before", "after", "ip", "request_id",
)  # fmt: skip


@dataclass(frozen=True)
class Verdict:
    """What verify found: how far the chain is whole, and the first entry where it is not."""

    sealed: int
    unsealed: int
    broken_at: int | None


def _digest(before: str, entries: list[dict[str, Any]]) -> str:
    running = hashlib.sha256(before.encode())
    for entry in entries:
        running.update(json.dumps(entry, sort_keys=True, default=str).encode())
    return running.hexdigest()


def _closed_entries(after: int, limit: int) -> list[dict[str, Any]]:
    """Entries behind the last seal whose transactions, and all older ones, have ended."""
    return list(
        AuditEntry.objects.filter(id__gt=after)
        .extra(where=["xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"])
        .order_by("id")
        .values(*_FIELDS)[:limit]
    )


def seal(*, limit: int = 5000) -> int:
    """Seal what is new on this side; returns how many entries. Safe to run twice at once."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_try_advisory_xact_lock(%s, hashtext(current_schema()))", [_LOCK]
            )
            if not cursor.fetchone()[0]:
                return 0
        last = AuditSeal.objects.order_by("-id").first()
        entries = _closed_entries(last.last_entry if last else 0, limit)
        if not entries:
            return 0
        AuditSeal.objects.create(
            first_entry=entries[0]["id"],
            last_entry=entries[-1]["id"],
            entries=len(entries),
            digest=_digest(last.digest if last else "", entries),
        )
        return len(entries)


def verify() -> Verdict:
    """Recompute the whole chain of this side."""
    before, sealed = "", 0
    last_entry = 0
    for one in AuditSeal.objects.order_by("id").iterator():
        entries = list(
            AuditEntry.objects.filter(id__gt=last_entry, id__lte=one.last_entry)
            .order_by("id")
            .values(*_FIELDS)
        )
        if len(entries) != one.entries or _digest(before, entries) != one.digest:
            return Verdict(sealed, 0, one.first_entry)
        before, last_entry = one.digest, one.last_entry
        sealed += one.entries
    return Verdict(sealed, AuditEntry.objects.filter(id__gt=last_entry).count(), None)
