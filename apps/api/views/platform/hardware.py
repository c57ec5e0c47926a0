"""What the operator owns: sites, nodes, GPUs, who holds them, work on broken ones."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.serializers import inventory as shapes
from apps.api.serializers.imports import ImportReportSerializer
from apps.api.serializers.reality import NewTicket, TicketChange
from apps.inventory import selectors, services
from apps.inventory.models import GPU, Allocation, Node, NodeEvent, Site, Ticket
from apps.provisioning import services as provisioning


class Sites(Endpoint):
    """Places with servers."""

    @lists("listSites", "capacity.view", shapes.SiteSerializer, query=shapes.SiteFilters)
    def get(self, asked: Asked) -> QuerySet[Site]:
        """List sites, newest first."""
        return Site.objects.filter(**asked.query)

    @acts("createSite", "site.manage", shapes.SiteSerializer, body=shapes.NewSite, status=201)
    def post(self, asked: Asked) -> Site:
        """Add a site; it is paused until it was validated and resumed."""
        return services.save_site(actor=asked.user, **asked.body)


class SiteItem(Endpoint):
    """One place with servers."""

    @shows("showSite", "capacity.view", shapes.SiteSerializer)
    def get(self, asked: Asked, site: str) -> Site:
        """Show a site."""
        return selectors.site_by_code(site)


class SitePause(Endpoint):
    """Stops a site."""

    @acts("pauseSite", "site.manage", shapes.SiteSerializer, body=shapes.NeededReason)
    def post(self, asked: Asked, site: str) -> Site:
        """Stop selling and stop work at a site; what runs there goes on."""
        found = selectors.site_by_code(site)
        return services.pause_site(site=found, actor=asked.user, **asked.body)


class SiteResumption(Endpoint):
    """Lets a site go on."""

    @acts("resumeSite", "site.manage", shapes.SiteSerializer)
    def post(self, asked: Asked, site: str) -> Site:
        """Sell and work at a site again."""
        return services.resume_site(site=selectors.site_by_code(site), actor=asked.user)


class SiteImport(Endpoint):
    """Takes over what a site says it has."""

    @acts(
        "importNodes",
        "site.manage",
        ImportReportSerializer,
        body=shapes.DryRun,
        is_keyed=False,
    )
    def post(self, asked: Asked, site: str) -> Any:
        """Import the nodes of a site as it reports them; repeating it changes nothing."""
        found = selectors.site_by_code(site)
        return provisioning.discover_site(site=found, actor=asked.user, **asked.body)


class Nodes(Endpoint):
    """Servers."""

    @lists("listNodes", "node.view", shapes.NodeSerializer, query=shapes.NodeFilters)
    def get(self, asked: Asked) -> QuerySet[Node]:
        """List nodes, newest first."""
        return selectors.node_list().filter(**asked.query)


class NodeItem(Endpoint):
    """One server."""

    @shows("showNode", "node.view", shapes.NodeDetail)
    def get(self, asked: Asked, node: UUID) -> Node:
        """Show a node with its ports, GPUs and the proof of its last cleaning."""
        return selectors.node_detail(node)


class NodeEvents(Endpoint):
    """What happened to a server."""

    @lists("listNodeEvents", "node.view", shapes.NodeEventSerializer, order=("-id",))
    def get(self, asked: Asked, node: UUID) -> QuerySet[NodeEvent]:
        """List what happened to a node, newest first."""
        return selectors.node_detail(node).events.all()


class NodeQuarantine(Endpoint):
    """Keeps a server out of the pool."""

    @acts("quarantineNode", "node.act", shapes.NodeDetail, body=shapes.NeededReason)
    def post(self, asked: Asked, node: UUID) -> Node:
        """Keep a node out of the pool and open a ticket; who holds it keeps it."""
        found = selectors.node_detail(node)
        services.quarantine(node=found, actor=asked.user, **asked.body)
        return selectors.node_detail(node)


class NodeMaintenance(Endpoint):
    """Takes a server out for work on it."""

    @acts("serviceNode", "node.act", shapes.NodeDetail, body=shapes.NeededReason)
    def post(self, asked: Asked, node: UUID) -> Node:
        """Take a node out for work on it; refused while somebody holds it."""
        found = selectors.node_detail(node)
        services.service_node(node=found, actor=asked.user, **asked.body)
        return selectors.node_detail(node)


class NodeRestoration(Endpoint):
    """Puts a server back into the pool."""

    @acts(
        "restoreNode",
        "node.act",
        shapes.NodeDetail,
        body=shapes.NeededReason,
        is_keyed=False,
    )
    def post(self, asked: Asked, node: UUID) -> Node:
        """Put a node back into the pool, if it was proven clean since its last customer."""
        found = selectors.node_detail(node)
        provisioning.return_node(node=found, actor=asked.user, **asked.body)
        return selectors.node_detail(node)


class GPUs(Endpoint):
    """GPUs in their slots."""

    @lists("listGPUs", "node.view", shapes.GPUSerializer, query=shapes.GPUFilters, order=("-id",))
    def get(self, asked: Asked) -> QuerySet[GPU]:
        """List GPUs, newest first."""
        return GPU.objects.select_related("node", "model").filter(**asked.query)


class Allocations(Endpoint):
    """Who holds what."""

    @lists(
        "listAllocations",
        "capacity.view",
        shapes.AllocationSerializer,
        query=shapes.AllocationFilters,
    )
    def get(self, asked: Asked) -> QuerySet[Allocation]:
        """List who holds or held which node, newest first."""
        return Allocation.objects.select_related("node").filter(**asked.query)


class Tickets(Endpoint):
    """Work on broken hardware."""

    @lists(
        "listTickets",
        "node.view",
        shapes.TicketSerializer,
        query=shapes.TicketFilters,
        order=("-opened_at", "-id"),
    )
    def get(self, asked: Asked) -> QuerySet[Ticket]:
        """List tickets, newest first."""
        return Ticket.objects.select_related("node").filter(**asked.query)

    @acts("openTicket", "node.act", shapes.TicketSerializer, body=NewTicket, status=201)
    def post(self, asked: Asked) -> Ticket:
        """Begin work on a node."""
        given = dict(asked.body)
        node = selectors.node_detail(given.pop("node"))
        return services.open_ticket(node=node, actor=asked.user, **given)


class TicketItem(Endpoint):
    """One ticket."""

    @acts("changeTicket", "node.act", shapes.TicketSerializer, body=TicketChange)
    def patch(self, asked: Asked, ticket: UUID) -> Ticket:
        """Say how the work goes on; refused once it is closed."""
        found = Ticket.objects.select_related("node").get(pk=ticket)
        return services.update_ticket(ticket=found, actor=asked.user, **asked.body)


class TicketClosing(Endpoint):
    """Ends the work on a ticket."""

    @acts("closeTicket", "node.act", shapes.TicketSerializer, body=shapes.Resolution)
    def post(self, asked: Asked, ticket: UUID) -> Ticket:
        """Close a ticket, saying what was done."""
        found = Ticket.objects.select_related("node").get(pk=ticket)
        return services.close_ticket(ticket=found, actor=asked.user, **asked.body)


class Fleet(Endpoint):
    """The capacity figures."""

    @gathers("showFleet", "capacity.view", shapes.CapacitySerializer)
    def get(self, asked: Asked) -> list[selectors.Capacity]:
        """Count the nodes of each site and kind by what can be done with them."""
        return selectors.capacity_by_site_and_class()
