"""Sites, nodes and observations for tests: everything defaults but the point of the test."""

from datetime import UTC, datetime
from itertools import count
from typing import Any
from uuid import UUID, uuid5

from apps.catalog.models import GPUModel, Offering
from apps.inventory.models import AddressPool, Allocation, Node, Site
from apps.inventory.observations import ObservedNIC, ObservedNode
from apps.inventory.states import NodeStatus, SiteStatus

_SPACE = UUID("6f7b5c52-6f0c-4e0f-8f5b-0d2f9b1d7a11")
_numbers = count(1)
CLASS = "gpu.h200.8x"
TRAIT = "CUSTOM_GPU_H200"


def a_gpu_model(code: str = "h200") -> GPUModel:
    """An H200, made once."""
    return GPUModel.objects.get_or_create(
        code=code,
        defaults={
            "name": code.upper(),
            "reported_name": f"NVIDIA {code.upper()}",
            "memory_mib": 143_771,
            "trait": f"CUSTOM_GPU_{code.upper()}",
        },
    )[0]


def an_offering(sku: str = "bm.h200.8x", **columns: Any) -> Offering:
    """Eight H200 in one server."""
    given = {
        "name": "8 × H200",
        "gpu_model": a_gpu_model(),
        "gpus": 8,
        "cpus": 192,
        "memory_gib": 2048,
        "disk_gb": 30_720,
        "resource_class": CLASS,
        "traits": [TRAIT],
    }
    return Offering.objects.create(sku=sku, **(given | columns))


def a_site(code: str = "seoul", **columns: Any) -> Site:
    """A site that sells."""
    given = {
        "name": code.title(),
        "endpoint": "http://127.0.0.1:6385",
        "call_home_url": "http://127.0.0.1:8000/call-home",
        "status": SiteStatus.ACTIVE,
        "cleans_automatically": True,
    }
    return Site.objects.create(code=code, **(given | columns))


def a_node(site: Site, **columns: Any) -> Node:
    """A node in the pool."""
    number = next(_numbers)
    given = {
        "name": f"n{number}",
        "infra_id": uuid5(_SPACE, f"made {number}"),
        "status": NodeStatus.AVAILABLE,
        "resource_class": CLASS,
        "traits": [TRAIT, "CUSTOM_IB_NDR"],
        "gpu_count": 8,
        "seen_provision_state": "available",
    }
    return Node.objects.create(site=site, **(given | columns))


def a_pool(site: Site, **columns: Any) -> AddressPool:
    """Addresses 10.20.0.10 to 10.20.0.12."""
    given = {
        "name": "a",
        "prefix": "10.20.0.0/24",
        "gateway": "10.20.0.1",
        "first_address": "10.20.0.10",
        "last_address": "10.20.0.12",
    }
    return AddressPool.objects.create(site=site, **(given | columns))


def seen(name: str = "n1", mac: str = "", **columns: Any) -> ObservedNode:
    """What a site says of an available node."""
    given: dict[str, Any] = {
        "infra_id": uuid5(_SPACE, name),
        "name": name,
        "resource_class": CLASS,
        "traits": (TRAIT,),
        "provision_state": "available",
        "power_state": "power off",
        "properties": {
            "cpus": 192,
            "memory_mib": 2_097_152,
            "disk_gb": 30_720,
            "gpu": [{"model_code": "h200", "count": 8}],
        },
        "nics": (ObservedNIC(mac=mac, name="eth0"),) if mac else (),
    }
    return ObservedNode(**(given | columns))


def a_proof(since: datetime, until: datetime | None = None, **parts: Any) -> dict[str, Any]:
    """A cleaning that succeeded."""
    return {
        "steps": ["vendor.log_passthrough"],
        "started_at": since.isoformat(),
        "ended_at": (until or datetime.now(UTC)).isoformat(),
        "result": "success",
        "simulated": True,
    } | parts


def live(node: Node) -> list[Allocation]:
    """Who holds the node now, as far as the asker may see."""
    return list(node.allocations.filter(released_at=None))
