"""Cordons, drains and planned work on nodes."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, CSVFile, Endpoint, acts, lists, shows, streams
from apps.api.serializers import reality as shapes
from apps.api.serializers.inventory import NeededReason, NodeDetail
from apps.core import csvsafe
from apps.inventory import selectors, services
from apps.inventory.models import Maintenance, Node, Qualification


class NodeCordon(Endpoint):
    """Gives a node to nobody new."""

    @acts("cordonNode", "node.act", NodeDetail, body=NeededReason)
    def post(self, asked: Asked, node: UUID) -> Node:
        """Give a node to nobody new; who holds it keeps it."""
        services.cordon_node(node=selectors.node_detail(node), actor=asked.user, **asked.body)
        return selectors.node_detail(node)


class NodeUncordon(Endpoint):
    """Sells a node again."""

    @acts("uncordonNode", "node.act", NodeDetail, body=NeededReason)
    def post(self, asked: Asked, node: UUID) -> Node:
        """Sell a cordoned node again."""
        services.uncordon_node(node=selectors.node_detail(node), actor=asked.user, **asked.body)
        return selectors.node_detail(node)


class NodeDrain(Endpoint):
    """Empties a node."""

    @acts("drainNode", "node.act", shapes.DrainSerializer, body=NeededReason)
    def post(self, asked: Asked, node: UUID) -> dict[str, Any]:
        """Cordon a node and list the services that must move or end before it is empty."""
        found = selectors.node_detail(node)
        services.cordon_node(node=found, actor=asked.user, **asked.body)
        return {"node": found.pk, "services": services.services_on(found)}


class RackCordon(Endpoint):
    """Cordons a whole rack."""

    @acts("cordonRack", "node.act", shapes.RackCordonResult, body=shapes.RackCordon)
    def post(self, asked: Asked, site: str) -> dict[str, Any]:
        """Cordon every node of a rack, or lift the cordon of all of them."""
        changed = services.cordon_rack(
            site=selectors.site_by_code(site), actor=asked.user, **asked.body
        )
        return {"nodes": [node.name for node in changed]}


class MaintenanceEvents(Endpoint):
    """Planned work."""

    @lists(
        "listMaintenanceEvents",
        "node.view",
        shapes.MaintenanceSerializer,
        query=shapes.MaintenanceFilters,
    )
    def get(self, asked: Asked) -> QuerySet[Any]:
        """List planned work, newest first."""
        return selectors.maintenances().filter(**asked.query)

    @acts(
        "planMaintenance",
        "node.act",
        shapes.MaintenanceSerializer,
        body=shapes.NewMaintenance,
        status=201,
    )
    def post(self, asked: Asked) -> Any:
        """Plan work on nodes: they are cordoned at once, nobody is told yet."""
        given = dict(asked.body)
        site = selectors.site_by_code(given.pop("site"))
        nodes = list(Node.objects.filter(site=site, pk__in=given.pop("nodes")).order_by("pk"))
        work = services.plan_maintenance(site=site, nodes=nodes, actor=asked.user, **given)
        return selectors.maintenances().get(pk=work.pk)


class MaintenanceEventItem(Endpoint):
    """One piece of planned work."""

    @shows("showMaintenanceEvent", "node.view", shapes.MaintenanceSerializer)
    def get(self, asked: Asked, work: UUID) -> Any:
        """Show planned work."""
        return selectors.maintenances().get(pk=work)


class MaintenanceAnnouncement(Endpoint):
    """Tells the customers."""

    @acts("announceMaintenance", "node.act", shapes.MaintenanceSerializer, status=202)
    def post(self, asked: Asked, work: UUID) -> Any:
        """Tell every customer with a service on one of the nodes, each of its own only."""
        found = Maintenance.objects.get(pk=work)
        services.announce_maintenance(maintenance=found, actor=asked.user)
        return selectors.maintenances().get(pk=work)


class MaintenanceEnd(Endpoint):
    """Ends the work."""

    @acts("endMaintenance", "node.act", shapes.MaintenanceSerializer, body=NeededReason)
    def post(self, asked: Asked, work: UUID) -> Any:
        """End or cancel planned work; who was told is told."""
        found = Maintenance.objects.get(pk=work)
        services.end_maintenance(maintenance=found, actor=asked.user, **asked.body)
        return selectors.maintenances().get(pk=work)


class Qualifications(Endpoint):
    """Hardware that was really deployed, proven and cleaned here."""

    @lists("listQualifications", "node.view", shapes.QualificationSerializer, order=("-id",))
    def get(self, asked: Asked) -> QuerySet[Qualification]:
        """List qualified combinations of hardware, newest first."""
        return selectors.qualifications()


class QualificationsFile(Endpoint):
    """The same as a file."""

    @streams("downloadQualifications", "node.view")
    def get(self, asked: Asked) -> CSVFile:
        """All qualified combinations as CSV."""
        return CSVFile("qualifications", csvsafe.encoded(selectors.qualification_lines()))
