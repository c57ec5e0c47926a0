"""An instance: one set of running services with its own ports, passwords, data, logs and lock.

`main` is the one people look at; `test` (and any other name) is set up for speed, not for keeping.
"""

from __future__ import annotations

import base64
import contextlib
import fcntl
import json
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NoReturn

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"
BEGAN = time.monotonic()

USUAL_PORTS = {"web": 8000, "product": 5433, "lab": 5533, "valkey": 6380, "ironic": 6385}
SECRETS = (
    "postgres",
    "owner",
    "app",
    "lab_postgres",
    "lab_ironic_db",
    "valkey",
    "ironic",
    "demo",
)


def say(text: str) -> None:
    """Tell the person at the terminal what just became true, and when."""
    print(f"{time.monotonic() - BEGAN:6.1f}  {text}", file=sys.stderr, flush=True)


class Trouble(SystemExit):
    """Something a person has to know: what went wrong and the way out. Ends ./dev with code 1."""

    def __init__(self, message: str) -> None:
        super().__init__(1)
        self.message = message


def die(message: str) -> NoReturn:
    """Stop here with a message that names the way out."""
    raise Trouble(message)


def write_private(path: Path, text: str) -> None:
    """Write atomically, mode 0600: an interrupted write leaves the old file whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.new")
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as out:
        out.write(text)
    os.replace(temporary, path)


def tail(path: Path, lines: int = 15) -> str:
    """The last lines of a log, indented for a message."""
    try:
        return "\n".join(
            "  " + line for line in path.read_text(errors="replace").splitlines()[-lines:]
        )
    except OSError:
        return "  (no log)"


def port_is_free(number: int) -> bool:
    """Whether a server could listen here. SO_REUSEPORT is left off on purpose: it hides others."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", number))
        except OSError:
            return False
    return True


def choose_port(*, last: int | None, usual: int, avoid: set[int]) -> int:
    """The port of last time, else the usual one, else the next free one above it.

    Never the kernel's choice: that lies in the ephemeral range and may be taken at the next start.
    """
    for wanted in (last, *range(usual, usual + 400)):
        if wanted and wanted not in avoid and port_is_free(wanted):
            return wanted
    die(f"no free port between {usual} and {usual + 400}; stop something that listens there")


class Instance:
    """The state file, the lock and the folder of one instance."""

    def __init__(self, name: str) -> None:
        if not re.fullmatch(r"[a-z][a-z0-9-]{0,30}", name):
            die(f"instance name {name!r}: want small letters, digits and dashes, e.g. main or test")
        self.name = name
        self.folder = LOCAL / name
        self.log = self.folder / "log"
        self.quick = name != "main"  # may lose its data in a power cut, and deploys fast
        self._handle: IO[str] | None = None
        self.state = self._load()

    def _load(self) -> dict[str, Any]:
        path = self.folder / "state.json"
        try:
            state: dict[str, Any] = json.loads(path.read_text())
        except FileNotFoundError:
            state = {}
        except ValueError:
            die(f"{path} is not readable; ./dev reset --instance {self.name} starts over")
        state.setdefault("ports", {})
        kept = state.setdefault("secrets", {})
        state.setdefault("id", secrets.token_hex(5))  # names root's data folder; outlives a move
        for name in SECRETS:
            kept.setdefault(name, secrets.token_urlsafe(9 if name == "demo" else 24))
        kept.setdefault("django_key", secrets.token_urlsafe(48))
        kept.setdefault("key", base64.b64encode(secrets.token_bytes(32)).decode())
        return state

    def save(self) -> None:
        """Keep ports and passwords for the next start."""
        write_private(self.folder / "state.json", json.dumps(self.state, indent=1))

    def reload(self) -> None:
        """See what the holder of the lock wrote."""
        self.state = self._load()

    def secret(self, name: str) -> str:
        """A password made once for this instance."""
        return str(self.state["secrets"][name])

    def port(self, name: str) -> int:
        """The port chosen for a service of this instance."""
        return int(self.state["ports"][name])

    def choose_ports(self, names: tuple[str, ...]) -> None:
        """Fix the ports of services about to start; the same as last time wherever free."""
        ports = self.state["ports"]
        others = _ports_of_other_instances(self.name)
        for name in names:
            chosen = choose_port(
                last=ports.get(name),
                usual=USUAL_PORTS[name],
                avoid=others | {number for key, number in ports.items() if key != name},
            )
            if chosen != ports.get(name, chosen):
                say(f"port {ports[name]} is taken; {name} uses {chosen}")
            ports[name] = chosen
        self.save()

    # ------------------------------------------------------------------ the lock
    def take(self) -> bool:
        """Take this instance for us. The kernel drops the lock however we die: never stale."""
        self.folder.mkdir(parents=True, exist_ok=True)
        handle = open(self.folder / "lock", "a+")  # noqa: SIM115  kept open: it is the lock
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            handle.close()
            return False
        self._handle = handle  # not inheritable (PEP 446): children never keep it
        self.enter("starting")
        return True

    def enter(self, phase: str) -> None:
        """Say how far the holder is: starting, up or stopping."""
        if self._handle:
            self._handle.seek(0)
            self._handle.truncate()
            self._handle.write(f"{os.getpid()} {phase}")
            self._handle.flush()

    def holder(self) -> tuple[int, str] | None:
        """Pid and phase of who runs this instance, or None when nobody does."""
        try:
            with open(self.folder / "lock", "a+") as handle:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except OSError:
                    handle.seek(0)
                    words = handle.read().split()
                    return (int(words[0]), words[1]) if len(words) == 2 else (0, "starting")
        except FileNotFoundError:
            return None
        return None

    def wait_for_phase(self, *, seconds: float) -> str | None:
        """Wait until the holder is up (`up`) or gone (None)."""
        deadline = time.monotonic() + seconds
        while (held := self.holder()) and held[1] != "up":
            if time.monotonic() > deadline:
                die(f"pid {held[0]} is still {held[1]} after {seconds:.0f} s; see {self.log}")
            time.sleep(0.1)
        return held[1] if held else None


def _ports_of_other_instances(name: str) -> set[int]:
    taken: set[int] = set()
    for path in LOCAL.glob("*/state.json"):
        if path.parent.name != name:
            with contextlib.suppress(OSError, ValueError):
                taken.update(json.loads(path.read_text()).get("ports", {}).values())
    return taken


def instances() -> Iterator[Instance]:
    """Every instance this checkout has ever had."""
    for path in sorted(LOCAL.glob("*/state.json")):
        yield Instance(path.parent.name)
