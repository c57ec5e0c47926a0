"""The first page: what needs a person now, capacity at a glance, the order funnel."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.access import needs
from apps.console import cells, selectors
from apps.console.views.capacity import capacity_table
from apps.console.views.leaks import leak_table
from apps.core import show
from apps.core.live import is_live, live, live_answer
from apps.core.models import OutboxEvent
from apps.core.tables import Column, Figure, Row, Table
from apps.inventory.models import Site


@needs("capacity.view")
def home(request: HttpRequest) -> HttpResponse:
    """What needs a person, and how things stand; renews itself."""
    held, leaks, overrides = (
        selectors.held_runs(),
        selectors.open_leaks(),
        selectors.open_overrides(),
    )
    nodes, sites = selectors.nodes_out_of_service(), selectors.troubled_sites()
    events = selectors.late_events()
    capacity = selectors.with_queue(selectors.capacity())
    orders, services = selectors.funnel()
    queued = sum(row.waiting_orders for row in capacity)
    figures = [
        _figure(_("Held runs"), held.total, "console:run_list", "?group=held", "player-pause"),
        _figure(_("Leaks"), leaks.total, "console:leak_list", "", "alert-triangle"),
        _figure(_("Nodes out of service"), nodes.total, "console:node_list", "", "server"),
        _figure(_("Sites in trouble"), len(sites), "console:site_list", "", "building"),
        _figure(_("Orders in queue"), queued, "console:capacity", "#queue", "clock", mild=True),
        _figure(_("Late events"), events.total, "console:home", "#events", "mail"),
    ]
    tables: list[tuple[str, str, Table]] = []
    if held.rows:
        tables.append(("held", _("Held: somebody has to decide"), cells.run_table(held.rows)))
    if overrides.rows:
        tables.append(
            ("overrides", _("A second operator is asked"), _override_table(overrides.rows))
        )
    if leaks.rows:
        tables.append(("leaks", _("Not undone: may still cost money"), leak_table(leaks.rows)))
    if sites:
        tables.append(("sites", _("Sites in trouble"), _site_table(sites)))
    if nodes.rows:
        tables.append(("nodes", _("Nodes out of service"), cells.node_table(nodes.rows)))
    if events.rows:
        tables.append(("events", _("Events not delivered"), _event_table(events.rows)))
    context = {
        "figures": figures,
        "tables": tables,
        "capacity": capacity_table(capacity),
        "funnel": orders,
        "services": services,
    }
    part = live(request, busy=False)
    if is_live(request):
        return live_answer(request, "console/home.html#live", context, part)
    return render(request, "console/home.html", {**context, "part": part})


def _figure(
    label: str, number: int, name: str, suffix: str, icon: str, *, mild: bool = False
) -> Figure:
    tone = "" if not number else "yellow" if mild else "red"
    return Figure(label, number, url=reverse(name) + suffix, icon=icon, tone=tone)


def _override_table(overrides: Sequence[Any]) -> Table:
    columns = [
        Column(_("Run")),
        Column(_("Asked by"), hide="sm"),
        Column(_("Evidence"), wrap=True),
        Column(_("Expires")),
    ]
    rows = [
        Row(
            [
                show.stacked(cells.run_link(one.run), one.run.order_number),
                one.asked_by,
                one.evidence,
                show.instant(one.expires_at),
            ]
        )
        for one in overrides
    ]
    return Table(columns, rows, _("A second operator is asked"))


def _site_table(sites: Sequence[Site]) -> Table:
    columns = [
        Column(_("Site")),
        Column(_("What is wrong"), wrap=True),
        Column(_("Since"), hide="sm"),
        Column(_("Last seen"), hide="md"),
    ]
    rows = [
        Row(
            [
                show.link(site.shown_name, reverse("console:site_detail", args=[site.pk])),
                _site_trouble(site),
                show.instant(site.failing_since),
                show.instant(site.last_seen_at),
            ],
            tone="red" if site.failing_since else "",
        )
        for site in sites
    ]
    return Table(columns, rows, _("Sites in trouble"))


def _site_trouble(site: Site) -> str:
    told = []
    if site.failing_since:
        told.append(_("does not answer: {error}").format(error=site.last_error or "?"))
    if not site.cleans_automatically:
        told.append(_("automatic cleaning is not on, so nothing is sold"))
    if site.status != "active":
        told.append(_("paused: {reason}").format(reason=site.status_reason or "–"))
    return "; ".join(told)


def _event_table(events: Sequence[OutboxEvent]) -> Table:
    columns = [
        Column(_("Event")),
        Column(_("Written"), hide="sm"),
        Column(_("Attempts"), number=True),
        Column(_("Next try"), hide="md"),
        Column(_("Last error"), wrap=True),
    ]
    rows = [
        Row(
            [
                show.stacked(show.code(event.name), event.subject),
                show.instant(event.created_at),
                event.attempts,
                show.instant(event.next_try_at),
                event.last_error[:300] or show.NOTHING,
            ]
        )
        for event in events
    ]
    return Table(columns, rows, _("Events not delivered"))
