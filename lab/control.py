"""Asking a running ./dev for an accident: tests and drills crash a service or restart a store.

A request is an empty file in the instance's `control` folder; it is gone once it has been done.
"""

from __future__ import annotations

import time
from pathlib import Path

from lab import ironic, services, stores
from lab.instance import Instance, say
from lab.processes import Children

CRASHABLE = ("ironic", "worker", "beat", "web", "guests")  # by SIGKILL, and they stay down
RESTARTABLE = ("database", "broker")  # the product's; the broker forgets every message
CRASH_IRONIC, START_IRONIC = "crash-ironic", "start-ironic"
RESTART_DATABASE = "restart-database"
VERBS = (
    *(f"crash-{name}" for name in CRASHABLE),
    *(f"start-{name}" for name in CRASHABLE),  # answers again when this is done
    *(f"restart-{name}" for name in RESTARTABLE),
)


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
            what, _dash, name = verb.partition("-")
            _DO[what](name, instance, children)
            say(f"{verb}: done")
            wish.unlink()


def _crash(name: str, instance: Instance, children: Children) -> None:
    children.crash(name)


def _start(name: str, instance: Instance, children: Children) -> None:
    if children.find(name):
        return
    if name == "ironic":
        ironic.wait_until_ready(instance, children, ironic.begin(instance, children))
        return
    environment = services.web_environment(instance, "dev")
    if name == "web":
        services.wait_for_web(
            instance, children, services.start_web(instance, children, environment)
        )
    elif name == "guests":
        services.start_guests(instance, children)
    else:
        {"worker": services.start_worker, "beat": services.start_beat}[name](children, environment)


def _restart(name: str, instance: Instance, children: Children) -> None:
    if name == "database":
        stores.restart_cluster(instance, children, "product")
    else:
        children.crash("valkey")
        stores.start_valkey(instance, children)


_DO = {"crash": _crash, "start": _start, "restart": _restart}
