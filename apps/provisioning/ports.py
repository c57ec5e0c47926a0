"""What provisioning needs of a site's infrastructure, and the small things exchanged with it."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from apps.inventory.observations import ObservedNode


@dataclass(frozen=True)
class Deployment:
    """What a server is deployed with. The config drive carries a secret: it is never stored or
    logged.
    """

    image_source: str
    image_checksum: str
    display_name: str
    config_drive: dict[str, Any] = field(repr=False)
    project_id: str = ""  # the lessee while it is deployed; the site clears it afterwards
    root_device: dict[str, Any] = field(default_factory=dict)  # hints for the system disk


@dataclass(frozen=True)
class Carried:
    """What a node carries of an instance, as the site keeps it; the config drive is not read."""

    instance_id: UUID | None = None
    image_source: str = ""
    image_checksum: str = ""
    project_id: str = ""
    root_device: dict[str, Any] = field(default_factory=dict)
    lessee: str = ""
    owner: str = ""

    @property
    def is_empty(self) -> bool:
        """Nothing of a customer is left on it."""
        return not (self.instance_id or self.image_source or self.project_id or self.lessee)


@dataclass(frozen=True)
class Console:
    """The way to a server's screen."""

    kind: str
    url: str = field(repr=False)  # it may carry a token


@dataclass(frozen=True)
class CleaningRecord:
    """What the infrastructure's own history says of the last cleaning since an instant."""

    started_at: datetime | None
    ended_at: datetime | None
    steps: tuple[str, ...]
    result: str  # success, failed, started or none
    detail: str = ""
    was_deployed: bool = True  # did anything of a customer reach the node since the instant?
    touched_at: datetime | None = None  # last deployed, serviced or cleaned by hand


@dataclass(frozen=True)
class ObservedClaim:
    """A claim on a node at the site: Ironic's allocation."""

    id: UUID
    name: str
    node: UUID | None
    state: str
    error: str = ""


@dataclass(frozen=True)
class SiteReport:
    """What a site said of itself when asked."""

    version: str
    nodes: int
    cleaning_disabled_on: tuple[str, ...]  # nodes whose automated cleaning is switched off
    microversion: str = ""  # the newest dialect it speaks
    needed: str = ""  # the one we speak


class Upkeep(Protocol):
    """What comparing belief with reality, and mending it, needs of a site."""

    def list_claims(self) -> Iterable[ObservedClaim]:
        """Every claim on a node, whoever made it."""

    def delete_claim(self, claim: UUID) -> None:
        """Delete a claim; fine if it is gone."""

    def clear_lessee(self, node: UUID) -> None:
        """The node carries no customer any more; fine if it carries none."""

    def end_maintenance(self, node: UUID) -> None:
        """The site takes the node for healthy again; fine if it does."""

    def make_manageable(self, node: UUID) -> None:
        """Take an idle node out of the site's pool, or out of a failed cleaning; returns at
        once.
        """

    def provide(self, node: UUID) -> None:
        """Give a manageable node back to the site's pool, cleaning included; returns at once."""

    def tell_time(self) -> datetime | None:
        """The site's clock, in whole seconds; None when it does not say."""


class Compute(Upkeep, Protocol):
    """A site's bare metal service. Every call has a time limit and raises only OutsideError kinds.

    Calls that change something may be repeated: they find what an earlier call has made.
    """

    def describe(self) -> SiteReport:
        """Reach the service and say what it is."""

    def list_nodes(self) -> Iterable[ObservedNode]:
        """Every node, with the fields we watch."""

    def discover(self) -> Iterable[ObservedNode]:
        """Every node with its hardware and ports, for import."""

    def get_node(self, node: UUID) -> ObservedNode:
        """One node as it is now. Raises NodeFault when it is not there."""

    def reserve(self, node: UUID, *, name: str, instance: UUID) -> bool:
        """Claim an available node for an instance, fine if it holds the node already; False: not
        decided yet.

        Raises NodeFault when the node cannot be claimed.
        """

    def unreserve(self, node: UUID, *, name: str, instance: UUID) -> None:
        """Give the claim back; fine if it is gone."""

    def validate(self, node: UUID) -> None:
        """Check that the node could be deployed. Raises NodeFault with the reason."""

    def deploy(self, node: UUID, deployment: Deployment) -> None:
        """Begin to deploy; returns at once. Raises Transient while the node is locked."""

    def undeploy(self, node: UUID) -> None:
        """Begin to remove what is deployed, cleaning included; returns at once."""

    def set_power(self, node: UUID, *, on: bool, soft: bool = False) -> None:
        """Ask for power on or off, `soft` through the operating system; returns at once."""

    def cleaning_since(self, node: UUID, since: datetime) -> CleaningRecord:
        """The last cleaning recorded after an instant."""

    def holder_of(self, instance: UUID) -> UUID | None:
        """The node the site's own allocation of an instance names; None when there is none."""

    def carried(self, node: UUID) -> Carried:
        """What the node carries of an instance. Raises NodeFault when it is not there."""

    def evict(self, node: UUID, *, instance: UUID, reason: str) -> None:
        """Take an instance from a node that cannot be undeployed; the node stays in maintenance."""

    def rescue(self, node: UUID, *, password: str) -> None:
        """Begin to boot the rescue system; returns at once."""

    def unrescue(self, node: UUID) -> None:
        """Begin to boot the server's own system again; returns at once."""

    def console(self, node: UUID) -> Console | None:
        """The way to the server's screen, switched on if needed; None where there is none."""

    def hardware(self, node: UUID) -> dict[str, str]:
        """What the site knows of its make and firmware: server, bios, bmc, nic; only what it
        knows.
        """


@dataclass(frozen=True)
class Port:
    """A network port as its provider has it; `address` and `vlan` as they were read back."""

    id: str
    name: str
    address: str
    vlan: int | None
    is_verifiable: bool = True  # False: the provider keeps nothing that could be read back


@dataclass(frozen=True)
class PublicAddress:
    """An address of a provider's pool."""

    id: str
    name: str
    address: str
    port: str = ""  # the id of the port it is attached to


class Network(Protocol):
    """A site's network. Names are ours and found again: a repeated call makes nothing twice."""

    def ensure_port(self, *, name: str, node: UUID, address: str, vlan: int | None) -> Port:
        """Find or make the port and read it back."""

    def delete_port(self, *, name: str) -> None:
        """No port of this name is left."""

    def ensure_address(self, *, name: str) -> PublicAddress:
        """Find or take an address."""

    def attach_address(self, *, name: str, port: str) -> None:
        """Let the address lead to the port, named by its id; fine if it does."""

    def release_address(self, *, name: str) -> None:
        """No address of this name is held, attached or not."""

    def ports(self) -> Iterable[Port]:
        """Every port of ours."""

    def addresses(self) -> Iterable[PublicAddress]:
        """Every address we hold."""


@dataclass(frozen=True)
class Volume:
    """A disk at its provider."""

    id: str
    name: str
    size_gb: int
    server: str = ""  # whom it is attached to


class Volumes(Protocol):
    """A site's disks. Names are ours and found again: a repeated call makes nothing twice."""

    def ensure_volume(self, *, name: str, size_gb: int) -> Volume:
        """Find or make the disk."""

    def attach_volume(self, *, name: str, server: str) -> None:
        """The server has the disk; fine if it has."""

    def detach_volume(self, *, name: str) -> None:
        """Nobody has the disk; fine if nobody had."""

    def delete_volume(self, *, name: str) -> None:
        """No disk of this name is left. Raises Refused while it is attached."""

    def volumes(self) -> Iterable[Volume]:
        """Every disk of ours."""
