"""Child processes that never outlive ./dev: started, watched, stopped and, if need be, swept up."""

from __future__ import annotations

import contextlib
import ctypes
import os
import pwd
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lab.instance import ROOT, Instance, die, say, tail

PR_SET_PDEATHSIG = 1
MARK = "NEOCLOUD_DEV"
DROPPED = (
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONPATH",
    "PYTHONHOME",
    "OS_CLOUD",
    "DJANGO_SETTINGS_MODULE",
)

Arguments = Sequence[str | Path | int]


def child_environment(
    instance: Instance | None, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The caller's environment without what breaks children, with our mark and no proxy."""
    environment = {name: value for name, value in os.environ.items() if name not in DROPPED}
    environment.update(PYTHONUNBUFFERED="1")
    for name in ("NO_PROXY", "no_proxy"):
        environment[name] = "127.0.0.1,localhost,.localhost"
    if instance:
        environment[MARK] = str(instance.folder)
    return {**environment, **(extra or {})}


def _tie_to_parent(parent: int, with_signal: int) -> Callable[[], None]:
    libc = ctypes.CDLL(None, use_errno=True)

    def tie() -> (
        None
    ):  # after the change of user, which would clear it; bound to the calling thread
        if hasattr(libc, "prctl"):
            libc.prctl(PR_SET_PDEATHSIG, with_signal)
        if os.getppid() != parent:
            os._exit(1)  # the parent died between fork and prctl

    return tie


@dataclass
class Child:
    """One running service and how to end it."""

    name: str
    process: subprocess.Popen[bytes]
    stop_signal: int = signal.SIGTERM
    firm_signal: int | None = None  # for those whose polite stop may take long (Celery)
    log: Path = field(default_factory=Path)

    def signal(self, number: int) -> None:
        """Send a signal unless it has ended already."""
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                self.process.send_signal(number)


class Children:
    """The services of one instance, in the order they were started."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.running: list[Child] = []
        self.steps: list[subprocess.Popen[bytes]] = []

    def _popen(
        self,
        name: str,
        argv: Arguments,
        *,
        tie_signal: int,
        environment: Mapping[str, str] | None,
        cwd: Path,
        stdin: str | None,
        user: pwd.struct_passwd | None,
    ) -> subprocess.Popen[bytes]:
        self.instance.log.mkdir(parents=True, exist_ok=True)
        who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        with open(self.instance.log / f"{name}.log", "ab") as out:
            process = subprocess.Popen(  # type: ignore[call-overload]
                [str(word) for word in argv],
                stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd=cwd,
                env=child_environment(self.instance, environment),
                start_new_session=True,  # Ctrl-C reaches us alone; we stop them in order
                preexec_fn=_tie_to_parent(os.getpid(), tie_signal),
                **who,
            )
        if stdin:
            process.stdin.write(stdin.encode())
            process.stdin.close()
        started: subprocess.Popen[bytes] = process
        return started

    def start(
        self,
        name: str,
        argv: Arguments,
        *,
        stop_signal: int = signal.SIGTERM,
        firm_signal: int | None = None,
        environment: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        stdin: str | None = None,
        user: pwd.struct_passwd | None = None,
    ) -> Child:
        """Start a service that lives until we stop it, or dies with us. Main thread only."""
        log = self.instance.log / f"{name}.log"
        if log.exists():
            os.replace(log, log.with_suffix(".log.1"))
        process = self._popen(
            name,
            argv,
            tie_signal=signal.SIGKILL if firm_signal else stop_signal,
            environment=environment,
            cwd=cwd,
            stdin=stdin,
            user=user,
        )
        child = Child(name, process, stop_signal, firm_signal, log)
        self.running.append(child)
        return child

    def step(
        self,
        name: str,
        argv: Arguments,
        *,
        environment: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        user: pwd.struct_passwd | None = None,
    ) -> subprocess.Popen[bytes]:
        """Start a command that ends by itself; finish it with `finish`. Main thread only."""
        process = self._popen(
            name,
            argv,
            tie_signal=signal.SIGTERM,
            environment=environment,
            cwd=cwd,
            stdin=None,
            user=user,
        )
        self.steps.append(process)
        return process

    def finish(self, name: str, process: subprocess.Popen[bytes]) -> None:
        """Wait for a step; if it failed show the end of its log and stop everything."""
        if process.wait():
            log = self.instance.log / f"{name}.log"
            die(f"{name} failed with code {process.returncode}; the end of {log}:\n{tail(log)}")

    def until(
        self, what: str, check: Callable[[], bool], child: Child, seconds: float = 60
    ) -> None:
        """Wait until a service answers; if it ends or is late show its log and stop everything."""
        deadline = time.monotonic() + seconds
        while not check():
            if child.process.poll() is not None or time.monotonic() > deadline:
                die(f"{what} did not start; the end of {child.log}:\n{tail(child.log)}")
            time.sleep(0.03)

    def watch(
        self, *, until: Callable[[], bool], each: Callable[[], None], spared: Sequence[str] = ()
    ) -> None:
        """Live until `until` says so, doing `each` between.

        A child that ends by itself stops everything; one of `spared` that was killed is only told
        of, for that may be a drill.
        """
        while not until():  # the main thread must live: the tie to children is bound to it
            each()
            for child in [one for one in self.running if one.process.poll() is not None]:
                code = child.process.returncode
                if child.name not in spared or code != -signal.SIGKILL:
                    die(
                        f"{child.name} ended with code {code}; "
                        f"the end of {child.log}:\n{tail(child.log)}"
                    )
                self.crash(child.name)
                say(f"{child.name} was killed; ./dev start {child.name} brings it back")
            time.sleep(0.05)

    def find(self, name: str) -> Child | None:
        """The child of that name, if it was started."""
        return next((child for child in self.running if child.name == name), None)

    def crash(self, name: str) -> None:
        """Kill a service and what it has started, as a power cut would; it stays down."""
        child = self.find(name)
        if child:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGKILL)
            child.process.wait()
            self.running.remove(child)

    def stop(self, *names: str) -> None:
        """Stop these services at the same time, firmly if they are slow."""
        chosen = [child for child in self.running if child.name in names]
        for child in chosen:
            child.signal(child.stop_signal)
        _wait(chosen, 3 if any(child.firm_signal for child in chosen) else 10)
        for child in chosen:
            child.signal(child.firm_signal or signal.SIGKILL)
        _wait(chosen, 5)
        for child in chosen:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.process.pid, signal.SIGKILL)  # what is left of its session
            child.process.wait()
            self.running.remove(child)

    def stop_all(self, order: Sequence[Sequence[str]]) -> None:
        """Stop everything: the named groups one after the other, then whatever is left."""
        for process in self.steps:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        for names in order:
            self.stop(*names)
        self.stop(*[child.name for child in self.running])


def _wait(children: Sequence[Child], seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while any(child.process.poll() is None for child in children) and time.monotonic() < deadline:
        time.sleep(0.02)


def sweep(instance: Instance) -> None:
    """End processes of an earlier run that outlived it, known by the mark in their environment.

    A killed web server's workers go on answering on the port; the kernel would let old and new
    code answer in turn.
    """
    mark = f"{MARK}={instance.folder}\0".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            pid = int(entry.name)
            if pid != os.getpid() and mark in (entry / "environ").read_bytes() + b"\0":
                if pid == os.getppid():
                    continue
                is_database = b"postgres" in (entry / "cmdline").read_bytes().split(b"\0")[0]
                os.kill(pid, signal.SIGINT if is_database else signal.SIGKILL)
                say(f"ended a process left over from an earlier run (pid {pid})")


def real_python() -> str:
    """This interpreter outside any virtual environment, which may be about to be rebuilt."""
    return os.path.realpath(sys.executable)
