"""What some tests need of the machine they run on, and what happens where it is missing."""

import os
import shutil
import socket
from collections.abc import Callable, Iterable
from functools import cache
from urllib.parse import urlsplit

import pytest

IRONIC_ANSWERS = 7304  # advisory lock: shared by who asks the lab, exclusive for who crashes it


def chromium() -> str | None:
    """The path of Debian's Chromium."""
    return shutil.which("chromium")


@cache
def has_ironic() -> bool:
    """Whether the lab's Ironic listens where the environment says."""
    parts = urlsplit(os.environ.get("LAB_IRONIC_URL", ""))
    if not parts.hostname:
        return False
    try:
        socket.create_connection((parts.hostname, parts.port or 6385), timeout=5).close()
    except OSError:
        return False
    return True


MARKERS: dict[str, tuple[Callable[[], object], str]] = {
    "browser": (chromium, "Chromium is not installed: apt-get install chromium"),
    "ironic": (has_ironic, "the lab's Ironic does not listen: run the tests with ./dev test"),
}


def needs(markers: Iterable[str]) -> None:
    """Skip a test that lacks what its markers promise; with REQUIRE_ALL=1 it fails instead."""
    for marker in MARKERS.keys() & set(markers):
        is_there, otherwise = MARKERS[marker]
        if is_there():
            continue
        if os.environ.get("REQUIRE_ALL") == "1":
            pytest.fail(f"{otherwise}; REQUIRE_ALL=1 allows no skip", pytrace=False)
        pytest.skip(otherwise)
