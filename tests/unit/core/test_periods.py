"""Periods: UTC, half-open, whole seconds, and months of the customer's time zone."""

from datetime import UTC, datetime, timedelta, timezone
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core import periods
from apps.core.errors import Invalid
from apps.core.periods import Period, billing_month, clipped, month_of, union

EPOCH = datetime(2026, 6, 1, tzinfo=UTC)
KST = timezone(timedelta(hours=9))


def at(second: int) -> datetime:
    return EPOCH + timedelta(seconds=second)


def span(start: int, end: int) -> Period:
    return Period(at(start), at(end))


spans = st.tuples(st.integers(0, 60), st.integers(0, 60)).map(lambda p: span(min(p), max(p)))


def seconds_of(*some: Period) -> set[int]:
    return {second for second in range(61) for period in some if at(second) in period}


def test_instants_are_kept_in_utc_whatever_offset_they_came_with():
    period = Period(datetime(2026, 6, 1, 9, tzinfo=KST), datetime(2026, 6, 1, 10, tzinfo=KST))
    assert period == span(0, 3600)
    assert period.start.tzinfo is UTC
    assert period.seconds == 3600


def test_the_start_belongs_to_it_and_the_end_does_not():
    assert at(0) in span(0, 1)
    assert at(1) not in span(0, 1)
    assert at(0) not in span(0, 0)


def test_an_end_before_the_start_is_refused_and_named():
    with pytest.raises(Invalid) as caught:
        span(1, 0)
    assert (caught.value.field, caught.value.code) == ("end_at", "end_before_start")


def test_naive_instants_and_fractions_are_refused():
    with pytest.raises(ValueError, match="time zone"):
        Period(datetime(2026, 6, 1), at(1))  # noqa: DTZ001 - the point of the test
    with pytest.raises(ValueError, match="whole second"):
        Period(at(0), at(1) + timedelta(microseconds=1))


@pytest.mark.parametrize(
    ("month", "zone", "start", "hours"),
    [
        ("2026-03", "Asia/Seoul", "2026-02-28T15:00:00+00:00", 744),
        ("2027-02", "Asia/Seoul", "2027-01-31T15:00:00+00:00", 672),
        ("2028-02", "Asia/Seoul", "2028-01-31T15:00:00+00:00", 696),
        ("2027-03", "America/Los_Angeles", "2027-03-01T08:00:00+00:00", 743),
        ("2027-11", "America/Los_Angeles", "2027-11-01T07:00:00+00:00", 721),
        ("2026-12", "UTC", "2026-12-01T00:00:00+00:00", 744),
    ],
)
def test_a_month_goes_from_midnight_to_midnight_of_the_customer(month, zone, start, hours):
    period = billing_month(month, zone)
    assert period.start.isoformat() == start
    assert period.seconds == hours * 3600


def test_a_month_whose_first_midnight_is_skipped_starts_at_the_change():
    # Clocks in Asuncion went from 24:00 on 30 September 2023 to 01:00.
    october = billing_month("2023-10", "America/Asuncion")
    assert october.start == billing_month("2023-09", "America/Asuncion").end
    assert october.start.astimezone(ZoneInfo("America/Asuncion")).hour == 1


@given(
    st.integers(1980, 2060),
    st.integers(1, 12),
    st.sampled_from(
        [
            "Asia/Seoul",
            "America/Los_Angeles",
            "Europe/Berlin",
            "Africa/Cairo",
            "Pacific/Apia",
            "UTC",
        ]
    ),
)
def test_months_follow_each_other_without_gap_or_overlap(year, number, zone):
    month = f"{year:04d}-{number:02d}"
    after = f"{year + number // 12:04d}-{number % 12 + 1:02d}"
    period = billing_month(month, zone)
    assert period.end == billing_month(after, zone).start
    assert month_of(period.start, zone) == month
    assert month_of(period.end, zone) == after
    assert list(periods.months_of(period, zone)) == [month]


@pytest.mark.parametrize("wrong", ["2026-13", "2026-3", "202603", "", None, "0000-01", "2026-03 "])
def test_what_is_no_month_names_the_field(wrong):
    with pytest.raises(Invalid) as caught:
        billing_month(wrong, "UTC", field="month")
    assert (caught.value.field, caught.value.code) == ("month", "not_a_month")


@pytest.mark.parametrize("wrong", ["Mars/Base", "", "../etc/passwd", "Asia"])
def test_what_is_no_time_zone_is_refused(wrong):
    with pytest.raises(Invalid) as caught:
        billing_month("2026-03", wrong)
    assert caught.value.code == "unknown_time_zone"


def test_an_open_interval_reaches_to_the_end_of_the_period():
    assert clipped(at(10), None, span(0, 60)) == span(10, 60)
    assert clipped(at(-10), None, span(0, 60)) == span(0, 60)
    assert clipped(at(60), None, span(0, 60)) is None
    assert clipped(at(5), at(90), span(0, 60)) == span(5, 60)
    with pytest.raises(Invalid):
        clipped(at(9), at(5), span(0, 60))


def test_repeated_and_overlapping_records_count_once():
    assert periods.seconds([span(0, 10), span(0, 10), span(5, 20), span(30, 40)]) == 30


@given(st.lists(spans, max_size=8))
def test_a_union_holds_the_same_seconds_in_order_without_touching(some):
    joined = union(some)
    assert seconds_of(*joined) == seconds_of(*some)
    assert all(a.end < b.start for a, b in pairwise(joined))
    assert periods.seconds(some) == len(seconds_of(*some))


@given(spans, spans)
def test_an_intersection_holds_what_both_have(a, b):
    common = a.intersect(b)
    assert common == b.intersect(a)
    assert (seconds_of(common) if common else set()) == seconds_of(a) & seconds_of(b)


@given(spans, st.lists(spans, max_size=5))
def test_subtracting_leaves_what_none_of_the_others_has(a, others):
    assert seconds_of(*a.subtract(others)) == seconds_of(a) - seconds_of(*others)


@given(spans, st.lists(st.integers(-5, 65).map(at), max_size=6))
def test_the_pieces_of_a_split_are_the_whole(a, instants):
    pieces = a.split(instants)
    assert sum(piece.seconds for piece in pieces) == a.seconds
    assert seconds_of(*pieces) == seconds_of(a)
    assert all(
        instant not in piece or instant == piece.start for piece in pieces for instant in instants
    )
