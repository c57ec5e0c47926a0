"""Readiness: what the server reported, item by item, against what was bought."""

from typing import Any

from apps.provisioning import evidence_words as words

MEMORY_TOLERANCE = 0.05


def compare(*, wanted: dict[str, Any], report: dict[str, Any]) -> list[dict[str, Any]]:
    """The evidence: [{item, wanted, seen, ok}]. A missing or malformed item is not ok, never
    skipped.

    `wanted` holds gpus, gpu_model (the name nvidia-smi gives), gpu_memory_mib, ssh_keys, address.
    """
    gpus = [gpu for gpu in _list(report, "gpus") if isinstance(gpu, dict)]
    names = sorted({str(gpu.get("name")) for gpu in gpus})
    uuids = [str(gpu.get("uuid") or "") for gpu in gpus]
    different = {uuid for uuid in uuids if uuid}
    memory = [_number(gpu.get("memory_mib")) for gpu in gpus]
    keys = {_bare(key) for key in _list(report, "authorized_keys")}
    wanted_keys = {_bare(key) for key in wanted["ssh_keys"]}
    addresses = [str(one) for one in _list(report, "addresses")]
    mounts = [one for one in _list(report, "mounts") if isinstance(one, dict)]
    least = int(wanted["gpu_memory_mib"] * (1 - MEMORY_TOLERANCE))
    return [
        _item(words.GPU_COUNT, wanted["gpus"], len(gpus), ok=len(gpus) == wanted["gpus"]),
        _item(
            words.GPU_MODEL,
            wanted["gpu_model"],
            ", ".join(names) or words.NONE,
            ok=names == [wanted["gpu_model"]],
        ),
        _item(
            words.GPU_IDENTITY,
            wanted["gpus"],
            len(different),
            ok=len(different) == len(uuids) == wanted["gpus"],
        ),
        _item(
            words.GPU_MEMORY,
            f"≥ {least}",
            min(memory, default=0),
            ok=bool(memory) and min(memory) >= least,
        ),
        _item(words.DRIVER, words.PRESENT, report.get("driver"), ok=bool(report.get("driver"))),
        _item(words.CUDA, words.PRESENT, report.get("cuda"), ok=bool(report.get("cuda"))),
        _item(
            words.ADDRESS,
            wanted["address"],
            ", ".join(addresses) or words.NONE,
            ok=wanted["address"] in addresses,
        ),
        _item(
            words.SSH_KEYS,
            words.AS_ORDERED.format(n=len(wanted_keys)),
            words.SOME_OF.format(n=len(keys & wanted_keys), of=len(keys)),
            ok=keys == wanted_keys,
        ),
        _item(
            words.HOST_KEY,
            words.PRESENT,
            len(_list(report, "ssh_host_keys")),
            ok=bool(_list(report, "ssh_host_keys")),
        ),
        _item(
            words.BOOT_DISK,
            "/",
            _targets(mounts) or words.NONE,
            ok=any(one.get("target") == "/" for one in mounts),
        ),
    ]


def _targets(mounts: list[dict[str, Any]]) -> str:
    return ", ".join(str(one.get("target")) for one in mounts)[:200]


def _item(name: str, wanted: Any, seen: Any, *, ok: bool) -> dict[str, Any]:
    return {"item": name, "wanted": wanted, "seen": seen, "ok": ok}


def _list(report: dict[str, Any], key: str) -> list[Any]:
    value = report.get(key)
    return value if isinstance(value, list) else []


def _number(value: Any) -> int:
    return int(value) if isinstance(value, int | float) else 0


def _bare(key: Any) -> str:
    """A public key without its comment."""
    return " ".join(str(key).split()[:2])
