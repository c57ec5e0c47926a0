"""How the console writes runs, nodes, orders and tenants into the cells of its tables."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core import show
from apps.core.tables import Column, Empty, Row, Table
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.invoicing.models import InvoiceProjection
from apps.orders.models import OrderProjection, ReservationProjection, ServiceProjection
from apps.provisioning import reasons, standing
from apps.provisioning.models import Run

NODE_TONES: dict[str, str] = {NodeStatus.ALLOCATED: "blue", NodeStatus.MAINTENANCE: "yellow"}
STATUSES = {"draft": gettext_lazy("Draft"), "issued": gettext_lazy("Issued")}
FAILURES = {
    "transient": gettext_lazy("Passing trouble"),
    "site_unreachable": gettext_lazy("Site does not answer"),
    "node_fault": gettext_lazy("Fault of the node"),
    "no_capacity": gettext_lazy("No capacity"),
    "refused": gettext_lazy("Refused"),
    "unknown": gettext_lazy("Unknown answer"),
}


def node_badge(node: Node) -> SafeString:
    """A node's status, with what the infrastructure says against it."""
    tone = NODE_TONES.get(node.status, "")
    status = show.badge(node.status, node.get_status_display(), tone=tone)
    if not node.is_cordoned:
        return status
    return format_html("{} {}", status, show.badge("cordoned", _("cordoned"), tone="yellow"))


def node_link(node: Node | None) -> Any:
    """The node's name, leading to its page."""
    if node is None:
        return show.NO_INSTANT
    return show.link(node.name, reverse("console:node_detail", args=[node.pk]))


def tenant_link(tenant: UUID, name: str | None) -> SafeString:
    """The tenant's name, leading to its page."""
    return show.link(name or tenant, reverse("console:tenant_detail", args=[tenant]))


def order_link(order: UUID, number: str | None) -> SafeString:
    """The order's number, leading to its page."""
    return show.link(number or order, reverse("console:order_detail", args=[order]))


def reservation_link(row: ReservationProjection) -> SafeString:
    """The reservation's number, leading to its page."""
    return show.link(row.number, reverse("console:reservation_detail", args=[row.pk]))


def reservation_badge(row: ReservationProjection) -> SafeString:
    """A reservation's status."""
    tones = {"requested": "yellow", "booked": "azure", "active": "green", "suspended": "red"}
    return show.badge(row.status, row.get_status_display(), tone=tones.get(row.status, "secondary"))


def run_link(run: Run, text: Any = None) -> SafeString:
    """The run's service name, leading to the run."""
    return show.link(text or run.service_name, reverse("console:run_detail", args=[run.pk]))


def run_badge(run: Run) -> SafeString:
    """A run's status."""
    return show.badge(run.status, run.get_status_display())


def service_badge(service: ServiceProjection) -> SafeString:
    """A service's ledger state, and under it what its customer is told."""
    badge = show.badge(service.state, service.get_state_display())
    code = standing.code_of(service)
    words, _tone = standing.WORDS[code]
    return show.stacked(badge, words) if service.condition else badge


def run_table(rows: Iterable[Run], *, empty: Empty | None = None) -> Table:
    """Runs: what for, for whom, where, how far, why it stands."""
    return Table(
        caption=_("Runs"),
        columns=[
            Column(_("Service")),
            Column(_("Tenant"), hide="md"),
            Column(_("Node"), hide="sm"),
            Column(_("Status")),
            Column(_("Why"), wrap=True, hide="lg"),
            Column(_("Begun"), hide="sm"),
        ],
        rows=[
            Row(
                [
                    show.stacked(run_link(run), order_link(run.order, run.order_number)),
                    tenant_link(run.tenant, getattr(run, "tenant_name", None)),
                    show.stacked(node_link(run.node), run.site.shown_name),
                    run_badge(run),
                    reasons.in_words(run.reason) or show.NOTHING,
                    show.instant(run.created_at),
                ],
                id=str(run.pk),
            )
            for run in rows
        ],
        empty=empty or Empty(_("No runs"), icon="route"),
    )


def order_table(rows: Iterable[OrderProjection], *, empty: Empty | None = None) -> Table:
    """Orders as the console knows them."""
    return Table(
        caption=_("Orders"),
        columns=[
            Column(_("Order")),
            Column(_("Tenant"), hide="sm"),
            Column(_("Offering"), hide="md"),
            Column(_("GPUs"), number=True),
            Column(_("Status")),
            Column(_("Why"), wrap=True, hide="xl"),
            Column(_("Placed"), hide="sm"),
        ],
        rows=[
            Row(
                [
                    show.stacked(order_link(order.order, order.number), order.name),
                    tenant_link(order.tenant, getattr(order, "tenant_name", None)),
                    show.stacked(f"{order.quantity} × {order.sku}", order.site_code),
                    order.gpus,
                    show.badge(order.status, order.get_status_display()),
                    order.status_reason or show.NOTHING,
                    show.instant(order.created_at),
                ],
                id=str(order.order),
            )
            for order in rows
        ],
        empty=empty or Empty(_("No orders"), icon="inbox"),
    )


def service_table(rows: Iterable[ServiceProjection], *, empty: Empty | None = None) -> Table:
    """Services as the console knows them."""
    return Table(
        caption=_("Services"),
        columns=[
            Column(_("Service")),
            Column(_("Node"), hide="sm"),
            Column(_("GPUs"), number=True),
            Column(_("State")),
            Column(_("Ready"), hide="md"),
            Column(_("Ended"), hide="lg"),
            Column(_("Run"), hide="sm"),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        show.link(
                            service.name,
                            reverse("console:service_detail", args=[service.service]),
                        ),
                        order_link(service.order, service.number),
                    ),
                    show.stacked(service.node_name or show.NOTHING, service.site_code),
                    service.gpus,
                    service_badge(service),
                    show.instant(service.ready_at),
                    show.instant(service.ended_at),
                    show.link(_("Run"), reverse("console:run_detail", args=[service.run]))
                    if service.run
                    else show.NOTHING,
                ],
                id=str(service.service),
            )
            for service in rows
        ],
        empty=empty or Empty(_("No services"), icon="server"),
    )


def document_table(rows: Iterable[InvoiceProjection]) -> Table:
    """Invoices and credit notes as finance's projection knows them."""
    return Table(
        caption=_("Invoices and credit notes"),
        columns=[
            Column(_("Document")),
            Column(_("Period")),
            Column(_("Status")),
            Column(_("Total"), number=True),
            Column(_("Issued"), hide="sm"),
        ],
        rows=[
            Row(
                [
                    show.link(
                        document.number or _("draft"),
                        reverse(
                            "finance:document_detail", args=[document.tenant, document.document]
                        ),
                    ),
                    document.period,
                    show.badge(document.status, STATUSES.get(document.status)),
                    show.money(document.total, document.currency),
                    show.instant(document.issued_at),
                ]
            )
            for document in rows
        ],
        empty=Empty(_("No invoices yet"), icon="file-invoice"),
    )


def node_table(rows: Iterable[Node], *, empty: Empty | None = None) -> Table:
    """Nodes: our belief, and what the infrastructure last said."""
    return Table(
        caption=_("Nodes"),
        columns=[
            Column(_("Node")),
            Column(_("Class"), hide="md"),
            Column(_("GPUs"), number=True, hide="sm"),
            Column(_("Status")),
            Column(_("Seen"), hide="sm"),
            Column(_("Held by"), hide="lg"),
            Column(_("Reason"), wrap=True, hide="xl"),
        ],
        rows=[
            Row(
                [
                    show.stacked(node_link(node), node_place(node)),
                    node.resource_class,
                    node.gpu_count,
                    node_badge(node),
                    show.stacked(seen_words(node), show.instant(node.seen_at)),
                    getattr(node, "holder", None) or show.NOTHING,
                    reasons.in_words(node.status_reason) or node.seen_fault or show.NOTHING,
                ],
                id=str(node.pk),
                tone="red" if node.seen_fault else "",
            )
            for node in rows
        ],
        empty=empty or Empty(_("No nodes"), icon="server"),
    )


def node_place(node: Node) -> str:
    """Where the node stands: site, rack, unit."""
    parts = [node.site.shown_name]
    if node.rack:
        parts.append(_("rack {rack}").format(rack=node.rack))
    if node.unit is not None:
        parts.append(f"U{node.unit}")
    return ", ".join(parts)


def seen_words(node: Node) -> str:
    """What the infrastructure said of the node, in its own words."""
    words = [node.seen_provision_state or _("never seen")]
    if node.seen_target_state:
        words.append(f"→ {node.seen_target_state}")
    if node.seen_power_state:
        words.append(f"· {node.seen_power_state}")
    if node.seen_maintenance:
        words.append("· " + _("maintenance"))
    return " ".join(words)
