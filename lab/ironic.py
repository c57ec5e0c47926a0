"""A real, standalone Ironic with fake hardware: configuration, start, crash and its GPU nodes."""

from __future__ import annotations

import base64
import concurrent.futures
import hashlib
import json
import os
import subprocess
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from lab.install import IRONIC_PINS, IRONIC_VENV
from lab.instance import Instance, say, write_private
from lab.processes import Child, Children
from lab.stores import cluster, psql

USER = "lab"
VERSION = "1.99"

CONFIGURATION = """\
[DEFAULT]
auth_strategy = http_basic
http_basic_auth_user_file = {folder}/htpasswd
my_ip = 127.0.0.1
host = lab-conductor
rpc_transport = none
use_stderr = true
state_path = {folder}
tempdir = {folder}
hash_ring_reset_interval = 2
force_raw_images = false
enabled_hardware_types = fake-hardware
enabled_bios_interfaces = fake,no-bios
enabled_boot_interfaces = fake
enabled_console_interfaces = fake,no-console
enabled_deploy_interfaces = fake
enabled_firmware_interfaces = fake,no-firmware
enabled_inspect_interfaces = fake,no-inspect
enabled_management_interfaces = fake,noop
enabled_network_interfaces = noop
enabled_power_interfaces = fake
enabled_raid_interfaces = fake,no-raid
enabled_rescue_interfaces = fake,no-rescue
enabled_storage_interfaces = fake,noop
enabled_vendor_interfaces = fake,no-vendor
[api]
host_ip = 127.0.0.1
port = {port}
[database]
connection = {database}
[conductor]
automated_clean = true
check_provision_state_interval = 5
check_allocations_interval = 5
graceful_shutdown_timeout = 5
[service_catalog]
auth_type = none
endpoint_override = http://127.0.0.1:{port}
[dhcp]
dhcp_provider = none
[oslo_concurrency]
lock_path = {folder}
[oslo_policy]
policy_file = {folder}/policy.yaml
[fake]
deploy_delay = {deploy_delay}
vendor_delay = {vendor_delay}
"""

# The guest reads the config drive a machine would find on its disk.
POLICY = '"show_instance_secrets": "@"\n'

FAKE_INTERFACES = (
    *("bios", "boot", "console", "deploy", "firmware", "inspect"),
    *("management", "power", "raid", "rescue", "storage", "vendor"),
)


@dataclass(frozen=True)
class NodeKind:
    """One kind of server in the lab."""

    resource_class: str
    prefix: str
    count: int
    rack: int
    gpu_model: str
    gpu_memory_mib: int
    traits: tuple[str, ...]
    gpus: int = 8
    extra: dict[str, str] = field(default_factory=dict)


H200 = ("NVIDIA H200", 143771, ("CUSTOM_GPU_H200", "CUSTOM_IB_NDR"))
H100 = ("NVIDIA H100 80GB HBM3", 81559, ("CUSTOM_GPU_H100", "CUSTOM_IB_NDR"))
L40S = ("NVIDIA L40S", 46068, ("CUSTOM_GPU_L40S",))

KINDS = (
    NodeKind("gpu.h200.8x", "gpu-h200", 8, 1, *H200),
    NodeKind("gpu.h100.8x", "gpu-h100", 2, 3, *H100),
    NodeKind("gpu.l40s.4x", "gpu-l40s", 1, 4, *L40S, gpus=4),
    NodeKind("gpu.h200.8x.faulty", "gpu-trial", 1, 5, *H200, extra={"lab_guest": "gpus=7"}),
)


# ------------------------------------------------------------------ the service
def delays(instance: Instance) -> tuple[int, int]:
    """Seconds of one deploy phase (a deploy has two) and of the cleaning step."""
    usual = "2" if instance.quick else "4"
    deploy = max(0, round(float(os.environ.get("LAB_DEPLOY_SECONDS", usual)) / 2))
    clean = int(os.environ.get("LAB_CLEAN_SECONDS", "1" if instance.quick else "2"))
    return deploy, clean


def url(instance: Instance) -> str:
    """Where this instance's Ironic answers."""
    return f"http://127.0.0.1:{instance.port('ironic')}"


def begin_schema(instance: Instance, children: Children) -> subprocess.Popen[bytes] | None:
    """Write the configuration and start making the schema, if the database has not this one."""
    folder = instance.folder / "ironic"
    folder.mkdir(exist_ok=True, mode=0o700)
    lab = cluster(instance, "lab")
    deploy, clean = delays(instance)
    password = instance.secret("lab_ironic_db")
    text = CONFIGURATION.format(
        folder=folder,
        port=instance.port("ironic"),
        database=lab.url("ironic", password, "ironic").replace(
            "postgresql:", "postgresql+psycopg2:"
        ),
        deploy_delay=deploy,
        vendor_delay=clean,
    )
    write_private(folder / "ironic.conf", text)
    write_private(folder / "policy.yaml", POLICY)
    if not (folder / "htpasswd").exists():
        write_private(folder / "htpasswd", f"{USER}:{_hashed(instance.secret('ironic'))}\n")
    if instance.state.get("ironic_schema") == _pins():
        return None
    made = psql(lab, "SELECT to_regclass('public.alembic_version')", database="ironic")
    verb = "upgrade" if made.strip() else "create_schema"
    program = [IRONIC_VENV / "bin" / "ironic-dbsync", "--config-file", folder / "ironic.conf"]
    return children.step("ironic-dbsync", [*program, verb])


def finish_schema(
    instance: Instance, children: Children, job: subprocess.Popen[bytes] | None
) -> None:
    """Wait for the schema and remember which one it is."""
    if job:
        children.finish("ironic-dbsync", job)
        instance.state["ironic_schema"] = _pins()
        instance.save()


def _pins() -> str:
    return hashlib.sha256(IRONIC_PINS.read_bytes()).hexdigest()


def _hashed(password: str) -> str:
    code = (
        "import bcrypt, sys\n"
        "print(bcrypt.hashpw(sys.stdin.read().encode(), bcrypt.gensalt(4)).decode())"
    )
    return subprocess.run(
        [IRONIC_VENV / "bin" / "python", "-c", code],
        input=password,
        text=True,
        capture_output=True,
        check=True,
    ).stdout.strip()


def begin(instance: Instance, children: Children) -> Child:
    """Start Ironic (API and conductor in one process); wait for it with `wait_until_ready`."""
    settings = instance.folder / "ironic" / "ironic.conf"
    return children.start("ironic", [IRONIC_VENV / "bin" / "ironic", "--config-file", settings])


def wait_until_ready(instance: Instance, children: Children, child: Child) -> None:
    """Wait until the conductor has registered its hardware."""
    lab = Client(url(instance), instance.secret("ironic"))
    children.until("Ironic", lab.ready, child, seconds=90)


# ------------------------------------------------------------------ its API
class Client:
    """The little of Ironic's API that the lab needs, over urllib."""

    def __init__(self, base_url: str, password: str, user: str = USER) -> None:
        self.base_url = base_url
        self.credentials = base64.b64encode(f"{user}:{password}".encode()).decode()
        self.opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def ask(self, method: str, path: str, body: Any = None, *, seconds: float = 30) -> Any:
        """One request; raises HTTPError with Ironic's own status."""
        request = urllib.request.Request(self.base_url + path, method=method)
        request.data = None if body is None else json.dumps(body).encode()
        request.add_header("Content-Type", "application/json")
        request.add_header("X-OpenStack-Ironic-API-Version", VERSION)
        request.add_header("Authorization", f"Basic {self.credentials}")
        with self.opener.open(request, timeout=seconds) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def insist(self, method: str, path: str, body: Any) -> Any:
        """The same, again while the conductor still holds the node (409)."""
        for _ in range(300):
            try:
                return self.ask(method, path, body)
            except urllib.error.HTTPError as error:
                if error.code != 409:
                    raise
                time.sleep(0.1)
        raise TimeoutError(f"{method} {path}: still locked after 30 s")

    def ready(self) -> bool:
        """Whether the conductor answers for its hardware."""
        try:
            drivers = self.ask("GET", "/v1/drivers", seconds=5)["drivers"]
        except (OSError, ValueError):
            return False
        return any(driver["name"] == "fake-hardware" for driver in drivers)

    def settle(self, node: str, check: Callable[[dict[str, Any]], bool]) -> None:
        """Wait until a node is as wanted and nothing holds it."""
        for _ in range(600):
            seen = self.ask("GET", f"/v1/nodes/{node}")
            if check(seen) and not seen["reservation"]:
                return
            time.sleep(0.1)
        raise TimeoutError(f"node {node} stays {seen['provision_state']}: {seen['last_error']}")


# ------------------------------------------------------------------ its nodes
def enrol(instance: Instance) -> None:
    """Bring every node of the lab to `available` the way an operator would; safe to repeat."""
    lab = Client(url(instance), instance.secret("ironic"))
    known = {node["name"]: node for node in lab.ask("GET", "/v1/nodes?limit=1000")["nodes"]}
    wanted = [(kind, index) for kind in KINDS for index in range(kind.count)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        added = sum(pool.map(lambda item: _enrol(lab, known, *item), wanted))
    if added:
        say(f"{added} bare metal nodes enrolled")


def node_name(kind: NodeKind, index: int) -> str:
    """A name that says where the machine stands: four 8U servers in a rack."""
    return f"{kind.prefix}-r{kind.rack + index // 4:02d}u{1 + 8 * (index % 4):02d}"


def _enrol(lab: Client, known: dict[str, dict[str, Any]], kind: NodeKind, index: int) -> int:
    name = node_name(kind, index)
    node = str(uuid.uuid5(uuid.UUID(int=0), name))  # the same on every machine
    have = known.get(name)
    if have and have["provision_state"] not in ("enroll", "verifying", "manageable"):
        return 0
    if have and have["provision_state"] != "manageable":
        lab.insist("DELETE", f"/v1/nodes/{name}", None)  # half-made: start over
        have = None
    if not have:
        _create(lab, kind, index, name, node)
        lab.insist("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})
        lab.settle(node, lambda seen: seen["provision_state"] == "manageable")
    lab.insist("PUT", f"/v1/nodes/{node}/states/power", {"target": "power off"})
    lab.settle(node, lambda seen: seen["power_state"] == "power off")
    lab.insist("PUT", f"/v1/nodes/{node}/states/provision", {"target": "provide"})
    lab.settle(node, lambda seen: seen["provision_state"] == "available")
    cleaned = [{"op": "replace", "path": "/automated_clean", "value": None}]
    lab.insist("PATCH", f"/v1/nodes/{node}", cleaned)  # from here on as the site is configured
    return 1


def _create(lab: Client, kind: NodeKind, index: int, name: str, node: str) -> None:
    rack, unit = kind.rack + index // 4, 1 + 8 * (index % 4)
    serial = hashlib.sha256(name.encode()).hexdigest()[:10].upper()
    body = {
        "uuid": node,
        "name": name,
        "driver": "fake-hardware",
        "resource_class": kind.resource_class,
        "automated_clean": False,  # a new machine has nothing to clean
        "network_interface": "noop",
        "properties": {
            "cpus": 192,
            "memory_mb": 2097152,
            "local_gb": 30720,
            "cpu_arch": "x86_64",
            "capabilities": f"gpu_count:{kind.gpus},boot_mode:uefi",
        },
        "extra": {
            "rack": f"R{rack:02d}",
            "unit": unit,
            "serial": serial,
            "gpus": {
                "model": kind.gpu_model,
                "count": kind.gpus,
                "memory_mib": kind.gpu_memory_mib,
                "serials": [f"{serial}{number}" for number in range(kind.gpus)],
            },
            **kind.extra,
        },
        **{f"{name}_interface": "fake" for name in FAKE_INTERFACES},
    }
    lab.ask("POST", "/v1/nodes", body)
    lab.ask("PUT", f"/v1/nodes/{node}/traits", {"traits": list(kind.traits)})
    place = bytes.fromhex(node.replace("-", ""))[:3]
    for number, network in enumerate(("provider", "fabric")):
        mac = ":".join(f"{part:02x}" for part in (0x02, 0x67, *place, number))
        port = {"node_uuid": node, "address": mac, "physical_network": network}
        lab.ask("POST", "/v1/ports", port)
