"""UUIDv7: the layout of RFC 9562, in the order they are made."""

import time
from concurrent.futures import ThreadPoolExecutor
from uuid import RFC_4122

from apps.core.uuids import uuid7


def test_version_variant_and_clock_are_where_the_rfc_puts_them():
    before = time.time_ns() // 1_000_000
    made = uuid7()
    after = time.time_ns() // 1_000_000
    assert made.version == 7
    assert made.variant == RFC_4122
    assert before <= made.int >> 80 <= after + 1


def test_they_sort_in_the_order_they_are_made():
    made = [uuid7() for _ in range(10_000)]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_clock_set_back_does_not_break_the_order(monkeypatch):
    first = uuid7()
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    assert uuid7() > first


def test_threads_never_make_the_same_one():
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _n: uuid7(), range(4000)))
    assert len(set(made)) == 4000
