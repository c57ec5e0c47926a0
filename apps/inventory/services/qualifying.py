"""The qualification list: combinations of hardware really deployed, proven and cleaned here."""

import hashlib
import json
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import F

from apps.core import clock
from apps.inventory.models import Node, Qualification

PARTS = ("server", "bios", "bmc", "nic", "gpu", "gpu_firmware", "driver", "cuda")


@transaction.atomic
def note_proven(*, node: Node, run: UUID) -> Qualification | None:
    """A server of this node was proven ready and handed over, in that run; once for each run.

    None while nobody knows what the node is made of.
    """
    found = _of(node)
    if found is None or found.last_run == run:
        return found
    now = clock.now()
    found.deploys = F("deploys") + 1
    found.first_proven_at = found.first_proven_at or now
    found.last_proven_at, found.last_node, found.last_run = now, node, run
    found.save()
    return found


@transaction.atomic
def note_cleaned(*, node: Node) -> Qualification | None:
    """The node went back into the pool on the proof of a cleaning that really ran."""
    found = _of(node)
    if found is None or node.cleaned_at is None or found.last_cleaned_at == node.cleaned_at:
        return found
    found.cleanings = F("cleanings") + 1
    found.last_cleaned_at, found.last_node = node.cleaned_at, node
    found.save()
    return found


def parts_of(node: Node) -> dict[str, Any]:
    """What qualifies: makes and versions, and nothing that belongs to one server only."""
    return {name: node.hardware[name] for name in PARTS if node.hardware.get(name)}


def _of(node: Node) -> Qualification | None:
    """The row of the node's combination, locked; it is made at the first sight."""
    parts = parts_of(node)
    if not parts:
        return None
    parts["simulated"] = node.site.is_simulated
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    fingerprint = hashlib.sha256(text.encode()).hexdigest()
    Qualification.objects.bulk_create(
        [
            Qualification(
                fingerprint=fingerprint,
                hardware={name: value for name, value in parts.items() if name != "simulated"},
                is_simulated=node.site.is_simulated,
            )
        ],
        ignore_conflicts=True,
    )
    return Qualification.objects.select_for_update().get(fingerprint=fingerprint)
