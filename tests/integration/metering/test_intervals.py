"""Intervals follow from facts as they were known at an instant."""

from apps.metering import selectors
from apps.orders.states import ServiceState
from tests.builders import a_fact, a_service, an_instant

DAY = an_instant("2026-03-10T00:00:00")
NEXT = an_instant("2026-03-11T00:00:00")
LATER = an_instant("2026-04-01T00:00:00")


def charged(as_of=LATER, since=DAY, until=NEXT):
    """Charged time as hours of the day."""
    return [
        ((piece.start_at - DAY).total_seconds() / 3600, (piece.end_at - DAY).total_seconds() / 3600)
        for piece in selectors.usage(since=since, until=until, as_of=as_of)
    ]


def at(hour):
    return f"2026-03-10T{hour:02}:00:00"


def test_a_live_fact_lasts_until_the_next_one(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.DELETING, at(12))
    assert charged() == [(10, 12)]


def test_an_open_fact_lasts_to_the_end_of_what_is_asked(acme):
    a_fact(a_service(), ServiceState.ACTIVE, at(10))
    assert charged() == [(10, 24)]


def test_facts_recorded_after_the_instant_are_unknown(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.DELETING, at(12), recorded=at(15))
    assert charged(as_of=an_instant(at(14))) == [(10, 24)]
    assert charged(as_of=an_instant(at(15))) == [(10, 12)]


def test_records_that_repeat_and_overlap_count_once(acme):
    service = a_service()
    for start, end in ((0, 6), (0, 6), (4, 10), (10, 12), (14, 14)):
        a_fact(service, start=at(start), end=at(end))
    assert sum(end - start for start, end in charged()) == 12


def test_an_imported_record_does_not_end_a_live_one(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.FAILED, at(11), at(12))
    a_fact(service, ServiceState.DELETING, at(13))
    assert charged() == [(10, 13)]


def test_of_two_live_facts_in_one_second_the_later_recorded_counts(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10), recorded=at(10))
    a_fact(service, ServiceState.DELETING, at(10), recorded="2026-03-10T10:00:00.000001")
    assert charged() == []


def test_a_correction_moves_the_start_of_a_live_fact(acme):
    service = a_service()
    active = a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.DELETING, at(14))
    a_fact(service, ServiceState.ACTIVE, at(11), recorded=at(20), supersedes=active)
    assert charged(as_of=an_instant(at(19))) == [(10, 14)]
    assert charged() == [(11, 14)]


def test_a_correction_moves_the_end_although_later_facts_follow(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10))
    deleting = a_fact(service, ServiceState.DELETING, at(14))
    a_fact(service, ServiceState.TERMINATED, at(15))
    a_fact(service, ServiceState.DELETING, at(12), at(15), recorded=at(20), supersedes=deleting)
    assert charged() == [(10, 12)]


def test_a_correction_keeps_the_place_of_what_it_replaces(acme):
    service = a_service()
    active = a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.DELETING, at(12))
    a_fact(service, ServiceState.ACTIVE, at(12), recorded=at(20), supersedes=active)
    assert charged() == []


def test_a_correction_of_a_correction_counts(acme):
    service = a_service()
    first = a_fact(service, ServiceState.ACTIVE, at(10))
    a_fact(service, ServiceState.DELETING, at(14))
    second = a_fact(service, ServiceState.ACTIVE, at(11), at(14), recorded=at(20), supersedes=first)
    a_fact(service, ServiceState.ACTIVE, at(12), at(13), recorded=at(21), supersedes=second)
    assert charged() == [(12, 13)]


def test_a_fact_taken_back_never_was(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10))
    stopped = a_fact(service, ServiceState.FAILED, at(11))
    a_fact(service, ServiceState.DELETING, at(12))
    a_fact(service, "", at(11), recorded=at(20), supersedes=stopped)
    assert charged() == [(10, 12)]


def test_versions_are_counted_apart(acme):
    service = a_service()
    a_fact(service, ServiceState.ACTIVE, at(10), version=1)
    a_fact(service, ServiceState.ACTIVE, at(12), version=2)
    a_fact(service, ServiceState.DELETING, at(14), version=2)
    pieces = selectors.usage(since=DAY, until=NEXT, as_of=LATER)
    assert [(piece.version, piece.seconds) for piece in pieces] == [(1, 7200), (2, 7200)]


def test_the_history_shows_every_state_with_its_cause(acme):
    service = a_service()
    a_fact(service, ServiceState.PROVISIONING, at(9), cause="order placed")
    a_fact(service, ServiceState.ACTIVE, at(10), cause="ready")
    history = selectors.intervals(service=service.pk, as_of=an_instant("2026-03-10T12:00:00.4"))
    assert [
        (one.state, one.seconds, one.cause, one.is_charged, one.goes_on) for one in history
    ] == [
        ("provisioning", 3600, "order placed", False, False),
        ("active", 7200, "ready", True, True),
    ]
