"""Telling people: a row with the change, in the reader's language; the mail goes out after it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import translation

from apps.core import clock, instants, show
from apps.core.errors import NotFound
from apps.core.money import Money
from apps.core.realms import PLATFORM, current_tenant_id, side, speaker
from apps.core.uuids import uuid7
from apps.notices.models import Notice


@dataclass(frozen=True, slots=True)
class Recipient:
    """How one person is reached: plain values, because people live above this app."""

    id: UUID
    email: str
    language: str


def tell(
    *,
    to: Recipient,
    kind: str,
    dedup_key: str,
    subject: Any,
    body: Any,
    link: str = "",
    **facts: object,
) -> bool:
    """Tell a person of this side once for each `dedup_key`; False when they were told before.

    `subject` and `body` are lazy translations with {facts}; an instant among them is told in this
    side's time zone, money as the reader's language writes it. `link` is a path on this side's
    host.
    """
    with translation.override(to.language):
        notice = Notice(
            tenant=current_tenant_id(),
            recipient=to.id,
            email=to.email,
            language=to.language,
            kind=kind,
            subject=_filled(subject, facts)[:200],
            body=_filled(body, facts),
            link=absolute(link),
            dedup_key=f"{speaker()}:{to.id}:{dedup_key}",
        )
    return _add(notice)


def tell_operators(
    *, kind: str, dedup_key: str, subject: Any, body: Any, link: str = "", **facts: object
) -> None:
    """Tell all operators once for each `dedup_key`; `link` is a path of the console."""
    with translation.override(settings.LANGUAGE_CODE), connection.cursor() as cursor:
        cursor.execute(
            "SELECT public.notices_tell_operators(%s, %s, %s, %s, %s, %s, %s)",
            [
                uuid7(),
                settings.LANGUAGE_CODE,
                kind,
                _filled(subject, facts)[:200],
                _filled(body, facts),
                absolute(link, host="console"),
                f"operators:{dedup_key}",
            ],
        )


@transaction.atomic
def mark_read(*, notice_id: UUID | str, person_id: UUID | None) -> Notice:
    """A person has read it; `person_id` None means an operator and a notice to all of them."""
    notice = Notice.objects.select_for_update().filter(pk=notice_id, recipient=person_id).first()
    if notice is None:
        raise NotFound()
    if notice.read_at is None:
        notice.read_at = clock.now()
        notice.save(update_fields=["read_at"])
    return notice


def note_mailed(*, notice_id: UUID, at: datetime) -> None:
    """The mail server took it."""
    Notice.objects.filter(pk=notice_id).update(mailed_at=at, mail_error="")


def note_mail_failed(*, notice_id: UUID, error: str) -> None:
    """The mail server did not take it; the claim already set when to try again."""
    Notice.objects.filter(pk=notice_id).update(mail_error=error[:500])


def absolute(path: str, *, host: str = "") -> str:
    """The address of a path on this side's host, as it can stand in a mail; "" stays ""."""
    if not path or "://" in path:
        return path
    own = "console" if speaker() == PLATFORM else getattr(side(), "slug", "console")
    name = f"{host or own}.{settings.NEOCLOUD_BASE_DOMAIN}"
    if settings.SECURE_SSL_REDIRECT:
        return f"https://{name}{path}"
    return f"http://{name}:{settings.NEOCLOUD_PORT}{path}"


def _filled(text: Any, facts: dict[str, object]) -> str:
    return str(text).format_map({name: _in_words(value) for name, value in facts.items()})


def _in_words(value: object) -> str:
    if isinstance(value, datetime):
        return instants.in_words(value)
    return show.money(value) if isinstance(value, Money) else str(value)


def _add(notice: Notice) -> bool:
    """Insert unless the key is there; a unique key decides, so two callers at once tell once."""
    Notice.objects.bulk_create([notice], ignore_conflicts=True)
    return Notice.objects.filter(pk=notice.pk).exists()
