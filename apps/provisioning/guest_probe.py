#!/usr/bin/env python3
"""Run once by a newly deployed machine: say what it is to the site that ordered it.

Shipped as user data in the config drive, so it needs nothing but Python 3.8. It reads what the
machine's own tools show, posts it, and tries again until it is answered; what cannot be read is
null and named under "errors". The token is used once and is never printed.
"""

# ruff: noqa: S310, S603, T201  it runs by itself on a machine, not in the product
from __future__ import annotations

import glob
import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from typing import Any

CALL_HOME_URL = ""  # filled in for each deployment
TOKEN = ""
LOGIN = ""

LIMIT_SECONDS = 30 * 60
FIRST_WAIT_SECONDS = 1.0
LONGEST_WAIT_SECONDS = 30.0
ROOT = os.environ.get("NEO_ROOT", "")
HEALTH_FIELDS = (
    "index,ecc.errors.uncorrected.volatile.total,remapped_rows.pending,remapped_rows.failure"
)
GPU_FIELDS = "index,name,uuid,serial,memory.total,driver_version"


def run(*argv: str) -> str:
    """What a tool printed; raises OSError when it is missing, slow or fails."""
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=False)
    except subprocess.TimeoutExpired:
        raise OSError(argv[0] + " does not answer") from None
    if done.returncode != 0:
        said = (done.stdout + done.stderr).strip().splitlines()
        raise OSError(argv[0] + ": " + (said[0] if said else "failed"))
    return done.stdout


def read(path: str) -> str:
    """A small text file of this machine."""
    with open(ROOT + path, encoding="utf-8", errors="replace") as file:
        return file.read().strip()


def known(text: str) -> str | None:
    """The tools write [N/A] for what a board does not have."""
    return None if text.startswith("[") or not text else text


def gpu_rows(fields: str = GPU_FIELDS) -> list[list[str]]:
    rows = run("nvidia-smi", "--query-gpu=" + fields, "--format=csv,noheader,nounits")
    return [[part.strip() for part in row.split(",")] for row in rows.splitlines() if row.strip()]


def gpus() -> list[dict[str, Any]]:
    return [
        {
            "index": int(row[0]),
            "name": row[1],
            "uuid": row[2],
            "serial": known(row[3]),
            "memory_mib": int(row[4]) if row[4].isdigit() else None,
        }
        for row in gpu_rows()
    ]


def gpu_health() -> list[dict[str, Any]]:
    return [
        {
            "index": int(row[0]),
            "ecc_uncorrected": int(row[1]) if row[1].isdigit() else None,
            "needs_remapping": failing(row[2:4]),
        }
        for row in gpu_rows(HEALTH_FIELDS)
    ]


def failing(told: list[str]) -> bool | None:
    """Whether memory rows wait to be exchanged or could not be; null where a board has no such."""
    known_ones = [one for one in told if known(one)]
    return any(one.lower() not in ("0", "no") for one in known_ones) if known_ones else None


def xid_errors() -> list[str]:
    """What the driver complained of since the machine was booted."""
    log = run("dmesg")
    return [line.strip()[-160:] for line in log.splitlines() if "NVRM: Xid" in line][:20]


def hardware() -> dict[str, str]:
    """Make and firmware, as far as this machine tells it."""
    told = {
        "server": board("sys_vendor") + " " + board("product_name"),
        "bios": board("bios_version"),
        "bmc": bmc(),
        "nic": ", ".join(sorted({text for text in map(nic, interfaces()) if text})),
        "gpu_firmware": ", ".join(sorted({row[0] for row in gpu_rows("vbios_version")})),
    }
    return {name: text.strip() for name, text in told.items() if text.strip()}


def board(name: str) -> str:
    try:
        return read("/sys/class/dmi/id/" + name)
    except OSError:
        return ""


def bmc() -> str:
    try:
        found = re.search(r"Firmware Revision\s*:\s*(\S+)", run("ipmitool", "mc", "info"))
    except OSError:
        return ""
    return found.group(1) if found else ""


def interfaces() -> list[str]:
    found = glob.glob(ROOT + "/sys/class/net/*/device")
    return sorted(os.path.basename(os.path.dirname(path)) for path in found)


def nic(name: str) -> str:
    try:
        told = run("ethtool", "-i", name)
    except OSError:
        return ""
    parts = dict(line.split(": ", 1) for line in told.splitlines() if ": " in line)
    return (parts.get("driver", "") + " " + parts.get("firmware-version", "")).strip()


def driver() -> str | None:
    rows = gpu_rows()
    return known(rows[0][5]) if rows else None


def cuda() -> str | None:
    found = None
    for argv in (["nvidia-smi", "--version"], ["nvidia-smi"]):
        try:
            found = re.search(r"CUDA Version\s*:\s*([0-9.]+)", run(*argv))
        except OSError:
            continue
        if found:
            break
    return found.group(1) if found else None


def mounts() -> list[dict[str, Any]]:
    try:
        text = run(
            "findmnt", "--json", "--bytes", "--list", "--real", "-o", "TARGET,SOURCE,FSTYPE,SIZE"
        )
        entries = json.loads(text)["filesystems"]
        return [
            {
                "target": entry["target"],
                "source": entry["source"],
                "fstype": entry["fstype"],
                "size_bytes": None if entry.get("size") is None else int(entry["size"]),
            }
            for entry in entries
        ]
    except FileNotFoundError:
        return [
            mounted(line.split()) for line in read("/proc/mounts").splitlines() if line[:1] == "/"
        ]


def disks() -> list[dict[str, Any]]:
    told = json.loads(run("lsblk", "--json", "--bytes", "--nodeps", "-o", "NAME,SIZE,MODEL,TYPE"))
    return [
        {"name": one["name"], "size_bytes": int(one["size"]), "model": one.get("model")}
        for one in told["blockdevices"]
        if one.get("type") == "disk"
    ]


def mounted(words: list[str]) -> dict[str, Any]:
    size = None
    try:
        about = os.statvfs(words[1])
        size = about.f_blocks * about.f_frsize
    except OSError:
        pass
    return {"target": words[1], "source": words[0], "fstype": words[2], "size_bytes": size}


def home() -> str:
    return "/root" if LOGIN == "root" else "/home/" + LOGIN


def authorized_keys() -> list[str]:
    lines = read(home() + "/.ssh/authorized_keys").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def addresses() -> list[str]:
    found = []
    for link in json.loads(run("ip", "-j", "addr")):
        for one in link.get("addr_info", []):
            if one.get("scope", "global") == "global":
                found.append("{}/{}".format(one["local"], one["prefixlen"]))
    return found


def ssh_host_keys() -> list[str]:
    keys = []
    for path in sorted(glob.glob(ROOT + "/etc/ssh/ssh_host_*_key.pub")):
        with open(path, encoding="utf-8") as file:
            keys.append(" ".join(file.read().split()[:2]))
    return keys


def hostname() -> str:
    return read("/etc/hostname") if ROOT else socket.gethostname()


def boot_id() -> str:
    return read("/proc/sys/kernel/random/boot_id")


def kernel() -> str:
    return read("/proc/sys/kernel/osrelease")


PARTS = (
    *(hostname, gpus, driver, cuda, mounts, authorized_keys, addresses, ssh_host_keys),
    *(boot_id, kernel, disks, gpu_health, xid_errors, hardware),
)


def collect() -> dict[str, Any]:
    """Everything this machine can say about itself."""
    report: dict[str, Any] = {}
    errors: list[str] = []
    for part in PARTS:
        try:
            report[part.__name__] = part()
        except Exception as error:  # a tool that answers nonsense is a finding too, not a crash
            report[part.__name__] = None
            errors.append(f"{part.__name__}: {error}")
    report["errors"] = errors
    return report


def post(report: dict[str, Any]) -> int:
    """The status code of the answer; 0 when there was none."""
    request = urllib.request.Request(CALL_HOME_URL, data=json.dumps(report).encode())
    request.add_header("Content-Type", "application/json")
    request.add_header("Authorization", "Bearer " + TOKEN)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return 0


def main() -> int:
    began, wait = time.monotonic(), FIRST_WAIT_SECONDS
    while time.monotonic() - began < LIMIT_SECONDS:
        status = post(collect())
        if 200 <= status < 300:
            print(f"call-home: answered with {status}")
            return 0
        if 400 <= status < 500 and status != 429:
            print(f"call-home: refused with {status}")
            return 1
        print(f"call-home: no answer yet ({status}), again in {wait:.0f} s", flush=True)
        time.sleep(wait)
        wait = min(wait * 2, LONGEST_WAIT_SECONDS)
    print("call-home: gave up")
    return 1


if __name__ == "__main__":
    sys.exit(main())
