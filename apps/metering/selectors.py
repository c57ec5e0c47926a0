"""Questions about intervals and usage: what a service did when, as known at an instant."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection

from apps.catalog.models import BillingBasis
from apps.core import clock
from apps.orders.states import ServiceState, charged_states

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

_ALL = """
SELECT a.fact_id, a.service_id, a.version, a.state, greatest(a.start_at, %(since)s),
       least(a.end_at, %(until)s), a.end_at IS NULL,
       EXISTS (SELECT FROM charges c WHERE c.service_id = a.service_id AND c.state = a.state),
       f.source, f.cause, f.run_id, f.node_id, f.recorded_at
FROM spans a
JOIN orders_fact f ON f.id = a.fact_id
WHERE greatest(a.start_at, %(since)s) < least(a.end_at, %(until)s)
ORDER BY a.service_id, a.start_at, a.end_at, a.fact_id
"""
_CHARGED = """
SELECT p.fact_id, p.service_id, p.version, p.state, p.start_at, p.end_at,
       a.end_at IS NULL OR a.end_at > p.end_at, true,
       f.source, f.cause, f.run_id, f.node_id, f.recorded_at
FROM pieces p
JOIN spans a ON a.fact_id = p.fact_id
JOIN orders_fact f ON f.id = p.fact_id
ORDER BY p.service_id, p.version, p.start_at, p.fact_id
"""


@dataclass(frozen=True, slots=True)
class Interval:
    """A service was in a state from `start_at` until just before `end_at`, because of one fact.

    `goes_on`: the state lasts beyond the end asked for. Ends are whole seconds in UTC.
    """

    fact_id: UUID
    service_id: UUID
    version: int
    state: str
    start_at: datetime
    end_at: datetime
    goes_on: bool
    is_charged: bool
    source: str
    cause: str
    run_id: UUID | None
    node_id: UUID | None
    recorded_at: datetime

    @property
    def seconds(self) -> int:
        """Elapsed seconds."""
        return int((self.end_at - self.start_at).total_seconds())


@lru_cache(maxsize=1)
def intervals_sql() -> str:
    """The one text every reading of facts begins with: see `intervals.sql`."""
    return (Path(__file__).parent / "intervals.sql").read_text()


def reading(
    *,
    as_of: datetime,
    since: datetime,
    until: datetime,
    services: Iterable[UUID] | None = None,
    currency: str | None = None,
) -> dict[str, Any]:
    """The parameters of `intervals_sql`: facts recorded up to `as_of`, time in [since, until).

    All services and currencies unless given.
    """
    pairs = [(basis, state) for basis in BillingBasis.values for state in charged_states(basis)]
    return {
        "as_of": as_of,
        "since": since,
        "until": until,
        "services": None if services is None else list(services),
        "currency": currency,
        "bases": [basis for basis, _state in pairs],
        "charged": [state for _basis, state in pairs],
    }


def intervals(
    *,
    service: UUID | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    as_of: datetime | None = None,
) -> list[Interval]:
    """Every interval, charged or not, as known at `as_of` (now): the history of states.

    Without `until`, up to the second of `as_of`. Records that repeat each other are all shown.
    """
    known_at = as_of or clock.now()
    asked = reading(
        as_of=known_at,
        since=since or BEGINNING,
        until=until or known_at.replace(microsecond=0),
        services=None if service is None else [service],
    )
    return _read(_ALL, asked)


def usage(
    *,
    since: datetime,
    until: datetime,
    as_of: datetime | None = None,
    services: Iterable[UUID] | None = None,
    currency: str | None = None,
) -> list[Interval]:
    """The charged intervals inside [since, until), every second of a service's version once."""
    asked = reading(
        as_of=as_of or clock.now(), since=since, until=until, services=services, currency=currency
    )
    return _read(_CHARGED, asked)


def _read(select: str, asked: dict[str, Any]) -> list[Interval]:
    with connection.cursor() as cursor:
        cursor.execute(intervals_sql() + select, asked)
        return [Interval(*row) for row in cursor.fetchall()]


def charged_labels(basis: str) -> list[str]:
    """The charged states of a billing basis as people read them."""
    return [str(ServiceState(state).label) for state in charged_states(basis)]
