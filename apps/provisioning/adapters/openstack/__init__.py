"""OpenStack Ironic as a site's bare metal service.

A provision request is not idempotent in Ironic: 400 means "not from this state" and 409 "busy".
After either the node is read again and decides.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from apps.core.errors import NodeFault, Refused
from apps.inventory.models import Site
from apps.inventory.observations import ObservedNIC, ObservedNode
from apps.inventory.services import site_password
from apps.provisioning.adapters.openstack import answers
from apps.provisioning.adapters.openstack.calls import MICROVERSION
from apps.provisioning.adapters.openstack.upkeep import IronicUpkeep
from apps.provisioning.ports import Carried, CleaningRecord, Console, Deployment, SiteReport

WATCHED = (
    "uuid,name,resource_class,traits,provision_state,target_provision_state,power_state,maintenance,fault,"
    "reservation,instance_uuid,lessee,last_error,provision_updated_at"
)
CARRIED = "instance_uuid,instance_info,lessee,owner"
POWER_TARGETS = {
    (True, False): "power on",
    (True, True): "power on",
    (False, False): "power off",
    (False, True): "soft power off",
}
DISCOVERED = WATCHED + ",properties,extra,driver_info,automated_clean"


class Ironic(IronicUpkeep):
    """A site's Ironic, standalone with HTTP basic authentication."""

    # ------------------------------------------------------------------ reading
    def describe(self) -> SiteReport:
        """Reach the service and say what it is."""
        root = self._call("GET", "/v1")
        off = []
        count = 0
        for node in self._pages("/v1/nodes", "nodes", "uuid,name,automated_clean"):
            count += 1
            if node.get("automated_clean") is False:
                off.append(str(node["name"]))
        version = root.get("version", {}).get("version", "") if isinstance(root, dict) else ""
        return SiteReport(
            version=str(version),
            nodes=count,
            cleaning_disabled_on=tuple(off),
            microversion=str(version),
            needed=MICROVERSION,
        )

    def list_nodes(self) -> Iterator[ObservedNode]:
        """Every node with the few fields we watch, in pages of a thousand."""
        for node in self._pages("/v1/nodes", "nodes", WATCHED):
            yield answers.observed(node)

    def discover(self) -> Iterator[ObservedNode]:
        """Every node with its hardware and ports, for import."""
        nics: dict[str, list[ObservedNIC]] = {}
        for port in self._pages(
            "/v1/ports", "ports", "node_uuid,address,name,local_link_connection"
        ):
            link = port.get("local_link_connection") or {}
            nics.setdefault(str(port["node_uuid"]), []).append(
                ObservedNIC(
                    mac=str(port["address"]),
                    name=str(port.get("name") or ""),
                    switch=str(link.get("switch_info") or link.get("switch_id") or ""),
                    switch_port=str(link.get("port_id") or ""),
                )
            )
        for node in self._pages("/v1/nodes", "nodes", DISCOVERED):
            yield answers.observed(node, tuple(nics.get(str(node["uuid"]), ())))

    def get_node(self, node: UUID) -> ObservedNode:
        """One node as it is now. Raises NodeFault when it is not there."""
        return answers.observed(self._node(node))

    def cleaning_since(self, node: UUID, since: datetime) -> CleaningRecord:
        """The last automated cleaning that the node's history records after an instant."""
        answer = self._call("GET", f"/v1/nodes/{node}/history?detail=true")
        return answers.cleaning(answer.get("history", []), since)

    def holder_of(self, instance: UUID) -> UUID | None:
        """The node of Ironic's allocation."""
        found = self._maybe("GET", f"/v1/allocations/{instance}")
        return UUID(found["node_uuid"]) if found and found.get("node_uuid") else None

    def carried(self, node: UUID) -> Carried:
        """What is left of, or made for, an instance."""
        found = self._maybe("GET", f"/v1/nodes/{node}?fields={CARRIED}")
        if found is None:
            raise NodeFault(f"node {node} is not known to Ironic any more")
        return answers.carried(found)

    def hardware(self, node: UUID) -> dict[str, str]:
        """Make and firmware: from the node's properties and Ironic's firmware components."""
        found = self._maybe("GET", f"/v1/nodes/{node}?fields=properties,extra")
        if found is None:
            raise NodeFault(f"node {node} is not known to Ironic any more")
        known = answers.make(found)
        try:
            firmware = self._maybe("GET", f"/v1/nodes/{node}/firmware") or {}
        except Refused:  # the node's driver keeps none
            firmware = {}
        return known | answers.firmware(firmware.get("firmware", []))

    # ------------------------------------------------------------------ changing
    def reserve(self, node: UUID, *, name: str, instance: UUID) -> bool:
        """Claim a node through Ironic's allocation API; the allocation's UUID becomes the
        instance's.
        """
        current = self._node(node)
        if current.get("instance_uuid") == str(instance):
            return True
        if current.get("instance_uuid"):
            raise NodeFault(f"Ironic says that it serves instance {current['instance_uuid']}")
        found = self._maybe("GET", f"/v1/allocations/{instance}")
        if found is None:
            self._call(
                "POST",
                "/v1/allocations",
                {
                    "uuid": str(instance),
                    "name": name,
                    "resource_class": current["resource_class"],
                    "candidate_nodes": [str(node)],
                },
            )
            found = self._call("GET", f"/v1/allocations/{instance}")
        if found.get("state") == "allocating":
            return False
        if found.get("state") == "error":
            self._maybe("DELETE", f"/v1/allocations/{instance}")
            raise NodeFault(f"Ironic cannot allocate the node: {found.get('last_error')}")
        if found.get("node_uuid") != str(node):
            raise Refused(
                f"Ironic's allocation {instance} names node {found.get('node_uuid')}, ours names"
                f" {node}: they disagree"
            )
        return True

    def unreserve(self, node: UUID, *, name: str, instance: UUID) -> None:
        """Delete the allocation; undeploying has done so already when the node was deployed."""
        self._maybe("DELETE", f"/v1/allocations/{instance}")

    def validate(self, node: UUID) -> None:
        """Ask Ironic whether power and deploy could work. Raises NodeFault with the reason."""
        answer = self._call("GET", f"/v1/nodes/{node}/validate")
        for interface in ("power", "deploy"):
            verdict = answer.get(interface, {})
            if verdict.get("result") is False:
                raise NodeFault(f"{interface}: {verdict.get('reason')}")

    def deploy(self, node: UUID, deployment: Deployment) -> None:
        """Write what to deploy, then ask for it."""
        wanted: dict[str, Any] = {
            "image_source": deployment.image_source,
            "image_checksum": deployment.image_checksum,
            "display_name": deployment.display_name,
        }
        if deployment.project_id:
            wanted["project_id"] = deployment.project_id
        if deployment.root_device:
            wanted["root_device"] = deployment.root_device
        self._call(
            "PATCH",
            f"/v1/nodes/{node}",
            [
                {"op": "add", "path": f"/instance_info/{key}", "value": value}
                for key, value in wanted.items()
            ],
        )
        self._call(
            "PUT",
            f"/v1/nodes/{node}/states/provision",
            {"target": "active", "configdrive": deployment.config_drive},
        )

    def undeploy(self, node: UUID) -> None:
        """Ask for the instance to be removed; Ironic cleans afterwards."""
        self._call("PUT", f"/v1/nodes/{node}/states/provision", {"target": "deleted"})

    def set_power(self, node: UUID, *, on: bool, soft: bool = False) -> None:
        """Ask for power on or off."""
        self._call("PUT", f"/v1/nodes/{node}/states/power", {"target": POWER_TARGETS[on, soft]})

    def evict(self, node: UUID, *, instance: UUID, reason: str) -> None:
        """In maintenance Ironic lets go of an active node's allocation."""
        if not self._node(node).get("maintenance"):
            self._call("PUT", f"/v1/nodes/{node}/maintenance", {"reason": reason[:200]})
        self._maybe("DELETE", f"/v1/allocations/{instance}")
        if self._node(node).get("instance_uuid") == str(instance):
            self._call("PATCH", f"/v1/nodes/{node}", [{"op": "remove", "path": "/instance_uuid"}])

    def rescue(self, node: UUID, *, password: str) -> None:
        """Boot the rescue system with this password."""
        self._provision(node, "rescue", rescue_password=password)

    def unrescue(self, node: UUID) -> None:
        """Boot the server's own system."""
        self._provision(node, "unrescue")

    def console(self, node: UUID) -> Console | None:
        """Switch the console on and say where it is."""
        path = f"/v1/nodes/{node}/states/console"
        try:
            found = self._call("GET", path)
            if not found.get("console_enabled"):
                self._call("PUT", path, {"enabled": True})
                found = self._call("GET", path)
        except Refused:  # the node's driver has no console
            return None
        about = found.get("console_info") or {}
        if not about.get("url"):
            return None
        return Console(kind=str(about.get("type") or ""), url=str(about["url"]))

    def _provision(self, node: UUID, target: str, **more: str) -> None:
        self._call("PUT", f"/v1/nodes/{node}/states/provision", {"target": target, **more})

    def _node(self, node: UUID) -> dict[str, Any]:
        found = self._maybe("GET", f"/v1/nodes/{node}?fields={WATCHED}")
        if found is None:
            raise NodeFault(f"node {node} is not known to Ironic any more")
        return found


def ironic_of(site: Site) -> Ironic:
    """The Ironic of a site, with its password unsealed."""
    return Ironic(endpoint=site.endpoint, username=site.username, password=site_password(site))
