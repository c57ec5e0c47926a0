"""What an infrastructure says of its nodes: plain facts, whatever the driver."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID


@dataclass(frozen=True)
class ObservedNIC:
    """A network port as the infrastructure knows it."""

    mac: str
    name: str = ""
    switch: str = ""
    switch_port: str = ""


@dataclass(frozen=True)
class ObservedNode:
    """A node at one instant.

    `is_reserved` tells that a conductor holds it. `properties` may hold cpus, memory_mib, disk_gb
    and gpu: a list of {model_code or reported_name, count}.
    """

    infra_id: UUID
    name: str
    resource_class: str
    traits: tuple[str, ...] = ()
    provision_state: str = ""
    target_provision_state: str = ""
    power_state: str = ""
    maintenance: bool = False
    fault: str = ""
    is_reserved: bool = False
    instance_id: UUID | None = None
    last_error: str = ""
    changed_at: datetime | None = None
    lessee: str = ""
    properties: Mapping[str, Any] = field(default_factory=dict)
    rack: str = ""
    unit: int | None = None
    serial: str = ""
    bmc_address: str = ""
    nics: tuple[ObservedNIC, ...] = ()
