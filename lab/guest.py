"""The operating systems of the lab's deployed nodes.

For every node that Ironic calls active this reads the config drive Ironic holds, lays out a small
root folder as cloud-init would, and really runs the user data in it, with stand-ins for the tools
that need hardware. A node's `extra.lab_guest`, or the file LAB_GUEST_CONTROL
({"node name or *": behaviour}, read at each boot), makes it show something else than was bought:
healthy, gpus=N, wrong-key, silent, no-driver, ecc, xid.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.error
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lab.guest_root import DriveUnreadable, build_root, read_drive
from lab.ironic import Client

POLL_SECONDS = 0.4
FIELDS = (
    "uuid,name,resource_class,properties,instance_uuid,instance_info,extra,provision_updated_at,"
    "reservation"
)
HEALTHY = "healthy"


def log(node: str, text: str) -> None:
    """One line per thing that happened to a guest."""
    print(f"{time.strftime('%H:%M:%S')} {node}: {text}", flush=True)


def behaviour(node: dict[str, Any], control: Path | None) -> str:
    """How this node's guest behaves at this boot."""
    orders: dict[str, str] = {}
    if control:
        with contextlib.suppress(OSError, ValueError):
            orders = json.loads(control.read_text())
    usual = str(node["extra"].get("lab_guest", HEALTHY))
    return orders.get(node["name"]) or orders.get("*") or usual


@dataclass
class Guest:
    """One booted machine."""

    node: str
    boot: str
    folder: Path
    process: subprocess.Popen[bytes] | None = None

    def tidy(self) -> None:
        """Notice the end of its script."""
        if self.process and self.process.poll() is not None:
            (self.folder / "finished").write_text(str(self.process.returncode))
            log(self.node, f"user data ended with code {self.process.returncode}")
            self.process = None

    def end(self) -> None:
        """Switch it off."""
        if self.process and self.process.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        log(self.node, "gone")


class Guests:
    """All guests of one lab."""

    def __init__(self, lab: Client, folder: Path, control: Path | None) -> None:
        self.lab = lab
        self.folder = folder
        self.control = control
        self.running: dict[str, Guest] = {}
        self.unreadable: set[str] = set()

    def step(self) -> None:
        """Look once: boot what was deployed, end what is gone."""
        path = f"/v1/nodes?provision_state=active&limit=1000&fields={FIELDS}"
        nodes = {node["uuid"]: node for node in self.lab.ask("GET", path)["nodes"]}
        for key in [key for key in self.running if not self._same(key, nodes.get(key))]:
            self.running.pop(key).end()
        for guest in self.running.values():
            guest.tidy()
        for key, node in nodes.items():
            if key not in self.running and node["instance_info"].get("configdrive"):
                self._boot(key, node)

    def _same(self, key: str, node: dict[str, Any] | None) -> bool:
        return node is not None and self.running[key].boot == _boot_name(node)

    def _boot(self, key: str, node: dict[str, Any]) -> None:
        boot = _boot_name(node)
        name = node["name"] or key
        folder = self.folder / name / (node["instance_uuid"] or "no-instance")
        guest = Guest(name, boot, folder)
        self.running[key] = guest
        booted = folder / "booted"
        already = booted.exists() and booted.read_text() == boot
        if already and (folder / "finished").exists():
            return  # its script ran before this process was started anew
        try:
            drive = read_drive(node["instance_info"]["configdrive"])
        except DriveUnreadable as error:
            log(name, f"no boot: {error}")
            return
        if folder.parent.exists():
            shutil.rmtree(folder.parent)  # what the machine was before it was cleaned
        manner = behaviour(node, self.control)
        root = build_root(folder, node, drive, manner)
        booted.write_text(boot)
        if manner == "silent":
            log(name, "booted, stays silent")
            return
        guest.process = _run_user_data(root, drive.user_data)
        log(name, f"booted ({manner})")

    def end(self) -> None:
        """Switch all of them off."""
        for guest in self.running.values():
            guest.end()


def _boot_name(node: dict[str, Any]) -> str:
    return f"{node['instance_uuid']} {node['provision_updated_at']}"


def _run_user_data(root: Path, user_data: str) -> subprocess.Popen[bytes] | None:
    """Run the script as cloud-init does: from a private file, its output in the machine's log."""
    if not user_data.startswith("#!"):
        return None  # cloud-config and the like: nothing the lab can run
    script = root / "var" / "lib" / "cloud" / "user-data"
    script.parent.mkdir(parents=True, exist_ok=True)
    script.touch(mode=0o700)
    script.write_text(user_data)
    environment = {
        "PATH": f"{root / 'usr/bin'}:{Path(sys.executable).parent}:{os.defpath}",
        "NEO_ROOT": str(root),
        "LANG": "C.UTF-8",
        "no_proxy": "127.0.0.1,localhost",
    }
    if mark := os.environ.get("NEOCLOUD_DEV"):
        environment["NEOCLOUD_DEV"] = mark  # so that ./dev finds it if we are killed
    with open(root / "var" / "log-user-data", "ab") as out:
        return subprocess.Popen(
            [script],
            cwd=root,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )


def main() -> None:
    """Play all guests until told to stop; a lab that does not answer is asked again."""

    def leave(number: int, frame: object) -> None:
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, leave)
    user, password = os.environ["LAB_IRONIC_USER"], os.environ["LAB_IRONIC_PASSWORD"]
    lab = Client(os.environ["LAB_IRONIC_URL"], password, user)
    control = os.environ.get("LAB_GUEST_CONTROL")
    guests = Guests(lab, Path(os.environ["LAB_GUEST_FOLDER"]), Path(control) if control else None)
    quiet = False
    try:
        while True:
            try:
                guests.step()
                quiet = False
            except (OSError, ValueError, urllib.error.URLError) as error:
                if not quiet:
                    log("lab", f"does not answer ({error}); asking again")
                quiet = True
            time.sleep(POLL_SECONDS)
    finally:
        guests.end()


if __name__ == "__main__":
    main()
