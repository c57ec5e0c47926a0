"""Questions about the audit trail of the side the connection is on."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.audit.models import AuditEntry

LARGEST_PAGE = 200


@dataclass(frozen=True, slots=True)
class AuditPage:
    """Some entries, newest first, and what to give as `before` for more (None: no more)."""

    entries: Sequence[AuditEntry]
    next_before: int | None


def entries(
    *,
    text: str = "",
    action: str = "",
    subject_type: str = "",
    subject_id: str = "",
    actor_id: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> QuerySet[AuditEntry]:
    """Entries that match every condition given, newest first.

    `text` is looked for in who, what and why; `action` matches itself and what is below it
    (`person` finds `person.created`).
    """
    found = AuditEntry.objects.order_by("-id")
    exact = {"subject_type": subject_type, "subject_id": subject_id, "actor_id": actor_id}
    found = found.filter(**{name: value for name, value in exact.items() if value})
    if action:
        found = found.filter(Q(action=action) | Q(action__startswith=f"{action}."))
    if text:
        found = found.filter(
            Q(actor_name__icontains=text)
            | Q(subject_label__icontains=text)
            | Q(action__icontains=text)
            | Q(reason__icontains=text)
        )
    if since:
        found = found.filter(at__gte=since)
    if until:
        found = found.filter(at__lt=until)
    return found


def search(
    *,
    text: str = "",
    action: str = "",
    subject_type: str = "",
    subject_id: str = "",
    actor_id: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    limit: int = 50,
) -> AuditPage:
    """One page of `entries`; entries added meanwhile never shift it."""
    limit = max(1, min(limit, LARGEST_PAGE))
    found = entries(
        text=text,
        action=action,
        subject_type=subject_type,
        subject_id=subject_id,
        actor_id=actor_id,
        since=since,
        until=until,
    )
    if before is not None:
        found = found.filter(id__lt=before)
    rows = list(found[: limit + 1])
    return AuditPage(rows[:limit], rows[limit - 1].pk if len(rows) > limit else None)
