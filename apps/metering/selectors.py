"""Questions about intervals and usage: what a service did when, as known at an instant."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Q

from apps.catalog.models import BillingBasis
from apps.core import clock
from apps.orders.models import Reservation, Service, ServiceVersion
from apps.orders.states import TAKES_OR_PAYS, ServiceState, charged_states

BEGINNING = datetime(1970, 1, 1, tzinfo=UTC)

_ALL = """
SELECT a.fact_id, a.service_id, a.version, a.state, greatest(a.start_at, %(since)s),
       least(a.end_at, %(until)s), a.end_at IS NULL,
       EXISTS (SELECT FROM charges c WHERE c.service_id = a.service_id AND c.state = a.state),
       f.source, f.cause, f.run_id, f.node_id, f.recorded_at, z.gpus
FROM spans a
JOIN orders_fact f ON f.id = a.fact_id
JOIN sizes z ON z.service_id = a.service_id AND (z.version IS NULL OR z.version = a.version)
WHERE greatest(a.start_at, %(since)s) < least(a.end_at, %(until)s)
ORDER BY a.service_id, a.start_at, a.end_at, a.fact_id
"""
_CHARGED = """
SELECT p.fact_id, p.service_id, p.version, p.state, p.start_at, p.end_at,
       a.end_at IS NULL OR a.end_at > p.end_at, true,
       f.source, f.cause, f.run_id, f.node_id, f.recorded_at, coalesce(p.gpus, z.gpus)
FROM open_pieces p
JOIN spans a ON a.fact_id = p.fact_id
JOIN orders_fact f ON f.id = p.fact_id
JOIN sizes z ON z.service_id = p.service_id AND (z.version IS NULL OR z.version = p.version)
ORDER BY p.service_id, p.version, p.start_at, p.fact_id
"""
_ALL_OPEN = ", open_pieces AS (SELECT *, NULL::bigint AS gpus FROM pieces)\n"


@dataclass(frozen=True, slots=True)
class Interval:
    """A service was in a state from `start_at` until just before `end_at`, because of one fact.

    `gpus`: those of its version; in `open_usage` those no reservation covers. `goes_on`: the state
    lasts beyond the end asked for. Ends are whole seconds in UTC.
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
    gpus: int

    @property
    def seconds(self) -> int:
        """Elapsed seconds."""
        return int((self.end_at - self.start_at).total_seconds())


@lru_cache(maxsize=4)
def _text(name: str) -> str:
    return (Path(__file__).parent / f"{name}.sql").read_text()


def sizes_sql() -> str:
    """SKU and GPUs of services and their versions: see `sizes.sql`."""
    return _text("sizes")


def intervals_sql() -> str:
    """The one text every reading of facts begins with: see `intervals.sql`, `sizes.sql`."""
    return _text("intervals") + sizes_sql()


def open_sql(*, is_reserved: bool) -> str:
    """The same, up to `open_pieces`: charged time outside reservations, see `coverage.sql`."""
    return intervals_sql() + (_text("coverage") if is_reserved else _ALL_OPEN)


def is_reserved(*, since: datetime, until: datetime, currency: str) -> bool:
    """Whether a reservation of this tenant may cover usage of the time."""
    return Reservation.objects.filter(
        currency=currency, starts_at__lt=until, ends_at__gt=since
    ).exists()


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
    chosen = None if services is None else list(services)
    return {
        "as_of": as_of,
        "since": since,
        "until": until,
        "services": chosen,
        "only": chosen,
        "currency": currency,
        "bases": [basis for basis, _state in pairs],
        "charged": [state for _basis, state in pairs],
        "reserved": [str(status) for status in TAKES_OR_PAYS],
    }


def rivals(services: Iterable[UUID]) -> list[UUID]:
    """The services and all others of their SKUs: those a reservation is shared among."""
    chosen = list(services)
    skus = set(Service.objects.filter(pk__in=chosen).values_list("sku", flat=True))
    skus |= set(ServiceVersion.objects.filter(service__in=chosen).values_list("sku", flat=True))
    others = Q(sku__in=skus) | Q(versions__sku__in=skus)
    return list(Service.objects.filter(others).values_list("pk", flat=True).distinct())


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
    return _read(intervals_sql(), _ALL, asked)


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
    return _read(open_sql(is_reserved=False), _CHARGED, asked)


def open_usage(
    *,
    since: datetime,
    until: datetime,
    as_of: datetime,
    currency: str,
    services: Iterable[UUID] | None = None,
) -> list[Interval]:
    """The charged intervals with the GPUs that no reservation covers: what usage lines charge."""
    asked = reading(as_of=as_of, since=since, until=until, services=services, currency=currency)
    reserved = is_reserved(since=since, until=until, currency=currency)
    if reserved and asked["services"] is not None:
        asked["services"] = rivals(asked["services"])
    return _read(open_sql(is_reserved=reserved), _CHARGED, asked)


def _read(text: str, select: str, asked: dict[str, Any]) -> list[Interval]:
    with connection.cursor() as cursor:
        cursor.execute(text + select, asked)
        return [Interval(*row) for row in cursor.fetchall()]


def charged_labels(basis: str) -> list[str]:
    """The charged states of a billing basis as people read them."""
    return [str(ServiceState(state).label) for state in charged_states(basis)]
