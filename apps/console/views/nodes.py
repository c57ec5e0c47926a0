"""Nodes: the list, the map by rack, one node with its history, and what staff do to it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.console.node_forms import TICKET_KINDS, RackForm, TicketForm
from apps.console.views.findings import finding_table
from apps.console.views.runs import plain, site_choices
from apps.core import filters, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.inventory import services
from apps.inventory.models import Allocation, Node, Ticket
from apps.inventory.states import NODE, NodeStatus
from apps.provisioning import findings, reasons
from apps.provisioning import services as provisioning

MAP_LIMIT = 2000
VERBS = {
    "admit": gettext_lazy("Admitted"),
    "allocate": gettext_lazy("Allocated"),
    "release": gettext_lazy("Released"),
    "recycle": gettext_lazy("Proven clean"),
    "quarantine": gettext_lazy("Quarantined"),
    "service": gettext_lazy("Taken out for work"),
    "restore": gettext_lazy("Restored"),
    "retire": gettext_lazy("Retired"),
    "cordon": gettext_lazy("Cordoned"),
    "uncordon": gettext_lazy("Cordon lifted"),
}
PROOF = {
    "steps": gettext_lazy("Steps"),
    "started_at": gettext_lazy("Started"),
    "ended_at": gettext_lazy("Ended"),
    "result": gettext_lazy("Result"),
    "claimed_by": gettext_lazy("Vouched for by"),
    "confirmed_by": gettext_lazy("Confirmed by"),
    "detail": gettext_lazy("Why"),
}


@dataclass(frozen=True)
class Rack:
    """A rack of the map with its nodes, highest unit first."""

    name: str
    nodes: Sequence[Any]

    @property
    def gpus(self) -> int:
        """All its GPUs."""
        return sum(node.gpu_count for node in self.nodes)


@needs("node.view")
def node_list(request: HttpRequest) -> HttpResponse:
    """Nodes by status, site, class and text."""
    chosen = [
        filters.choice(request, "status", _("Status"), _("Every status"), NodeStatus.choices),
        filters.choice(request, "site", _("Site"), _("Every site"), site_choices()),
        filters.choice(
            request,
            "class",
            _("Class"),
            _("Every class"),
            [(name, name) for name in selectors.resource_classes()],
        ),
        filters.text(request, _("Name, serial, rack, BMC or MAC")),
    ]
    status, site, resource_class, text = (item.value for item in chosen)
    found = selectors.nodes(
        status=status, site=UUID(site) if site else None, resource_class=resource_class, text=text
    )
    page = paginate(
        selectors.with_holders(found),
        keys=("name", "id"),
        cursor=request.GET.get("cursor", ""),
    )
    listing = filters.Listing(cells.node_table(page.items), chosen, page.next)
    return drawn(request, "console/node_list.html", {"listing": listing})


@needs("node.view")
def node_map(request: HttpRequest) -> HttpResponse:
    """Every node of a site where it stands, with its health and who holds it; renews itself."""
    sites: list[Any] = selectors.sites_with_counts()
    wanted = request.GET.get("site", "")
    fullest = max(sites, key=lambda one: one.node_count, default=None)
    site = next((one for one in sites if str(one.pk) == wanted), fullest)
    context: dict[str, Any] = {
        "sites": sites,
        "site": site,
        "racks": [],
        "legend": NodeStatus.choices,
    }
    if site is not None:
        found = selectors.with_holders(selectors.nodes(site=site.pk)).exclude(
            status=NodeStatus.RETIRED
        )
        nodes = list(found.order_by("rack", "-unit", "name")[:MAP_LIMIT])
        context["racks"] = [
            Rack(name, list(group)) for name, group in groupby(nodes, lambda node: node.rack)
        ]
        context["is_cut"] = len(nodes) == MAP_LIMIT
        racks = [rack.name for rack in context["racks"] if rack.name]
        if racks and person(request).may("node.act"):
            context["rack_form"] = RackForm(racks=racks)
    part = live(request, busy=False)
    if is_live(request):
        return live_answer(request, "console/node_map.html#live", context, part)
    return render(request, "console/node_map.html", {**context, "part": part})


@needs("node.view")
def node_detail(request: HttpRequest, node_id: UUID) -> HttpResponse:
    """One node: our belief, what was seen, its parts, who held it, what happened to it."""
    node = selectors.with_holders(selectors.nodes()).filter(pk=node_id).first()
    if node is None:
        raise NotFound()
    runs = selectors.runs().filter(node=node_id).order_by("-created_at", "-id")[:10]
    tickets = list(node.tickets.order_by("-opened_at", "-id")[:50])
    held = selectors.allocations_of(node)
    context = {
        "node": node,
        "status": cells.node_badge(node),
        "terms": _terms(node),
        "seen": _seen(node),
        "gpus": _gpu_table(node),
        "nics": _nic_table(node),
        "allocations": _allocation_table(held),
        "events": _event_table(node),
        "tickets": _ticket_table(tickets),
        "runs": cells.run_table(runs),
        "must_move": [one for one in held if one.released_at is None and one.service],
        "findings": finding_table(
            findings.findings().filter(node=node, closed_at=None),
            empty=Empty(_("No findings"), icon="circle-check"),
        ),
        "proof": _proof_terms(node.clean_proof) if node.clean_proof else [],
        "is_simulated": bool((node.clean_proof or {}).get("simulated") or node.site.is_simulated),
    }
    if person(request).may("node.act"):
        context |= {
            "actions": [*_cordon_actions(node), *_actions(node, _open(tickets))],
            "closings": _closings(tickets),
            "ticket_form": TicketForm(),
        }
    return render(request, "console/node_detail.html", context)


@require_POST
@needs("node.act")
def node_act(request: HttpRequest, node_id: UUID, verb: str) -> HttpResponse:
    """Quarantine, maintenance, restore, retire: with a reason, in the person's name."""
    decisions: dict[str, tuple[Callable[..., Any], str]] = {
        "quarantine": (services.quarantine, _("The node is in quarantine.")),
        "service": (services.service_node, _("The node is in maintenance.")),
        "restore": (provisioning.return_node, _("The node is back in the pool.")),
        "retire": (services.retire_node, _("The node is retired.")),
        "cordon": (services.cordon_node, _("The node is given to nobody new.")),
        "uncordon": (services.uncordon_node, _("The node is sold again.")),
    }
    node = Node.objects.filter(pk=node_id).first()
    if node is None or verb not in decisions:
        raise NotFound()
    decide, message = decisions[verb]
    reason = reason_of(request)
    decide(node=node, actor=person(request), reason=reason)
    if verb == "restore":
        message = _with_tickets(request, node, message, reason=reason)
    return changed(request, reverse("console:node_detail", args=[node_id]), message)


def _with_tickets(request: HttpRequest, node: Node, message: str, *, reason: str) -> str:
    """Close the tickets of a restored node where asked to, else say that they stay open."""
    tickets = list(Ticket.objects.filter(node=node, closed_at=None))
    if not tickets:
        return message
    if request.POST.get("also") != "yes":
        return (
            message
            + " "
            + ngettext("{n} ticket stays open.", "{n} tickets stay open.", len(tickets)).format(
                n=len(tickets)
            )
        )
    for ticket in tickets:
        services.close_ticket(ticket=ticket, actor=person(request), resolution=reason)
    return (
        message
        + " "
        + ngettext("Its ticket is closed.", "Its {n} tickets are closed.", len(tickets)).format(
            n=len(tickets)
        )
    )


def _given(node: Node) -> str:
    """Whether it goes to new customers, now or when its present one has left."""
    if node.status in (NodeStatus.QUARANTINED, NodeStatus.MAINTENANCE, NodeStatus.RETIRED):
        return _("no: {status}").format(status=node.get_status_display())
    return _("no: cordoned") if node.is_cordoned else _("yes")


def _proof_terms(proof: dict[str, Any]) -> list[Term]:
    """What the site's history says of the cleaning; that it was simulated is said above it."""
    terms = []
    for name, label in PROOF.items():
        value = proof.get(name)
        if value and name.endswith("_at"):
            terms.append(Term(label, show.instant(datetime.fromisoformat(value), seconds=True)))
        elif value:
            terms.append(Term(label, plain(value)))
    return terms


def _open(tickets: Sequence[Ticket]) -> int:
    return sum(ticket.closed_at is None for ticket in tickets)


def _cordon_actions(node: Node) -> list[Action]:
    if node.status == NodeStatus.RETIRED:
        return []
    verb, label, text, tone = (
        ("uncordon", _("Lift the cordon"), _("The node is sold again."), "primary")
        if node.is_cordoned
        else (
            "cordon",
            _("Cordon"),
            _("The node is given to nobody new; who holds it keeps it until moved or ended."),
            "warning",
        )
    )
    return [Action(verb, label, reverse("console:node_act", args=[node.pk, verb]), text, tone)]


def _actions(node: Node, open_tickets: int) -> list[Action]:
    closing = ngettext(
        "Close its open ticket with this reason",
        "Close its {n} open tickets with this reason",
        open_tickets,
    ).format(n=open_tickets)
    words = {
        "quarantine": (
            _("Quarantine"),
            _("Keeps the node out of the pool until somebody restores it; a ticket is opened."),
            "danger",
        ),
        "service": (
            _("Maintenance"),
            _("Takes the node out of the pool for work on it."),
            "warning",
        ),
        "restore": (
            _("Restore"),
            _("Back into the pool; refused unless it was proven clean since its last customer."),
            "primary",
        ),
        "retire": (_("Retire"), _("Takes the node out for good. There is no way back."), "danger"),
    }
    return [
        Action(
            verb,
            label,
            reverse("console:node_act", args=[node.pk, verb]),
            text,
            tone,
            check=closing if verb == "restore" and open_tickets else "",
        )
        for verb, (label, text, tone) in words.items()
        if NODE.can(node.status, verb)
    ]


def _closings(tickets: Sequence[Ticket]) -> list[Action]:
    return [
        Action(
            f"close-{ticket.pk}",
            _("Close “{title}”").format(title=ticket.title[:60]),
            reverse("console:ticket_close", args=[ticket.pk]),
            _("Say what was found and done; it stays with the node."),
        )
        for ticket in tickets
        if ticket.closed_at is None
    ]


def _terms(node: Any) -> list[Term]:
    return [
        Term(
            _("Site"),
            show.link(node.site.shown_name, reverse("console:site_detail", args=[node.site_id])),
        ),
        Term(
            _("Rack and unit"),
            f"{node.rack or '–'} / {node.unit if node.unit is not None else '–'}",
        ),
        Term(_("Resource class"), show.code(node.resource_class)),
        Term(_("Traits"), ", ".join(node.traits) or show.NOTHING),
        Term(
            _("GPUs"), f"{node.gpu_count} × {node.gpu_model}" if node.gpu_model else node.gpu_count
        ),
        Term(_("CPUs"), node.cpus),
        Term(_("Memory"), f"{node.memory_mib // 1024:,} GiB"),
        Term(_("Disk"), f"{node.disk_gb:,} GB"),
        Term(_("Serial"), show.code(node.serial)),
        Term(_("BMC"), show.code(node.bmc_address)),
        Term(_("Held by"), node.holder or show.NOTHING),
        Term(_("Given to new customers"), _given(node)),
        Term(_("Reason"), reasons.in_words(node.status_reason) or show.NOTHING),
    ]


def _seen(node: Node) -> list[Term]:
    return [
        Term(_("Provision state"), show.code(node.seen_provision_state)),
        Term(_("On its way to"), show.code(node.seen_target_state)),
        Term(_("Power"), node.seen_power_state or show.NOTHING),
        Term(_("Maintenance at the site"), _("yes") if node.seen_maintenance else _("no")),
        Term(_("Fault"), node.seen_fault or show.NOTHING),
        Term(_("Locked by its conductor"), _("yes") if node.seen_reservation else _("no")),
        Term(_("Instance"), show.code(node.seen_instance)),
        Term(_("Last error"), node.seen_last_error or show.NOTHING),
        Term(_("Changed"), show.instant(node.seen_changed_at, seconds=True)),
        Term(_("Last looked"), show.instant(node.seen_at, seconds=True)),
        Term(_("Identity at the site"), show.code(node.infra_id)),
    ]


def _gpu_table(node: Node) -> Table:
    columns = [
        Column(_("Slot"), number=True),
        Column(_("Model")),
        Column(_("Memory"), number=True),
        Column("UUID"),
        Column(_("Serial")),
    ]
    rows = [
        Row(
            [
                gpu.position,
                gpu.model.name,
                f"{(gpu.memory_mib or gpu.model.memory_mib) // 1024:,} GiB",
                show.code(gpu.uuid),
                show.code(gpu.serial),
            ]
        )
        for gpu in node.gpus.select_related("model").order_by("position")
    ]
    return Table(columns, rows, _("GPUs"), empty=Empty(_("No GPUs recorded"), icon="cpu"))


def _nic_table(node: Node) -> Table:
    columns = [Column("MAC"), Column(_("Name")), Column(_("Switch")), Column(_("Switch port"))]
    rows = [
        Row(
            [
                show.code(nic.mac),
                nic.name or show.NOTHING,
                nic.switch or show.NOTHING,
                nic.switch_port or show.NOTHING,
            ]
        )
        for nic in node.nics.order_by("name", "mac")
    ]
    return Table(columns, rows, _("Network ports"), empty=Empty(_("No ports"), icon="network"))


def _allocation_table(allocations: Sequence[Allocation]) -> Table:
    columns = [
        Column(_("Tenant")),
        Column(_("Service")),
        Column(_("GPUs"), number=True),
        Column(_("From")),
        Column(_("Released")),
    ]
    rows = []
    for held in allocations:
        names: Any = held  # annotated with the names of tenant, service and order
        rows.append(
            Row(
                [
                    cells.tenant_link(held.tenant, names.tenant_name),
                    show.stacked(
                        names.service_name or show.NOTHING,
                        cells.order_link(held.order, names.number) if held.order else "",
                    ),
                    held.gpu_count,
                    show.instant(held.created_at),
                    show.instant(held.released_at)
                    if held.released_at
                    else show.badge("active", _("held now")),
                ]
            )
        )
    return Table(
        columns, rows, _("Who held it"), empty=Empty(_("Nobody held it yet"), icon="users")
    )


def _event_table(node: Node) -> Table:
    columns = [
        Column(_("When")),
        Column(_("What happened")),
        Column(_("Status")),
        Column(_("Why"), wrap=True),
        Column(_("Decided by")),
    ]
    labels = dict(NodeStatus.choices)
    rows = [
        Row(
            [
                show.instant(event.at, seconds=True),
                VERBS.get(event.verb, event.verb),
                labels.get(NodeStatus(event.status), event.status)
                if event.status in NodeStatus.values
                else event.status,
                reasons.in_words(event.reason) or show.NOTHING,
                event.actor or _("the engine"),
            ]
        )
        for event in node.events.order_by("-id")[:100]
    ]
    return Table(
        columns, rows, _("History"), empty=Empty(_("Nothing happened yet"), icon="history")
    )


def _ticket_table(tickets: Sequence[Ticket]) -> Table:
    kinds = dict(TICKET_KINDS)
    columns = [
        Column(_("Ticket"), wrap=True),
        Column(_("Kind"), hide="md"),
        Column(_("In hand"), wrap=True, hide="sm"),
        Column(_("Opened")),
        Column(_("Closed")),
        Column(_("What was done"), wrap=True),
    ]
    rows = [
        Row(
            [
                show.stacked(
                    show.link(ticket.title, reverse("console:ticket_detail", args=[ticket.pk])),
                    ticket.detail if ticket.detail != ticket.title else "",
                ),
                kinds.get(ticket.category, ticket.category),
                ticket.action or show.NOTHING,
                show.instant(ticket.opened_at),
                show.instant(ticket.closed_at)
                if ticket.closed_at
                else show.badge("open", _("open")),
                ticket.resolution or show.NOTHING,
            ],
            tone="" if ticket.closed_at else "yellow",
        )
        for ticket in tickets
    ]
    return Table(columns, rows, _("Tickets"), empty=Empty(_("No tickets"), icon="tool"))
