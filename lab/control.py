"""Asking a running ./dev for an accident: tests and drills crash the lab or restart the database.

A request is an empty file in the instance's `control` folder; it is gone once it has been done.
"""

from __future__ import annotations

import time
from pathlib import Path

from lab import ironic, stores
from lab.instance import Instance, say
from lab.processes import Children

CRASH_IRONIC = "crash-ironic"  # SIGKILL, and it stays down
START_IRONIC = "start-ironic"  # answers again when this is done
RESTART_DATABASE = "restart-database"  # the product's, losing every connection
VERBS = (CRASH_IRONIC, START_IRONIC, RESTART_DATABASE)


def request(folder: Path, verb: str, *, seconds: float = 60) -> None:
    """Ask and wait until it is done; `folder` is in LAB_CONTROL. Raises TimeoutError."""
    folder.mkdir(parents=True, exist_ok=True)
    wish = folder / verb
    wish.touch()
    deadline = time.monotonic() + seconds
    while wish.exists():
        if time.monotonic() > deadline:
            wish.unlink(missing_ok=True)
            raise TimeoutError(f"{verb}: not done after {seconds:.0f} s; does ./dev still run?")
        time.sleep(0.02)


def folder(instance: Instance) -> Path:
    """Where requests to this instance go."""
    return instance.folder / "control"


def clear(instance: Instance) -> None:
    """Forget requests that nobody answered."""
    for verb in VERBS:
        (folder(instance) / verb).unlink(missing_ok=True)


def serve(instance: Instance, children: Children) -> None:
    """Do what was asked for since the last look."""
    for verb in VERBS:
        wish = folder(instance) / verb
        if wish.exists():
            _do(verb, instance, children)
            say(f"{verb}: done")
            wish.unlink()


def _do(verb: str, instance: Instance, children: Children) -> None:
    if verb == CRASH_IRONIC:
        ironic.crash(children)
    elif verb == START_IRONIC and not children.find("ironic"):
        ironic.wait_until_ready(instance, children, ironic.begin(instance, children))
    elif verb == RESTART_DATABASE:
        stores.restart_cluster(instance, children, "product")
