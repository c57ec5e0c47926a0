"""What turned up after an invoice was issued: time not billed, and billed time that was none."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from django.db import connection

from apps.core.periods import Period
from apps.invoicing.models import Document, DocumentKind, DocumentStatus
from apps.metering import selectors as metering
from apps.metering.selectors import Interval

_TOUCHED = """
SELECT DISTINCT f.service_id
FROM orders_fact f
LEFT JOIN orders_fact o ON o.id = f.supersedes_id
WHERE f.recorded_at > %(after)s AND f.recorded_at <= %(as_of)s
  AND least(f.start_at, o.start_at) < %(until)s
"""
Known = dict[tuple[UUID, int], list[Period]]


@dataclass(frozen=True, slots=True)
class Change:
    """Time of an invoiced period that its invoice should have charged, or should not have."""

    invoice: Document
    pieces: tuple[Interval, ...]


def late_usage(*, currency: str, as_of: datetime) -> list[Change]:
    """Charged time known at `as_of` that no invoice issued before has charged, by period."""
    issued = _issued(currency, as_of)
    last_as_of = max((invoice.as_of for invoice in issued), default=as_of)
    changes = []
    for invoice in issued:
        is_over = invoice.period_end <= last_as_of
        services = _touched(invoice, after=last_as_of if is_over else invoice.as_of, as_of=as_of)
        if not services:
            continue
        billed = _by_service(_billed(invoice, issued, services))
        late = _without(_known(invoice, as_of, services), billed)
        if late:
            changes.append(Change(invoice, tuple(late)))
    return changes


def reduced_usage(*, currency: str, as_of: datetime) -> list[Change]:
    """Time that issued invoices charged and that is not charged by what is known at `as_of`."""
    issued = _issued(currency, as_of)
    changes = []
    for invoice in issued:
        services = _touched(invoice, after=invoice.as_of, as_of=as_of)
        if not services:
            continue
        now = _by_service(_known(invoice, as_of, services))
        reduced: list[Interval] = []
        for piece in _without(_billed(invoice, issued, services), now):
            reduced += _without([piece], _by_service(reduced))
        if reduced:
            changes.append(Change(invoice, tuple(reduced)))
    return changes


def _issued(currency: str, as_of: datetime) -> list[Document]:
    return list(
        Document.objects.filter(
            kind=DocumentKind.INVOICE,
            status=DocumentStatus.ISSUED,
            currency=currency,
            as_of__lt=as_of,
        ).order_by("period_start")
    )


def _touched(invoice: Document, *, after: datetime, as_of: datetime) -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHED, {"after": after, "as_of": as_of, "until": invoice.period_end})
        return [service for (service,) in cursor.fetchall()]


def _billed(invoice: Document, issued: Iterable[Document], services: list[UUID]) -> list[Interval]:
    """What the invoice charged, and what later ones added for its period."""
    billed = metering.usage(
        since=invoice.period_start,
        until=invoice.supply_end,
        as_of=invoice.as_of,
        services=services,
        currency=invoice.currency,
    )
    for later in issued:
        if later.as_of > invoice.as_of:
            billed += _known(invoice, later.as_of, services)
    return billed


def _known(invoice: Document, as_of: datetime, services: list[UUID]) -> list[Interval]:
    """The charged time of the invoice's period as known at an instant."""
    return metering.usage(
        since=invoice.period_start,
        until=min(invoice.period_end, as_of.replace(microsecond=0)),
        as_of=as_of,
        services=services,
        currency=invoice.currency,
    )


def _by_service(pieces: Iterable[Interval]) -> Known:
    known: Known = {}
    for piece in pieces:
        key = (piece.service_id, piece.version)
        known.setdefault(key, []).append(Period(piece.start_at, piece.end_at))
    return known


def _without(pieces: Iterable[Interval], known: Known) -> list[Interval]:
    """What is left of the pieces outside the known time."""
    return [
        replace(piece, start_at=rest.start, end_at=rest.end)
        for piece in pieces
        for rest in Period(piece.start_at, piece.end_at).subtract(
            known.get((piece.service_id, piece.version), [])
        )
    ]
