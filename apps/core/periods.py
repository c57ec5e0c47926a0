"""Periods: UTC, half-open [start, end), whole seconds; and the billing month."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Invalid

_MONTH = re.compile(r"([0-9]{4})-(0[1-9]|1[0-2])", re.ASCII)
_SECOND = timedelta(seconds=1)


class EndBeforeStart(Invalid):
    """An interval that ends before it starts."""

    code = "end_before_start"
    message = _("The end ({end}) lies before the start ({start}). Swap or correct them.")


class NotAMonth(Invalid):
    """Something else stands where a calendar month is expected."""

    code = "not_a_month"
    message = _("{value} is not a month. Write year and month as 2026-03.")


class UnknownTimeZone(Invalid):
    """A time zone the time zone database does not have."""

    code = "unknown_time_zone"
    message = _("{value} is not a time zone. Use a name such as Asia/Seoul or UTC.")


@dataclass(frozen=True, slots=True, order=True)
class Period:
    """From `start` until just before `end`; equal ends make an empty period.

    Instants with any offset are taken and kept in UTC. Naive instants and fractions of seconds
    raise ValueError, an end before the start raises EndBeforeStart.
    """

    start: datetime
    end: datetime

    def __post_init__(self) -> None:
        object.__setattr__(self, "start", _whole_second(self.start))
        object.__setattr__(self, "end", _whole_second(self.end))
        if self.end < self.start:
            raise EndBeforeStart(field="end_at", start=self.start, end=self.end)

    @property
    def seconds(self) -> int:
        """Elapsed seconds."""
        return (self.end - self.start) // _SECOND

    @property
    def is_empty(self) -> bool:
        return self.start == self.end

    def __contains__(self, instant: datetime) -> bool:
        return self.start <= instant < self.end

    def __str__(self) -> str:
        return f"[{self.start.isoformat()}, {self.end.isoformat()})"

    def overlaps(self, other: Period) -> bool:
        """Whether the two share at least one second."""
        return max(self.start, other.start) < min(self.end, other.end)

    def intersect(self, other: Period) -> Period | None:
        """What the two have in common, None when that is nothing."""
        if not self.overlaps(other):
            return None
        return Period(max(self.start, other.start), min(self.end, other.end))

    def split(self, instants: Iterable[datetime]) -> list[Period]:
        """The pieces between the instants that lie inside; together they are this period."""
        inside = {
            instant.astimezone(UTC) for instant in instants if self.start < instant < self.end
        }
        edges = [self.start, *sorted(inside), self.end]
        return [Period(a, b) for a, b in pairwise(edges) if a < b]

    def subtract(self, others: Iterable[Period]) -> list[Period]:
        """What is left of this period outside all of the others, in order."""
        left: list[Period] = []
        start = self.start
        for other in union(others):
            if not self.overlaps(other):
                continue
            if start < other.start:
                left.append(Period(start, other.start))
            start = max(start, other.end)
        if start < self.end:
            left.append(Period(start, self.end))
        return left


def union(periods: Iterable[Period]) -> list[Period]:
    """The same seconds, each once: in order, without overlaps, touching ones joined."""
    merged: list[Period] = []
    for period in sorted(periods):
        if period.is_empty:
            continue
        if merged and period.start <= merged[-1].end:
            merged[-1] = Period(merged[-1].start, max(merged[-1].end, period.end))
        else:
            merged.append(period)
    return merged


def seconds(periods: Iterable[Period]) -> int:
    """Elapsed seconds of all periods, every second counted once."""
    return sum(period.seconds for period in union(periods))


def clipped(start: datetime, end: datetime | None, within: Period) -> Period | None:
    """The part of [start, end) inside `within`; an open end reaches to the end of `within`.

    Raises EndBeforeStart for an interval that is wrong in itself.
    """
    if end is None:
        if _whole_second(start) >= within.end:
            return None
        return Period(start, within.end).intersect(within)
    return Period(start, end).intersect(within)


def time_zone(name: str, *, field: str = "billing_timezone") -> ZoneInfo:
    """The time zone of that name. Raises UnknownTimeZone naming the field."""
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        raise UnknownTimeZone(field=field, value=name) from None


def billing_month(month: str, tz: str | ZoneInfo, *, field: str = "period") -> Period:
    """The calendar month `"2026-03"` in that time zone, midnight to midnight.

    Raises NotAMonth or UnknownTimeZone.
    """
    zone = time_zone(tz) if isinstance(tz, str) else tz
    return Period(_first_midnight(month, zone, field), _first_midnight(_next(month), zone, field))


def month_of(instant: datetime, tz: str | ZoneInfo) -> str:
    """The billing month an instant falls into, as `"2026-03"`."""
    zone = time_zone(tz) if isinstance(tz, str) else tz
    local = _whole_second(instant.replace(microsecond=0)).astimezone(zone)
    return f"{local.year:04d}-{local.month:02d}"


def months_of(period: Period, tz: str | ZoneInfo) -> Iterator[str]:
    """The billing months a period touches, in order."""
    if period.is_empty:
        return
    month, last = month_of(period.start, tz), month_of(period.end - _SECOND, tz)
    while month <= last:
        yield month
        month = _next(month)


def previous_month(month: str) -> str:
    """The month before, as `"2026-02"`. Raises NotAMonth."""
    year, number = _year_and_month(month, "period")
    return f"{year - 1:04d}-12" if number == 1 else f"{year:04d}-{number - 1:02d}"


def _first_midnight(month: str, zone: ZoneInfo, field: str) -> datetime:
    year, number = _year_and_month(month, field)
    # Where clocks skip this midnight, its old offset names the very instant of the change.
    return datetime(year, number, 1, tzinfo=zone).astimezone(UTC)


def _next(month: str) -> str:
    year, number = _year_and_month(month, "period")
    year, number = (year + 1, 1) if number == 12 else (year, number + 1)
    return f"{year:04d}-{number:02d}"


def _year_and_month(month: object, field: str) -> tuple[int, int]:
    found = _MONTH.fullmatch(month) if isinstance(month, str) else None
    if found is None or not 1970 <= int(found[1]) <= 9998:
        raise NotAMonth(field=field, value=month)
    return int(found[1]), int(found[2])


def _whole_second(instant: datetime) -> datetime:
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise ValueError(f"{instant} has no time zone")
    if instant.microsecond:
        raise ValueError(f"{instant.isoformat()} is not a whole second")
    return instant.astimezone(UTC)
