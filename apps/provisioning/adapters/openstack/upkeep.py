"""Ironic's side of upkeep: claims, lessee, maintenance, cleaning by hand, its clock."""

from collections.abc import Iterator
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from uuid import UUID

from apps.provisioning.adapters.openstack.calls import Calls
from apps.provisioning.ports import ObservedClaim


class IronicUpkeep(Calls):
    """What the reconciler and the check of a site ask of Ironic, on top of making servers."""

    def list_claims(self) -> Iterator[ObservedClaim]:
        """Every allocation, in pages of a thousand."""
        fields = "uuid,name,node_uuid,state,last_error"
        for one in self._pages("/v1/allocations", "allocations", fields):
            yield ObservedClaim(
                id=UUID(one["uuid"]),
                name=str(one.get("name") or ""),
                node=UUID(one["node_uuid"]) if one.get("node_uuid") else None,
                state=str(one.get("state") or ""),
                error=str(one.get("last_error") or ""),
            )

    def delete_claim(self, claim: UUID) -> None:
        """Delete an allocation; fine if it is gone."""
        self._maybe("DELETE", f"/v1/allocations/{claim}")

    def clear_lessee(self, node: UUID) -> None:
        """Ironic keeps a lessee set by hand after the instance is gone."""
        self._call("PATCH", f"/v1/nodes/{node}", [{"op": "remove", "path": "/lessee"}])

    def end_maintenance(self, node: UUID) -> None:
        """Unset maintenance; Ironic answers the same when it is unset."""
        self._call("DELETE", f"/v1/nodes/{node}/maintenance")

    def make_manageable(self, node: UUID) -> None:
        """The verb that leads out of `available` and of `clean failed`."""
        self._call("PUT", f"/v1/nodes/{node}/states/provision", {"target": "manage"})

    def provide(self, node: UUID) -> None:
        """The verb whose way to `available` leads through automated cleaning."""
        self._call("PUT", f"/v1/nodes/{node}/states/provision", {"target": "provide"})

    def tell_time(self) -> datetime | None:
        """The `Date` of an answer."""
        said = self._ask("GET", "/v1").headers.get("Date")
        try:
            return parsedate_to_datetime(said).astimezone(UTC) if said else None
        except ValueError:
            return None
