"""What is reported of a server: its GPUs, its make, its firmware."""

from collections.abc import Iterable, Mapping
from typing import Any

from apps.inventory.models import GPU, Node


def note_gpus(*, node: Node, reported: Iterable[Mapping[str, Any]]) -> int:
    """Keep UUID and serial of each GPU as reported, by slot; returns how many were new or changed.

    `reported` are the items of a call-home: index, uuid, serial, memory_mib. A GPU that was
    exchanged shows as another UUID in its slot; slots we do not know are passed over.
    """
    said = {item.get("index"): item for item in reported}
    changed = []
    for gpu in GPU.objects.select_for_update().filter(node=node).order_by("position"):
        item = said.get(gpu.position)
        if item is None:
            continue
        told = (str(item.get("uuid") or ""), str(item.get("serial") or ""))
        if told != (gpu.uuid, gpu.serial):
            gpu.uuid, gpu.serial = told
            changed.append(gpu)
    GPU.objects.bulk_update(changed, ["uuid", "serial"])
    return len(changed)


def note_hardware(*, node: Node, reported: Mapping[str, str]) -> None:
    """Keep make and firmware as they were reported: server, bios, bmc, nic, gpu, gpu_firmware,
    driver, cuda.

    What somebody does not report keeps what is known of it.
    """
    known = Node.objects.select_for_update(no_key=True).get(pk=node.pk)
    told = {name: str(value)[:200] for name, value in reported.items() if value}
    if any(known.hardware.get(name) != value for name, value in told.items()):
        known.hardware = {**known.hardware, **told}
        known.save(update_fields=["hardware"])
