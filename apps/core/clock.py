"""The only clock: the database's `neo_now()`, so that Python, SQL and every host agree on an
instant.

Read it after the row lock is held; `neo.clock_offset` (an interval) moves it in tests.
"""

from datetime import datetime
from typing import Any

from django.db import connection, models
from django.db.models import Func


class NeoNow(Func):
    """`neo_now()` as an expression, for column defaults and filters."""

    function = "public.neo_now"
    arity = 0
    output_field: Any = models.DateTimeField()


class CurrentTransaction(Func):
    """The id of the running transaction: who reads in id order stops at the oldest one
    still open.
    """

    template = "(pg_current_xact_id()::text::bigint)"
    arity = 0
    output_field: Any = models.BigIntegerField()


def now() -> datetime:
    """This instant, aware and in UTC, with microseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.neo_now()")
        (value,) = cursor.fetchone()
    return value  # type: ignore[no-any-return]


def now_seconds() -> datetime:
    """This instant cut to the whole second: the precision of facts and of billing."""
    return now().replace(microsecond=0)
