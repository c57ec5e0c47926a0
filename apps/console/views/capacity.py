"""What there is, what is free, who waits."""

from collections.abc import Sequence
from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs
from apps.console import cells, selectors
from apps.core import show
from apps.core.live import is_live, live, live_answer
from apps.core.tables import Column, Empty, Row, Table
from apps.inventory import selectors as inventory
from apps.inventory.states import NodeStatus

WEEKS = 12
SHOWN_STATUSES = (
    NodeStatus.AVAILABLE,
    NodeStatus.ALLOCATED,
    NodeStatus.CLEANING,
    NodeStatus.QUARANTINED,
    NodeStatus.MAINTENANCE,
    NodeStatus.ENROLLED,
)


@needs("capacity.view")
def capacity(request: HttpRequest) -> HttpResponse:
    """Site × resource class, each offering's availability, and the queue; renews itself."""
    rows = selectors.with_queue(selectors.capacity())
    context = {
        "capacity": capacity_table(rows),
        "offerings": _offering_table(),
        "queue": _queue_table(),
    }
    part = live(request, busy=False)
    if is_live(request):
        return live_answer(request, "console/capacity.html#live", context, part)
    return render(request, "console/capacity.html", {**context, "part": part})


@needs("capacity.view")
def capacity_weeks(request: HttpRequest) -> HttpResponse:
    """Each pool in the twelve weeks to come: free, reserved, on demand."""
    ahead = inventory.weeks_ahead(count=WEEKS)
    pools = [
        (f"{pool.resource_class} · {pool.site_name}", _weeks_table(pool, ahead.starts))
        for pool in ahead.pools
    ]
    return render(request, "console/capacity_weeks.html", {"pools": pools})


def _weeks_table(pool: inventory.PoolAhead, starts: Sequence[datetime]) -> Table:
    columns = [
        Column(_("Week from")),
        Column(_("Free all week"), number=True),
        Column(_("Reserved"), number=True),
        Column(_("On demand"), number=True),
        Column(_("Nodes"), number=True, hide="sm"),
    ]
    rows = [
        Row(
            [
                show.instant(start),
                show.strong(week.free),
                week.reserved,
                week.on_demand,
                pool.total,
            ],
            tone="" if week.free else "yellow",
        )
        for start, week in zip(starts, pool.weeks, strict=True)
    ]
    return Table(columns, rows, pool.resource_class)


def capacity_table(rows: Sequence[selectors.ClassCapacity]) -> Table:
    """Nodes of each class by status, with the share of GPUs that are allocated."""
    columns = [
        Column(_("Site and class")),
        Column(_("Nodes"), number=True),
        *(Column(status.label, number=True, hide="md") for status in SHOWN_STATUSES),
        Column(_("GPUs allocated"), number=True),
        Column(_("In queue"), number=True),
    ]
    return Table(
        columns,
        [_capacity_row(row) for row in rows],
        _("Capacity"),
        empty=Empty(
            _("No nodes yet"),
            _("Import the nodes of a site; they are sold once its automatic cleaning is seen."),
            reverse("console:site_list"),
            _("Sites"),
            icon="server",
        ),
    )


def _capacity_row(row: selectors.ClassCapacity) -> Row:
    nodes = f"{reverse('console:node_list')}?site={row.site_id}&class={row.resource_class}"
    held = row.gpus_by_status.get(NodeStatus.ALLOCATED, 0)
    return Row(
        [
            show.stacked(show.link(row.resource_class, nodes), row.site_name),
            row.nodes,
            *(
                show.link(row.by_status[s], f"{nodes}&status={s}") if s in row.by_status else "0"
                for s in SHOWN_STATUSES
            ),
            show.stacked(f"{held} / {row.gpus}", f"{row.allocated_share} %"),
            show.stacked(row.waiting_orders, _("{gpus} GPUs").format(gpus=row.waiting_gpus))
            if row.waiting_orders
            else "0",
        ],
        tone="yellow" if row.waiting_orders else "",
    )


def _offering_table() -> Table:
    columns = [
        Column(_("Offering")),
        Column(_("Site")),
        Column(_("Sellable now"), number=True),
        Column(_("All"), number=True),
    ]
    rows = [
        Row(
            [show.code(place.sku), show.local(place, "site_name"), place.free, place.total],
            tone="" if place.free else "yellow",
        )
        for place in inventory.availability()
    ]
    empty = Empty(_("No site has servers that fit an offering"), icon="tag")
    return Table(columns, rows, _("Availability of offerings"), empty=empty)


def _queue_table() -> Table:
    columns = [
        Column(_("Place"), number=True),
        Column(_("Order")),
        Column(_("Tenant"), hide="sm"),
        Column(_("Site and class"), hide="md"),
        Column(_("GPUs"), number=True),
        Column(_("Waiting since")),
        Column(_("Until"), hide="lg"),
    ]
    rows = [
        Row(
            [
                entry.place,
                show.stacked(
                    cells.order_link(entry.order, entry.number), _("lost its server, goes first")
                )
                if entry.service
                else cells.order_link(entry.order, entry.number),
                cells.tenant_link(entry.tenant, entry.tenant_name),
                show.stacked(
                    entry.resource_class,
                    _("{site}, under a reservation").format(site=entry.site_name or "")
                    if entry.reservation
                    else entry.site_name or show.NOTHING,
                ),
                entry.gpus,
                show.instant(entry.entered_at),
                show.instant(entry.expires_at),
            ]
        )
        for entry in selectors.queue()
    ]
    return Table(columns, rows, _("Queue"), empty=Empty(_("Nobody waits"), icon="check"))
