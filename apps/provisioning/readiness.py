"""Readiness: what the server reported, item by item, against what was bought.

Every item belongs to one of the seven points that make a server usable (see `evidence_words`).
"""

from typing import Any

from apps.provisioning import evidence_words as words

MEMORY_TOLERANCE = 0.05
DISK_TOLERANCE = 0.1  # an operating system and two units of gigabyte lie between label and report
GB = 1000**3


def compare(*, wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    """The evidence: [{group, item, wanted, seen, ok}]. A missing or malformed item is not ok, never
    skipped.

    `wanted` holds hostname, gpus, gpu_model (the name nvidia-smi gives), gpu_memory_mib, disk_gb,
    ssh_keys, address.
    """
    return [
        *_resource(wanted, report),
        *_network(wanted, report),
        *_storage(wanted, report),
        *_gpus(wanted, report),
        *_credential(wanted, report),
        *_runtime(report),
        *_health(wanted, report),
    ]


def _resource(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    name, seen = str(wanted["hostname"]), str(report.get("hostname") or "")
    return [item(words.RESOURCE, words.HOSTNAME, name, seen or words.NONE, ok=seen == name)]


def _network(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    addresses = [str(one) for one in _list(report, "addresses")]
    seen = ", ".join(addresses)[:200] or words.NONE
    return [
        item(
            words.REACHABLE,
            words.ADDRESS,
            wanted["address"],
            seen,
            ok=wanted["address"] in addresses,
        )
    ]


def _storage(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    mounts = _objects(report, "mounts")
    targets = ", ".join(str(one.get("target")) for one in mounts)[:200]
    total = sum(_number(one.get("size_bytes")) for one in _objects(report, "disks")) // GB
    least = int(wanted["disk_gb"] * (1 - DISK_TOLERANCE))
    has_root = any(one.get("target") == "/" for one in mounts)
    return [
        item(words.STORAGE, words.BOOT_DISK, "/", targets or words.NONE, ok=has_root),
        item(words.STORAGE, words.DISKS, f"≥ {least}", total, ok=total >= least and total > 0),
    ]


def _gpus(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    gpus = _objects(report, "gpus")
    names = sorted({str(gpu.get("name")) for gpu in gpus})
    uuids = [str(gpu.get("uuid") or "") for gpu in gpus]
    different = {uuid for uuid in uuids if uuid}
    memory = [_number(gpu.get("memory_mib")) for gpu in gpus]
    least = int(wanted["gpu_memory_mib"] * (1 - MEMORY_TOLERANCE))
    return [
        item(
            words.GPUS, words.GPU_COUNT, wanted["gpus"], len(gpus), ok=len(gpus) == wanted["gpus"]
        ),
        item(
            words.GPUS,
            words.GPU_MODEL,
            wanted["gpu_model"],
            ", ".join(names) or words.NONE,
            ok=names == [wanted["gpu_model"]],
        ),
        item(
            words.GPUS,
            words.GPU_IDENTITY,
            wanted["gpus"],
            len(different),
            ok=len(different) == len(uuids) == wanted["gpus"],
        ),
        item(
            words.GPUS,
            words.GPU_MEMORY,
            f"≥ {least}",
            min(memory, default=0),
            ok=bool(memory) and min(memory) >= least,
        ),
    ]


def _credential(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    keys = {_bare(key) for key in _list(report, "authorized_keys")}
    wanted_keys = {_bare(key) for key in wanted["ssh_keys"]}
    host_keys = len(_list(report, "ssh_host_keys"))
    return [
        item(
            words.CREDENTIAL,
            words.SSH_KEYS,
            words.AS_ORDERED.format(n=len(wanted_keys)),
            words.SOME_OF.format(n=len(keys & wanted_keys), of=len(keys)),
            ok=keys == wanted_keys,
        ),
        item(words.CREDENTIAL, words.HOST_KEY, words.PRESENT, host_keys, ok=host_keys > 0),
    ]


def _runtime(report: dict[str, Any]) -> list[dict[str, Any]]:
    driver, cuda = report.get("driver"), report.get("cuda")
    return [
        item(words.RUNTIME, words.DRIVER, words.PRESENT, driver or words.NONE, ok=bool(driver)),
        item(words.RUNTIME, words.CUDA, words.PRESENT, cuda or words.NONE, ok=bool(cuda)),
    ]


def _health(wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    """Every GPU answers for itself; a board without such a counter says so by null."""
    gpus = _objects(report, "gpu_health")
    told = len(gpus) == wanted["gpus"]
    errors = sum(_number(gpu.get("ecc_uncorrected")) for gpu in gpus)
    worn = sum(1 for gpu in gpus if gpu.get("needs_remapping") is True)
    told_all = all("ecc_uncorrected" in gpu and "needs_remapping" in gpu for gpu in gpus)
    xids = report.get("xid_errors")
    ok_xids = isinstance(xids, list) and not xids
    seen_xids = ", ".join(map(str, xids))[:200] if isinstance(xids, list) else words.NOT_TOLD
    return [
        item(words.HEALTH, words.GPUS_ANSWER, wanted["gpus"], len(gpus), ok=told and told_all),
        item(
            words.HEALTH, words.ECC, 0, errors if gpus else words.NOT_TOLD, ok=told and not errors
        ),
        item(
            words.HEALTH,
            words.MEMORY_ROWS,
            0,
            worn if gpus else words.NOT_TOLD,
            ok=told and not worn,
        ),
        item(words.HEALTH, words.XID, words.NONE, seen_xids or words.NONE, ok=ok_xids),
    ]


def hardware_of(report: dict[str, Any]) -> dict[str, str]:
    """Make and firmware as the server tells it; only what it tells."""
    told = report.get("hardware")
    told = told if isinstance(told, dict) else {}
    known = {name: told.get(name) for name in ("server", "bios", "bmc", "nic", "gpu_firmware")}
    names = sorted({str(gpu.get("name")) for gpu in _objects(report, "gpus") if gpu.get("name")})
    known |= {
        "gpu": ", ".join(names),
        "driver": report.get("driver"),
        "cuda": report.get("cuda"),
    }
    return {name: str(value)[:200] for name, value in known.items() if value}


def item(group: str, name: str, wanted: Any, seen: Any, *, ok: bool | None) -> dict[str, Any]:
    """One line of evidence; `ok` None means that it could not be checked."""
    return {"group": group, "item": name, "wanted": wanted, "seen": seen, "ok": ok}


def _list(report: dict[str, Any], key: str) -> list[Any]:
    value = report.get(key)
    return value if isinstance(value, list) else []


def _objects(report: dict[str, Any], key: str) -> list[dict[str, Any]]:
    return [one for one in _list(report, key) if isinstance(one, dict)]


def _number(value: Any) -> int:
    """A whole number of a report; anything else, a boolean too, counts as nothing."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return 0
    return int(value)


def _bare(key: Any) -> str:
    """A public key without its comment."""
    return " ".join(str(key).split()[:2])
