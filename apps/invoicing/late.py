"""What turned up after invoices were issued: time not billed, and billed time that was none."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from django.db import connection

from apps.invoicing.models import Document, DocumentKind, DocumentStatus
from apps.metering import selectors as metering
from apps.metering.selectors import Interval

_TOUCHED = """
SELECT f.service_id, min(least(f.start_at, o.start_at))
FROM orders_fact f
LEFT JOIN orders_fact o ON o.id = f.supersedes_id
WHERE f.recorded_at > %(after)s AND f.recorded_at <= %(as_of)s
  AND least(f.start_at, o.start_at) < %(until)s
GROUP BY f.service_id
"""
Known = dict[tuple[UUID, int], list[Interval]]


@dataclass(frozen=True, slots=True)
class Change:
    """Time of an invoiced period that its invoice should have charged, or should not have."""

    invoice: Document
    pieces: tuple[Interval, ...]


def late_usage(*, currency: str, as_of: datetime) -> list[Change]:
    """Charged time known at `as_of` that no invoice issued before has charged, by period."""
    issued = _issued(currency, as_of)
    if not issued:
        return []
    last_as_of = max(invoice.as_of for invoice in issued)
    since_last = _touched(issued, after=last_as_of, as_of=as_of)
    changes = []
    for invoice in issued:
        touched = since_last
        if invoice.period_end > last_as_of:
            touched = _touched([invoice], after=invoice.as_of, as_of=as_of)
        services = _within(invoice, touched)
        if not services:
            continue
        late = _above(_known(invoice, as_of, services), _billed(invoice, issued, services))
        if late:
            changes.append(Change(invoice, tuple(late)))
    return changes


def reduced_usage(*, currency: str, as_of: datetime) -> list[Change]:
    """Time that issued invoices charged and that is not charged by what is known at `as_of`."""
    issued = _issued(currency, as_of)
    changes = []
    for invoice in issued:
        services = _within(invoice, _touched([invoice], after=invoice.as_of, as_of=as_of))
        if not services:
            continue
        billed = _billed(invoice, issued, services)
        reduced = _above(billed, _known(invoice, as_of, services))
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


def _touched(
    invoices: Iterable[Document], *, after: datetime, as_of: datetime
) -> dict[UUID, datetime]:
    """Services with facts recorded in (after, as_of] about the time of the invoices, and from
    when on.
    """
    until = max(invoice.period_end for invoice in invoices)
    with connection.cursor() as cursor:
        cursor.execute(_TOUCHED, {"after": after, "as_of": as_of, "until": until})
        return dict(cursor.fetchall())


def _within(invoice: Document, touched: dict[UUID, datetime]) -> list[UUID]:
    """The services whose use in the invoice's period may be another than it was.

    What is new of one service moves what a reservation covers of others of its SKU.
    """
    services = [service for service, start_at in touched.items() if start_at < invoice.period_end]
    if services and metering.is_reserved(
        since=invoice.period_start, until=invoice.period_end, currency=invoice.currency
    ):
        return metering.rivals(services)
    return services


def _billed(invoice: Document, issued: Iterable[Document], services: list[UUID]) -> list[Interval]:
    """What the invoice charged, and what later ones added for its period."""
    billed = metering.open_usage(
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
    return metering.open_usage(
        since=invoice.period_start,
        until=min(invoice.period_end, as_of.replace(microsecond=0)),
        as_of=as_of,
        services=services,
        currency=invoice.currency,
    )


def _by_version(pieces: Iterable[Interval]) -> Known:
    known: Known = {}
    for piece in pieces:
        known.setdefault((piece.service_id, piece.version), []).append(piece)
    return known


def _above(pieces: Iterable[Interval], known: Iterable[Interval]) -> list[Interval]:
    """The GPUs of the pieces beyond those known, second by second; of several pieces the
    largest counts.
    """
    others = _by_version(known)
    found: list[Interval] = []
    for key, mine in _by_version(pieces).items():
        theirs = others.get(key, [])
        edges = sorted({at for one in (*mine, *theirs) for at in (one.start_at, one.end_at)})
        for start, end in pairwise(edges):
            running = [one for one in mine if one.start_at <= start < one.end_at]
            if not running:
                continue
            largest = max(running, key=lambda one: one.gpus)
            level = max(
                (one.gpus for one in theirs if one.start_at <= start < one.end_at), default=0
            )
            if largest.gpus > level:
                more = largest.gpus - level
                _append(found, replace(largest, start_at=start, end_at=end, gpus=more))
    return found


def _append(found: list[Interval], piece: Interval) -> None:
    """Add a piece, as a part of the last one where it only continues it."""
    last = found[-1] if found else None
    if last is not None and (last.fact_id, last.end_at, last.gpus, last.version) == (
        piece.fact_id,
        piece.start_at,
        piece.gpus,
        piece.version,
    ):
        found[-1] = replace(last, end_at=piece.end_at)
    else:
        found.append(piece)
