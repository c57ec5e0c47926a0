"""What the steps of a server leave to later ones."""

from dataclasses import dataclass, field

from apps.provisioning.engine.steps import Output


@dataclass(frozen=True)
class Claimed(Output, step="claim_node"):
    """The instance Ironic's allocation names."""

    instance: str


@dataclass(frozen=True)
class Leased(Output, step="lease_address"):
    """How the server is reached: its address with the prefix, its way out, its names."""

    address: str
    gateway: str
    dns: list[str]
    vlan: int | None
    port: str = ""  # the id of its port at the network's provider

    @property
    def ip(self) -> str:
        """The address without the prefix."""
        return self.address.partition("/")[0]


@dataclass(frozen=True)
class Proven(Output, step="prove_ready"):
    """What the server said of itself that its customer needs."""

    host_keys: list[str] = field(default_factory=list)
