"""Rating: facts and prices to amounts, in one SQL statement (`intervals.sql` and `rating.sql`)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core.money import minor_places
from apps.core.realms import current_tenant_id
from apps.invoicing.errors import NoPrice
from apps.invoicing.models import Document, LineKind
from apps.metering import selectors as metering
from apps.metering.selectors import Interval

_GIVEN_PIECES = """
WITH open_pieces AS (
    SELECT * FROM unnest(
        %(fact_ids)s::uuid[], %(service_ids)s::uuid[], %(versions)s::int[], %(node_ids)s::uuid[],
        %(starts)s::timestamptz[], %(ends)s::timestamptz[], %(gpus)s::bigint[]
    ) AS p (fact_id, service_id, version, node_id, start_at, end_at, gpus)
)
"""
_COLUMNS = (
    "service_id, service_name, version, order_id, order_number, project_id, project_name,"
    " contract_id, node_names, sku, quantity, first_at, last_at, gpu_seconds, gpu_hours,"
    " price_id, price_code, price_kind, unit_price, amount"
)
_LINES = f"SELECT {_COLUMNS} FROM rated ORDER BY position"  # noqa: S608 - our own columns
_TOTAL = "SELECT coalesce(sum(amount), 0) FROM rated"
_STORE = f""",
costs AS MATERIALIZED (SELECT * FROM rated),
stored AS (
    INSERT INTO invoicing_documentline
        (id, document_id, kind, position, ref, description, {_COLUMNS})
    SELECT uuidv7(), %(document)s, %(kind)s, %(after)s + position, service_id::text,
           left(service_name || ' · ' || sku || ' × ' || quantity || %(note)s, 300), {_COLUMNS}
    FROM costs WHERE unit_price IS NOT NULL
    RETURNING amount
)
SELECT (SELECT count(*) FROM stored), (SELECT coalesce(sum(amount), 0) FROM stored), g.*
FROM (SELECT 1) one
LEFT JOIN (
    SELECT sku, service_name, first_at FROM costs WHERE unit_price IS NULL
    ORDER BY first_at, position LIMIT 1
) g ON true
"""  # noqa: S608 - our own columns
_PRICED = """
SELECT p.service_id, p.version, p.fact_id, p.start_at, p.end_at,
       CASE WHEN p.key IS NULL THEN f.code ELSE n.code END,
       CASE WHEN p.key IS NULL THEN f.unit_price ELSE n.amount END,
       CASE WHEN p.key IS NULL THEN f.price_id ELSE k.id END,
       coalesce(p.gpus, z.gpus)
FROM priced p
JOIN sizes z ON z.service_id = p.service_id AND (z.version IS NULL OR z.version = p.version)
LEFT JOIN named n ON n.key = p.key
LEFT JOIN keyed k ON k.key = p.key AND k.start_at <= p.start_at AND k.end_at >= p.end_at
LEFT JOIN fixed f ON f.service_id = p.service_id AND p.key IS NULL
ORDER BY p.service_id, p.version, p.start_at
"""


@dataclass(frozen=True, slots=True)
class RatedLine:
    """What a line says of its usage and price; `amount` is rounded once, to the minor unit."""

    service_id: UUID
    service_name: str
    version: int
    order_id: UUID
    order_number: str
    project_id: UUID
    project_name: str
    contract_id: UUID | None
    node_names: list[str]
    sku: str
    quantity: int
    first_at: datetime
    last_at: datetime
    gpu_seconds: int
    gpu_hours: Decimal
    price_id: UUID
    price_code: str
    price_kind: str
    unit_price: Decimal
    amount: Decimal


@dataclass(frozen=True, slots=True)
class PricedPiece:
    """Charged time of one fact under one price."""

    service_id: UUID
    version: int
    fact_id: UUID
    start_at: datetime
    end_at: datetime
    price_code: str
    unit_price: Decimal | None
    price_id: UUID | None
    gpus: int


@dataclass(frozen=True, slots=True)
class Window:
    """What is rated: charged time in [since, until) of orders in a currency, as known at `as_of`.

    Time that reservations cover is left out. With `pieces`, exactly those instead of what the facts
    say: late usage is rated so.
    """

    as_of: datetime
    since: datetime
    until: datetime
    currency: str
    services: Sequence[UUID] | None = None
    pieces: Sequence[Interval] | None = None
    is_reserved: bool | None = None  # whether a reservation may cover some of it; None: ask

    @property
    def sql(self) -> str:
        """The statement up to `rated`, to be followed by what is wanted of it."""
        if self.pieces is not None:
            return _GIVEN_PIECES + metering.sizes_sql() + _rating_sql()
        return metering.open_sql(is_reserved=self._may_be_covered) + _rating_sql()

    @property
    def _may_be_covered(self) -> bool:
        if self.is_reserved is not None:
            return self.is_reserved
        return metering.is_reserved(since=self.since, until=self.until, currency=self.currency)

    @property
    def parameters(self) -> dict[str, Any]:
        """What the statement is asked with."""
        places = minor_places(self.currency)
        asked = metering.reading(
            as_of=self.as_of,
            since=self.since,
            until=self.until,
            services=self.services,
            currency=self.currency,
        )
        asked |= {
            "tenant": current_tenant_id(),
            "scale": 10**places,
            "minor_unit": Decimal(1).scaleb(-places),
        }
        if self.pieces is None and self.services is not None and self._may_be_covered:
            asked["services"] = metering.rivals(self.services)
        if self.pieces is not None:
            asked |= {
                "fact_ids": [piece.fact_id for piece in self.pieces],
                "service_ids": [piece.service_id for piece in self.pieces],
                "versions": [piece.version for piece in self.pieces],
                "node_ids": [piece.node_id for piece in self.pieces],
                "starts": [piece.start_at for piece in self.pieces],
                "ends": [piece.end_at for piece in self.pieces],
                "gpus": [piece.gpus for piece in self.pieces],
            }
        return asked


@dataclass(frozen=True, slots=True)
class Stored:
    """How many lines were written and what they add up to."""

    lines: int
    total: Decimal


def lines(window: Window) -> list[RatedLine]:
    """The lines the window gives, written nowhere. Raises NoPrice."""
    with connection.cursor() as cursor:
        cursor.execute(window.sql + _LINES, window.parameters)
        found = [RatedLine(*_with_names(row)) for row in cursor.fetchall()]
    for line in found:
        if line.unit_price is None:
            raise _no_price(window, line.sku, line.service_name, line.first_at)
    return found


def total(window: Window) -> Decimal:
    """What the lines of the window add up to. A second without a price counts as nothing: `lines`
    and `store` refuse it.
    """
    with connection.cursor() as cursor:
        cursor.execute(window.sql + _TOTAL, window.parameters)
        (amount,) = cursor.fetchone()
    return Decimal(amount)


def store(
    window: Window, *, document: Document, kind: LineKind, after: int = 0, note: str = ""
) -> Stored:
    """Write the window's lines to a draft, numbered on from `after`. NoPrice: roll back."""
    asked = window.parameters | {
        "document": document.pk,
        "kind": kind.value,
        "after": after,
        "note": note,
    }
    with connection.cursor() as cursor:
        cursor.execute(window.sql + _STORE, asked)
        count, total, sku, service, at = cursor.fetchone()
    if at is not None:
        raise _no_price(window, sku, service, at)
    return Stored(count, total)


def priced_pieces(window: Window) -> list[PricedPiece]:
    """Every piece the window's lines are made of."""
    with connection.cursor() as cursor:
        cursor.execute(window.sql + _PRICED, window.parameters)
        return [PricedPiece(*row) for row in cursor.fetchall()]


@lru_cache(maxsize=1)
def _rating_sql() -> str:
    return (Path(__file__).parent / "rating.sql").read_text()


def _with_names(row: tuple[Any, ...]) -> list[Any]:
    values = list(row)
    names = values[8]
    if isinstance(names, str):  # Django reads jsonb of raw statements as text
        values[8] = json.loads(names)
    return values


def _no_price(window: Window, sku: str, service: str, at: datetime) -> NoPrice:
    return NoPrice(
        field="sku",
        sku=sku,
        service=service,
        currency=window.currency,
        at=at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
    )
