"""Callers that race.

Threads with connections of their own, on a database copy where work is committed.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Barrier, Thread
from typing import Any

from django.conf import settings
from django.db import connections

from apps.tenancy.context import platform_context
from tests import databases


@contextmanager
def committed_database(name: str) -> Iterator[None]:
    """New connections go to a fresh copy of the template until the end.

    The test's own one is left alone.
    """
    entry = settings.DATABASES["default"]
    before = entry["NAME"]
    copied = databases.copy(name)
    entry["NAME"] = copied
    try:
        yield
    finally:
        entry["NAME"] = before
        databases.drop(copied)


def together(jobs: Sequence[Callable[[], Any]]) -> list[Any]:
    """Start all jobs at one moment; what each returned, or the exception it raised."""
    results: list[Any] = [None] * len(jobs)
    barrier = Barrier(len(jobs))

    def run(place: int, job: Callable[[], Any]) -> None:
        try:
            with platform_context():  # connected before the start
                connections["default"].ensure_connection()
                barrier.wait(timeout=60)
                results[place] = job()
        except Exception as error:
            results[place] = error
        finally:
            connections["default"].close()

    threads = [Thread(target=run, args=(place, job)) for place, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def apart(job: Callable[[], Any]) -> Any:
    """Run one job on the committed database, on the platform's side.

    An exception is raised here.
    """
    (result,) = together([job])
    if isinstance(result, Exception):
        raise result
    return result
