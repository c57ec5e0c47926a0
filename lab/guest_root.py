"""The root folder of a guest: what cloud-init writes, and stand-ins for hardware's tools."""

from __future__ import annotations

import base64
import hashlib
import ipaddress
import json
import os
import shutil
import sys
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

DRIVER = "580.95.05"
CUDA = "13.0"
KERNEL = "6.8.0-85-generic"

NVIDIA_SMI = """\
import csv, json, re, sys
from pathlib import Path

about = json.loads((Path(__file__).parents[2] / "sys" / "gpus.json").read_text())
words = sys.argv[1:]
query = next((w.split("=", 1)[1] for w in words if w.startswith("--query-gpu=")), None)
if not about["driver"]:
    print("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. "
          "Make sure that the latest NVIDIA driver is installed and running.")
    sys.exit(9)
if query is None:
    colon = "  : " if "--version" in words else ": "
    print("NVIDIA-SMI version" + colon + about["driver"])
    print("DRIVER version    " + colon + about["driver"])
    print("CUDA Version      " + colon + about["cuda"])
    sys.exit(0)
out = csv.writer(sys.stdout, lineterminator="\\n")
for gpu in about["gpus"]:
    values = {"index": gpu["index"], "name": gpu["name"], "uuid": gpu["uuid"],
              "serial": gpu["serial"], "memory.total": gpu["memory_mib"],
              "driver_version": about["driver"], "vbios_version": about["firmware"],
              "ecc.errors.uncorrected.volatile.total": gpu["ecc"],
              "remapped_rows.pending": "No", "remapped_rows.failure": "No"}
    fields = query.split(",")
    for name in fields:
        if name not in values:
            print('Field "' + name + '" is not a valid field to query.')
            sys.exit(2)
    print(", ".join(str(values[name]) for name in fields))
"""

XID = "[ 1042.1] NVRM: Xid (PCI:0000:1b:00): 79, GPU has fallen off the bus."

PRINT_FILE = """\
import sys
from pathlib import Path

print((Path(__file__).parents[2] / "sys" / "{file}").read_text())
"""


class DriveUnreadable(Exception):
    """The config drive is not one a machine of this lab can read."""


@dataclass(frozen=True)
class Drive:
    """What a config drive says."""

    meta_data: dict[str, Any] = field(default_factory=dict)
    user_data: str = ""
    network_data: dict[str, Any] = field(default_factory=dict)
    login: str = "ubuntu"


def read_drive(found: Any) -> Drive:
    """Read a drive as Ironic's fake deploy keeps it: the parts it was given, as they are."""
    if isinstance(found, str):
        try:
            found = json.loads(found)
        except ValueError:
            raise DriveUnreadable("it is an image; the lab reads drives given in parts") from None
    if not isinstance(found, dict):
        raise DriveUnreadable(f"it is a {type(found).__name__}")
    user_data = found.get("user_data") or ""
    return Drive(
        meta_data=_object(found.get("meta_data")),
        user_data=user_data if isinstance(user_data, str) else json.dumps(user_data),
        network_data=_object(found.get("network_data")),
        login=login_of(found.get("vendor_data")),
    )


def login_of(vendor_data: Any) -> str:
    """The first user the vendor's cloud-config makes; without any it is the image's own."""
    text = str(_object(vendor_data).get("cloud-init") or "").partition("\n")[2]
    users = _object(text).get("users") or [] if text else []
    return str(users[0]["name"]) if users else "ubuntu"


def _object(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        try:
            part = json.loads(part)
        except ValueError:
            raise DriveUnreadable("meta_data or network_data is not JSON") from None
    return part if isinstance(part, dict) else {}


def build_root(folder: Path, node: dict[str, Any], drive: Drive, behaviour: str) -> Path:
    """Lay out the machine as it is after cloud-init, before the user data runs."""
    shutil.rmtree(folder, ignore_errors=True)
    root = folder / "root"
    (root / "var").mkdir(parents=True, mode=0o700)
    keys = public_keys(drive.meta_data)
    if behaviour == "wrong-key":
        keys = [f"ssh-ed25519 {ed25519_key(b'another' + os.urandom(8))} another-machine"]
    hostname = str(drive.meta_data.get("hostname") or drive.meta_data.get("name") or node["name"])
    host_key = f"ssh-ed25519 {ed25519_key(os.urandom(32))} root@{hostname}"
    texts = {
        "etc/hostname": hostname,
        "etc/ssh/ssh_host_ed25519_key.pub": host_key,
        f"home/{drive.login}/.ssh/authorized_keys": "\n".join(keys),
        "proc/sys/kernel/random/boot_id": str(uuid.uuid4()),
        "proc/sys/kernel/osrelease": KERNEL,
        "sys/gpus.json": json.dumps(gpu_facts(node, behaviour)),
        "sys/addresses.json": json.dumps(links(drive.network_data)),
        "sys/mounts.json": json.dumps({"filesystems": mounts()}),
        "sys/disks.json": json.dumps({"blockdevices": disks(node)}),
        "sys/kernel.log": XID if behaviour == "xid" else "",
        "sys/class/dmi/id/sys_vendor": "Lab",
        "sys/class/dmi/id/product_name": str(node.get("resource_class") or "GPU server"),
        "sys/class/dmi/id/bios_version": "2.7.1",
    }
    for path, text in texts.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text + "\n")
    _write_tool(root, "nvidia-smi", NVIDIA_SMI)
    _write_tool(root, "ip", PRINT_FILE.format(file="addresses.json"))
    _write_tool(root, "findmnt", PRINT_FILE.format(file="mounts.json"))
    _write_tool(root, "lsblk", PRINT_FILE.format(file="disks.json"))
    _write_tool(root, "dmesg", PRINT_FILE.format(file="kernel.log"))
    return root


def _write_tool(root: Path, name: str, text: str) -> None:
    tool = root / "usr" / "bin" / name
    tool.parent.mkdir(parents=True, exist_ok=True)
    tool.write_text(f"#!{sys.executable} -SE\n{text}")
    tool.chmod(0o755)


def public_keys(meta_data: dict[str, Any]) -> list[str]:
    """The SSH keys of the metadata: `public_keys` as name to key or as a list, or `keys`."""
    given = meta_data.get("public_keys") or {}
    found = list(given.values()) if isinstance(given, dict) else list(given)
    found += [key["data"] for key in meta_data.get("keys") or [] if key.get("type") == "ssh"]
    return list(dict.fromkeys(str(key).strip() for key in found))


def ed25519_key(seed: bytes) -> str:
    """The base64 part of an OpenSSH ed25519 public key."""
    point = hashlib.sha256(seed).digest()
    parts = (b"ssh-ed25519", point)
    wire = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return base64.b64encode(wire).decode()


def gpu_facts(node: dict[str, Any], behaviour: str) -> dict[str, Any]:
    """What nvidia-smi shows: the node's GPUs, always with the same UUIDs and serials."""
    about = node["extra"].get("gpus") or {}
    count = int(about.get("count", 0))
    if behaviour.startswith("gpus="):
        count = int(behaviour.partition("=")[2])
    serials = about.get("serials") or []
    gpus = [
        {
            "index": index,
            "name": about.get("model", "NVIDIA H200"),
            "uuid": f"GPU-{uuid.uuid5(uuid.UUID(node['uuid']), str(index))}",
            "serial": serials[index] if index < len(serials) else "[N/A]",
            "memory_mib": about.get("memory_mib", 0),
            "ecc": 3 if behaviour == "ecc" and index == 0 else 0,
        }
        for index in range(count)
    ]
    driver = "" if behaviour == "no-driver" else DRIVER
    return {"gpus": gpus, "driver": driver, "cuda": CUDA, "firmware": "96.00.CF.00.01"}


def links(network_data: dict[str, Any]) -> list[dict[str, Any]]:
    """What `ip -j addr` shows after the drive's network data was applied."""
    macs = {link.get("id"): link for link in network_data.get("links") or []}
    shown: dict[str, dict[str, Any]] = {}
    for network in network_data.get("networks") or []:
        address = network.get("ip_address")
        if not address:
            continue
        if "/" not in address:
            address = f"{address}/{network.get('netmask') or ('64' if ':' in address else '32')}"
        interface = ipaddress.ip_interface(address)
        key = str(network.get("link", "eth0"))
        link = shown.setdefault(
            key,
            {
                "ifname": key,
                "address": macs.get(key, {}).get("ethernet_mac_address", "02:00:00:00:00:00"),
                "addr_info": [],
            },
        )
        link["addr_info"].append(
            {
                "family": "inet" if interface.version == 4 else "inet6",
                "local": str(interface.ip),
                "prefixlen": interface.network.prefixlen,
                "scope": "global",
            }
        )
    loopback = {"family": "inet", "local": "127.0.0.1", "prefixlen": 8, "scope": "host"}
    return [{"ifname": "lo", "addr_info": [loopback]}, *shown.values()]


def mounts() -> list[dict[str, Any]]:
    """What findmnt shows: a system disk and the local data array of a GPU server."""
    return [
        {"target": "/", "source": "/dev/nvme0n1p2", "fstype": "ext4", "size": 1920383410176},
        {"target": "/boot/efi", "source": "/dev/nvme0n1p1", "fstype": "vfat", "size": 1124999168},
        {"target": "/data", "source": "/dev/md0", "fstype": "xfs", "size": 30725970923520},
    ]


def disks(node: dict[str, Any]) -> list[dict[str, Any]]:
    """What lsblk shows: a system disk, and data disks as large as the node's properties say."""
    total = int((node.get("properties") or {}).get("local_gb") or 30720) * 1000**3
    data = [
        {"name": f"nvme{number}n1", "size": total // 8, "model": "Lab NVMe", "type": "disk"}
        for number in range(1, 9)
    ]
    system = {"name": "nvme0n1", "size": 1921508409344, "model": "Lab NVMe", "type": "disk"}
    return [system, *data]
