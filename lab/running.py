"""Bringing an instance up and down in the right order, and running commands inside it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import FrameType

from lab import control, ironic, services, stores
from lab.install import install, python
from lab.instance import ROOT, Instance, die, say
from lab.processes import Child, Children, child_environment, sweep

STOP_ORDER = (
    ("web", "worker", "beat", "guests"),
    ("ironic",),
    ("valkey", "postgres-product", "postgres-lab"),
)
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextlib.contextmanager
def held(instance: Instance) -> Iterator[Children]:
    """The instance is ours; whatever happens inside, everything started is stopped after."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    for number in SIGNALS:
        signal.signal(number, leave)
    children = Children(instance)
    try:
        sweep(instance)
        control.clear(instance)
        yield children
    finally:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # an impatient second Ctrl-C leaves no half
        instance.enter("stopping")
        began = time.monotonic()
        children.stop_all(STOP_ORDER)
        say(f"{instance.name} stopped in {time.monotonic() - began:.1f} s")


def bring_up(
    instance: Instance, children: Children, *, product: bool = True, lab: bool = True
) -> None:
    """Start stores, then the lab, then (with `product`) web, worker and beat."""
    services.check_given_addresses(for_tests=False)
    install()
    instance.choose_ports(("web", "product", "lab", "valkey", "ironic"))
    clusters = (["product"] if services.own_database() else []) + (["lab"] if lab else [])
    stores.start_clusters(instance, children, clusters)
    if services.own_broker():
        stores.start_valkey(instance, children)
    say("stores are up")
    upgrade = _manage(instance, children, "upgrade") if product else None
    machines = _start_lab(instance, children) if lab else None
    web = _start_product(instance, children, upgrade) if upgrade else None
    if machines:
        ironic.wait_until_ready(instance, children, machines)
        ironic.enrol(instance)
        say("Ironic is up")
        services.start_guests(instance, children)
    if web:
        children.finish("seed_demo", _manage(instance, children, "seed_demo"))
        services.wait_for_web(instance, children, web)
    instance.enter("up")
    say("everything is up" if product else "up")


def _start_lab(instance: Instance, children: Children) -> Child:
    schema = ironic.begin_schema(instance, children)
    ironic.finish_schema(instance, children, schema)
    return ironic.begin(instance, children)


def _start_product(
    instance: Instance, children: Children, upgrade: subprocess.Popen[bytes]
) -> Child:
    children.finish("upgrade", upgrade)
    environment = services.web_environment(instance, "dev")
    web = services.start_web(instance, children, environment)
    services.start_worker(children, environment)
    services.start_beat(children, environment)
    return web


def _manage(instance: Instance, children: Children, command: str) -> subprocess.Popen[bytes]:
    (instance.log / f"{command}.log").unlink(missing_ok=True)
    environment = manage_environment(instance, command, "dev")
    return children.step(command, [python(), "manage.py", command], environment=environment)


def manage_environment(instance: Instance, command: str, settings: str) -> dict[str, str]:
    """Migrations run as the owner of the tables, everything else as the application."""
    if command in ("upgrade", "migrate", "migrate_schemas"):
        return services.owner_environment(instance, settings)
    return services.web_environment(instance, settings)


def test_environment(instance: Instance) -> dict[str, str]:
    """For pytest and benchmarks: with the addresses from which they make databases of their own."""
    return child_environment(instance, services.test_environment(instance))


def detach(instance: Instance, words: Sequence[str]) -> None:
    """Start ./dev again in the background and return once that instance is up."""
    instance.log.mkdir(parents=True, exist_ok=True)
    log = instance.log / "dev.log"
    with open(log, "wb") as out:
        child = subprocess.Popen(
            [sys.executable, ROOT / "dev", *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    while not ((holder := instance.holder()) and holder[1] == "up"):
        if child.poll() is not None:
            sys.stderr.write(log.read_text())
            raise SystemExit(child.returncode)
        time.sleep(0.1)
    instance.reload()
    say(f"{instance.name} is up in the background; ./dev down --instance {instance.name} stops it")


def attend(
    instance: Instance, children: Children, until: Callable[[], bool] = lambda: False
) -> None:
    """Keep the services running and do what tests and drills ask for."""
    children.watch(
        until=until, each=lambda: control.serve(instance, children), spared=control.CRASHABLE
    )


def foreground(
    argv: Sequence[str | Path],
    environment: Mapping[str, str],
    attending: Callable[[Callable[[], bool]], None] | None = None,
) -> int:
    """Run a command at this terminal and give back its code; Ctrl-C is its own affair."""
    before = signal.signal(signal.SIGINT, lambda number, frame: None)
    try:
        with subprocess.Popen([str(word) for word in argv], cwd=ROOT, env=environment) as process:
            try:
                if attending:
                    attending(lambda: process.poll() is not None)
                return process.wait()
            finally:
                if process.poll() is None:
                    process.terminate()
    finally:
        signal.signal(signal.SIGINT, before)


def tell_story(instance: Instance, children: Children | None) -> tuple[int, str]:
    """Run the demo; its output is passed on as it comes, but for the RESULT line given back."""
    environment = child_environment(instance, services.web_environment(instance, "dev"))
    process = subprocess.Popen(
        [python(), "lab/demo.py", "--base-url", f"http://127.0.0.1:{instance.port('web')}"],
        cwd=ROOT,
        env={**environment, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    result: list[str] = []

    def pass_on() -> None:
        for line in process.stdout or ():
            if line.startswith("RESULT "):
                result.append(line.rstrip("\n"))
            else:
                print(line, end="", flush=True)

    reader = threading.Thread(target=pass_on, daemon=True)
    reader.start()
    try:
        if children:
            attend(instance, children, lambda: process.poll() is not None)
        process.wait()
        reader.join(timeout=5)
    finally:
        if process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    return process.returncode, result[-1] if result else ""


def introduce(instance: Instance) -> None:
    """Print where to look and how to sign in."""
    web = instance.port("web")
    sign_ins = _sign_ins(instance)
    print(f"\n  console   http://console.localhost:{web}/")
    print(f"  portal    http://acme.localhost:{web}/")
    print(f"  finance   http://console.localhost:{web}/finance/")
    for line in sign_ins:
        print(f"  sign in   {line}")
    print(f"  password  {instance.secret('demo')}   (the same for every sign-in of the demo)")
    print(f"  logs      {instance.log}\n", flush=True)


def _sign_ins(instance: Instance) -> list[str]:
    """What `seed_demo` printed as `sign-in: …`."""
    path = instance.log / "seed_demo.log"
    lines = path.read_text().splitlines() if path.exists() else []
    return [line.partition(":")[2].strip() for line in lines if line.startswith("sign-in:")]


def stop_holder(instance: Instance) -> bool:
    """Ask who runs this instance to stop and wait; False when nobody does."""
    asked: int | None = None
    for _ in range(600):
        holder = instance.holder()
        if not holder:
            return asked is not None
        pid, phase = holder
        if phase != "stopping" and pid and asked != pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)  # the lock is held, so this pid is its holder
        asked = pid
        time.sleep(0.1)
    return die(f"pid {asked} does not stop; see {instance.log}, then kill {asked}")
