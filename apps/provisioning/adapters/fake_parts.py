"""A network and a disk shelf without hardware, for tests: what was made has a provider's id and
stays until it is deleted. Calls fail before or after their effect where a test asks for it.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import count
from typing import ClassVar, Self, cast
from uuid import UUID

from apps.core.errors import OutsideError, Refused
from apps.provisioning.adapters.calls import Call
from apps.provisioning.ports import Port, PublicAddress, Volume


class _Provider:
    """One for each site in this process."""

    _sites: ClassVar[dict[tuple[str, str], "_Provider"]] = {}

    def __init__(self) -> None:
        self.calls: list[tuple[str, str]] = []
        self._numbers = count(1)
        self._before: dict[str, list[OutsideError]] = {}
        self._after: dict[str, list[OutsideError]] = {}

    @classmethod
    def of(cls, code: str) -> Self:
        """The one provider of a site."""
        return cast(Self, _Provider._sites.setdefault((cls.__name__, code), cls()))

    @classmethod
    def forget_all(cls) -> None:
        """Drop every provider of this kind: between tests."""
        for key in [key for key in _Provider._sites if key[0] == cls.__name__]:
            del _Provider._sites[key]

    def fail(self, call: str, *errors: OutsideError, after_effect: bool = False) -> None:
        """The next calls of this name fail, one error each, before or after their effect."""
        (self._after if after_effect else self._before).setdefault(call, []).extend(errors)

    def _call(self, call: str, name: str) -> Call:
        self.calls.append((call, name))
        return Call(self._before.get(call, []), self._after.get(call, []))

    def _new_id(self, kind: str) -> str:
        return f"{kind}-{next(self._numbers):04d}"


class FakeNetwork(_Provider):
    """Ports and public addresses by name."""

    def __init__(self) -> None:
        super().__init__()
        self._ports: dict[str, Port] = {}
        self._addresses: dict[str, PublicAddress] = {}

    def ensure_port(self, *, name: str, node: UUID, address: str, vlan: int | None) -> Port:
        """Find or make the port."""
        with self._call("ensure_port", name):
            made = Port(self._new_id("port"), name, address, vlan)
            return self._ports.setdefault(name, made)

    def delete_port(self, *, name: str) -> None:
        """No port of this name is left."""
        with self._call("delete_port", name):
            self._ports.pop(name, None)

    def ensure_address(self, *, name: str) -> PublicAddress:
        """Find or take an address."""
        with self._call("ensure_address", name):
            made = PublicAddress(
                self._new_id("address"), name, f"203.0.113.{len(self._addresses) + 1}"
            )
            return self._addresses.setdefault(name, made)

    def attach_address(self, *, name: str, port: str) -> None:
        """Let the address lead to the port."""
        with self._call("attach_address", name):
            if port not in {one.id for one in self._ports.values()}:
                raise Refused(f"there is no port {port}")
            self._addresses[name] = replace(self._addresses[name], port=port)

    def release_address(self, *, name: str) -> None:
        """No address of this name is held."""
        with self._call("release_address", name):
            self._addresses.pop(name, None)

    def ports(self) -> Iterator[Port]:
        """Every port."""
        with self._call("ports", ""):
            return iter(list(self._ports.values()))

    def addresses(self) -> Iterator[PublicAddress]:
        """Every address."""
        with self._call("addresses", ""):
            return iter(list(self._addresses.values()))


class FakeVolumes(_Provider):
    """Disks by name."""

    def __init__(self) -> None:
        super().__init__()
        self._volumes: dict[str, Volume] = {}

    def ensure_volume(self, *, name: str, size_gb: int) -> Volume:
        """Find or make the disk."""
        with self._call("ensure_volume", name):
            made = Volume(self._new_id("volume"), name, size_gb)
            return self._volumes.setdefault(name, made)

    def attach_volume(self, *, name: str, server: str) -> None:
        """The server has the disk."""
        with self._call("attach_volume", name):
            volume = self._volumes.get(name)
            if volume is None or volume.server not in ("", server):
                raise Refused(f"{name} cannot be attached to {server}")
            self._volumes[name] = replace(volume, server=server)

    def detach_volume(self, *, name: str) -> None:
        """Nobody has the disk."""
        with self._call("detach_volume", name):
            if name in self._volumes:
                self._volumes[name] = replace(self._volumes[name], server="")

    def delete_volume(self, *, name: str) -> None:
        """No disk of this name is left."""
        with self._call("delete_volume", name):
            if name in self._volumes and self._volumes[name].server:
                raise Refused(f"{name} is attached to {self._volumes[name].server}")
            self._volumes.pop(name, None)

    def volumes(self) -> Iterator[Volume]:
        """Every disk."""
        with self._call("volumes", ""):
            return iter(list(self._volumes.values()))
