"""Identifiers that sort by the time they were made: UUID version 7 of RFC 9562."""

import secrets
import threading
import time
from uuid import UUID

_RANDOM_BITS = 62
_VERSION = 7
_VARIANT = 0b10

_lock = threading.Lock()
_last_tick = 0


def uuid7() -> UUID:
    """A new UUIDv7, greater than every one this process made before.

    48 bits of milliseconds, then 12 bits of the fraction of the millisecond, then 62 random bits.
    """
    tick = _next_tick()
    milliseconds, fraction = divmod(tick, 4096)
    value = milliseconds << 80
    value |= _VERSION << 76
    value |= fraction << 64
    value |= _VARIANT << _RANDOM_BITS
    value |= secrets.randbits(_RANDOM_BITS)
    return UUID(int=value)


def _next_tick() -> int:
    """The time in 1/4096 milliseconds, moved on by one when the clock did not."""
    global _last_tick
    now = time.time_ns() * 4096 // 1_000_000
    with _lock:
        _last_tick = max(now, _last_tick + 1)
        return _last_tick
