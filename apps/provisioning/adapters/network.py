"""Networks nobody has to ask: addresses of our own pools, written into the config drive."""

from collections.abc import Iterator
from uuid import UUID

from apps.core.errors import Refused
from apps.provisioning.ports import Port, PublicAddress


class StaticNetwork:
    """The switches are set up by hand: nothing is made here and nothing can be read back."""

    def ensure_port(self, *, name: str, node: UUID, address: str, vlan: int | None) -> Port:
        """As it was asked for, not verifiable: the server's own report decides."""
        return Port(str(node), name, address, vlan, is_verifiable=False)

    def delete_port(self, *, name: str) -> None:
        """There is none."""

    def ensure_address(self, *, name: str) -> PublicAddress:
        """Public addresses are not this network's."""
        raise Refused("a static network has no public addresses to take")

    def attach_address(self, *, name: str, port: str) -> None:
        """Public addresses are not this network's."""
        raise Refused("a static network has no public addresses to attach")

    def release_address(self, *, name: str) -> None:
        """There is none."""

    def ports(self) -> Iterator[Port]:
        """None that could be listed."""
        return iter(())

    def addresses(self) -> Iterator[PublicAddress]:
        """None that could be listed."""
        return iter(())
