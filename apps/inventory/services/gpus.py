"""What a server itself says of its GPUs."""

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
