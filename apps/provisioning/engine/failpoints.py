"""Failpoints: where a rehearsal may kill the worker.

A point is `<step>:<point>` with point one of POINTS. NEOCLOUD_FAILPOINT names one at which the
process kills itself; the file named by NEOCLOUD_FAILPOINT_ONCE remembers that it fired, so the next
worker lives. Inside one process `rehearse` raises Killed there instead. Unset, this costs one
look-up.
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

GOING = ("claim", "intent", "effect", "outcome", "commit")  # outcome: just before the commit
POINTS = (*GOING, *(f"undo-{point}" for point in GOING))


class Killed(BaseException):
    """The worker is gone: nothing may catch this, as nothing can catch SIGKILL."""


class Rehearsal:
    """A point at which the worker dies once, in this process."""

    def __init__(self, wanted: str) -> None:
        self.wanted = wanted
        self.has_fired = False


_WANTED = os.environ.get("NEOCLOUD_FAILPOINT", "")
_ONCE = os.environ.get("NEOCLOUD_FAILPOINT_ONCE", "")
_rehearsals: list[Rehearsal] = []


def is_armed() -> bool:
    """Is there any point at which to die?"""
    return bool(_WANTED or _rehearsals)


def reach(step: str, point: str) -> None:
    """Die here if this is the failpoint asked for."""
    if not is_armed():
        return
    here = f"{step}:{point}"
    for one in _rehearsals:
        if one.wanted == here and not one.has_fired:
            one.has_fired = True
            raise Killed(here)
    if here == _WANTED:
        _die_once()


@contextmanager
def rehearse(step: str, point: str) -> Iterator[Rehearsal]:
    """Until the end of the block the worker dies there, once."""
    if point not in POINTS:
        raise ValueError(f"a point is one of {', '.join(POINTS)}, not {point!r}")
    armed = Rehearsal(f"{step}:{point}")
    _rehearsals.append(armed)
    try:
        yield armed
    finally:
        _rehearsals.remove(armed)


def _die_once() -> None:
    if _ONCE:
        marker = Path(_ONCE)
        if marker.exists():
            return
        marker.touch()
    os.kill(os.getpid(), signal.SIGKILL)
