"""Ironic's answers as the small things our ports speak of."""

import re
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from apps.inventory.observations import ObservedNIC, ObservedNode
from apps.provisioning.ports import Carried, CleaningRecord

STEP_NAMES = re.compile(r"'step': '([^']+)'.*?'interface': '([^']+)'")  # in a history event's text
TOUCHES = ("deploy", "manual_cleaning", "servic", "resc")  # history events that change a node


def observed(node: dict[str, Any], nics: tuple[ObservedNIC, ...] = ()) -> ObservedNode:
    extra = node.get("extra") or {}
    properties = node.get("properties") or {}
    driver = node.get("driver_info") or {}
    gpus = extra.get("gpus") or {}
    return ObservedNode(
        infra_id=UUID(node["uuid"]),
        name=str(node.get("name") or node["uuid"]),
        resource_class=str(node.get("resource_class") or ""),
        traits=tuple(sorted(node.get("traits") or ())),
        provision_state=str(node.get("provision_state") or "available"),
        target_provision_state=str(node.get("target_provision_state") or ""),
        power_state=str(node.get("power_state") or ""),
        maintenance=bool(node.get("maintenance")),
        fault=str(node.get("fault") or ""),
        is_reserved=bool(node.get("reservation")),
        instance_id=UUID(node["instance_uuid"]) if node.get("instance_uuid") else None,
        lessee=str(node.get("lessee") or ""),
        last_error=str(node.get("last_error") or ""),
        changed_at=_instant(node.get("provision_updated_at")),
        properties={
            "cpus": _whole(properties.get("cpus")),
            "memory_mib": _whole(properties.get("memory_mb")),
            "disk_gb": _whole(properties.get("local_gb")),
            "gpu": [{"reported_name": gpus["model"], "count": gpus["count"]}] if gpus else [],
        },
        rack=str(extra.get("rack") or ""),
        unit=_whole(extra.get("unit")) or None,
        serial=str(extra.get("serial") or ""),
        bmc_address=str(driver.get("redfish_address") or driver.get("ipmi_address") or ""),
        nics=nics,
    )


def carried(node: dict[str, Any]) -> Carried:
    """What a node keeps of an instance."""
    info = node.get("instance_info") or {}
    return Carried(
        instance_id=UUID(node["instance_uuid"]) if node.get("instance_uuid") else None,
        image_source=str(info.get("image_source") or ""),
        image_checksum=str(info.get("image_checksum") or ""),
        project_id=str(info.get("project_id") or ""),
        root_device=dict(info.get("root_device") or {}),
        lessee=str(node.get("lessee") or ""),
        owner=str(node.get("owner") or ""),
    )


def make(node: dict[str, Any]) -> dict[str, str]:
    """Vendor and product, where somebody has written them down."""
    about = {**(node.get("extra") or {}), **(node.get("properties") or {})}
    words = [str(about[name]) for name in ("vendor", "product") if about.get(name)]
    return {"server": " ".join(words)} if words else {}


def firmware(parts: list[dict[str, Any]]) -> dict[str, str]:
    """Versions of BIOS, BMC and NICs out of Ironic's firmware components."""
    known: dict[str, list[str]] = {}
    for part in parts:
        kind = str(part.get("component") or "").partition(":")[0]
        version = str(part.get("current_version") or "")
        if kind in ("bios", "bmc", "nic") and version:
            known.setdefault(kind, []).append(version)
    return {kind: ", ".join(sorted(set(versions))) for kind, versions in known.items()}


def cleaning(history: list[dict[str, Any]], since: datetime) -> CleaningRecord:
    """The last automated cleaning after an instant, out of a node's history."""
    entries = [
        entry
        for entry in history
        if (_instant(entry.get("created_at")) or since) >= since.replace(microsecond=0)
    ]
    entries.sort(key=_by_time)
    started = ended = None
    result, steps, detail = "none", [], ""
    for entry in entries:
        kind, at = str(entry.get("event_type")), _instant(entry.get("created_at"))
        if kind == "automated_cleaning_start":
            started, ended, result = at, None, "started"
            steps = _step_names(entry.get("event"))
        elif kind == "automated_cleaning_end":
            ended = at
            result = "failed" if entry.get("severity") == "ERROR" else "success"
        elif kind == "cleaning" and entry.get("severity") == "ERROR":
            ended, result, detail = at, "failed", str(entry.get("event"))
    kinds = [str(entry.get("event_type")) for entry in entries]
    touched = [
        _instant(entry.get("created_at"))
        for kind, entry in zip(kinds, entries, strict=True)
        if kind.startswith(TOUCHES)
    ]
    return CleaningRecord(
        started,
        ended,
        tuple(steps),
        result,
        detail,
        was_deployed=any(kind.startswith("deploy") for kind in kinds),
        touched_at=touched[-1] if touched else None,
    )


def _by_time(entry: dict[str, Any]) -> tuple[str, int]:
    """History has whole seconds: within one, a cleaning begins before it ends."""
    kind = str(entry.get("event_type"))
    rank = 0 if kind.endswith("_start") else 2 if kind.endswith("_end") else 1
    return str(entry.get("created_at")), rank


def _step_names(event: Any) -> list[str]:
    """`vendor.log_passthrough` out of the text of a history event."""
    return [f"{where}.{name}" for name, where in STEP_NAMES.findall(str(event or ""))]


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _instant(text: Any) -> datetime | None:
    if not text:
        return None
    instant = datetime.fromisoformat(str(text))
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
