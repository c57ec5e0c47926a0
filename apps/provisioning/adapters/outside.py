"""A server as it is seen from outside: does its SSH port answer, and with which host keys."""

import shutil
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass

SECONDS = 5.0
PORT = 22


@dataclass(frozen=True)
class Seen:
    """What answered. `host_keys` None: nothing here can ask for them."""

    banner: str
    host_keys: frozenset[str] | None


def look_at(address: str, *, port: int = PORT) -> Seen:
    """Connect once; what does not answer is seen as nothing, never as an error."""
    banner = ""
    with suppress(OSError), socket.create_connection((address, port), timeout=SECONDS) as link:
        banner = link.recv(255).decode("ascii", "replace").strip()
    if not banner.startswith("SSH-"):
        return Seen("", frozenset())
    return Seen(banner[:100], _host_keys(address, port))


def _host_keys(address: str, port: int) -> frozenset[str] | None:
    program = shutil.which("ssh-keyscan")
    if program is None:
        return None
    try:
        done = subprocess.run(  # noqa: S603 - an address of our own pools
            [program, "-T", str(int(SECONDS)), "-p", str(port), address],
            capture_output=True,
            text=True,
            timeout=3 * SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return frozenset()
    lines = (line.split() for line in done.stdout.splitlines() if not line.startswith("#"))
    return frozenset(" ".join(words[1:3]) for words in lines if len(words) >= 3)
