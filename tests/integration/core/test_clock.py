"""One clock for Python and SQL, movable in tests."""

from datetime import UTC, datetime, timedelta

from django.db import connection

from apps.accounts.models import Project
from apps.core import clock

JUMP = timedelta(days=40, seconds=3)


def _move(offset):
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('neo.clock_offset', %s, true)", [str(offset)])


def _in_sql():
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.neo_now()")
        return cursor.fetchone()[0]


def test_the_clock_is_aware_in_utc_and_is_the_real_one(acme):
    now = clock.now()
    assert now.utcoffset() == timedelta(0)
    assert abs(now - datetime.now(UTC)) < timedelta(seconds=5)


def test_an_offset_moves_python_sql_and_column_defaults_alike(acme):
    before = clock.now()
    _move(JUMP)
    project = Project.objects.create(name="later")
    for instant in (clock.now(), _in_sql(), project.created_at):
        assert JUMP <= instant - before < JUMP + timedelta(seconds=5)
    _move("")
    assert clock.now() - before < timedelta(seconds=5)


def test_the_clock_goes_on_inside_a_transaction(acme):
    assert clock.now() < clock.now()


def test_billing_seconds_are_whole(acme):
    assert clock.now_seconds().microsecond == 0
    assert clock.now_seconds() <= clock.now()
