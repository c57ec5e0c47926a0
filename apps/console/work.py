"""What needs a person now, from every corner, most urgent first: one statement for each corner."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import (
    Count,
    Exists,
    IntegerField,
    Min,
    OuterRef,
    Q,
    QuerySet,
    Subquery,
    Value,
)
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.console import selectors
from apps.core import clock
from apps.core.clock import NeoNow
from apps.core.models import OutboxEvent
from apps.inventory import selectors as inventory
from apps.inventory.models import Node, Site, Ticket
from apps.orders.models import QueueEntry
from apps.provisioning import findings, reasons
from apps.provisioning import selectors as provisioning
from apps.provisioning.models import Finding, Run
from apps.provisioning.states import FindingStatus, RunStatus

MOST = 50  # of each corner
STUCK = timedelta(hours=6)  # in a queue

# Most urgent first: what costs money or trust while nobody looks.
KINDS: dict[str, Promise] = {
    "site": gettext_lazy("Site in trouble"),
    "held": gettext_lazy("Held run"),
    "override": gettext_lazy("Override waits for a second person"),
    "leak": gettext_lazy("Not undone"),
    "finding": gettext_lazy("Finding"),
    "event": gettext_lazy("Event not delivered"),
    "node": gettext_lazy("Node out of service"),
    "queue": gettext_lazy("Queue stands still"),
    "ticket": gettext_lazy("Ticket"),
}
RANK = {kind: place for place, kind in enumerate(KINDS)}


@dataclass(frozen=True)
class Item:
    """One thing somebody should look at."""

    kind: str
    what: str
    where: str
    since: datetime | None
    url: str

    @property
    def label(self) -> Promise:
        """The kind as people read it."""
        return KINDS[self.kind]


def items(*, kind: str = "") -> list[Item]:
    """Everything that needs a person, most urgent first, then the longest waiting."""
    corners = {
        "site": _sites,
        "held": _held,
        "override": _overrides,
        "leak": _leaks,
        "finding": _findings,
        "event": _events,
        "node": _nodes,
        "queue": _queues,
        "ticket": _tickets,
    }
    found = [one for name, corner in corners.items() if kind in ("", name) for one in corner()]
    now = clock.now()
    return sorted(found, key=lambda one: (RANK[one.kind], one.since or now))


def count() -> int:
    """How many things need a person, for the side bar: one statement."""
    return sum(row["n"] for row in _counted())


def _counted() -> Iterable[dict[str, Any]]:
    """The size of the corners: one statement."""
    corners: list[QuerySet[Any]] = [
        Run.objects.filter(status=RunStatus.HELD),
        provisioning.leaks(is_open=True),
        provisioning.open_overrides(),
        Finding.objects.filter(**OPEN_FINDING),
        Ticket.objects.filter(closed_at=None),
        _nodes_without_ticket(),
        Site.objects.filter(failing_since__isnull=False),
    ]
    counted: list[Any] = [
        rows.order_by().values(place_of_corner=Value(place)).annotate(n=Count("pk"))
        for place, rows in enumerate(corners)
    ]
    return counted[0].union(*counted[1:], all=True)  # type: ignore[no-any-return]


OPEN_FINDING: dict[str, Any] = {
    "status": FindingStatus.OPEN,
    "closed_at": None,
    "looks__gte": 2,
}


# ---------------------------------------------------------------------- corners
def _sites() -> Iterator[Item]:
    for site in selectors.troubled_sites():
        what = site.last_error if site.failing_since else site.status_reason
        yield Item(
            "site",
            (what or _("automatic cleaning is not on, so nothing is sold"))[:200],
            site.name,
            site.failing_since or site.last_seen_at,
            reverse("console:site_detail", args=[site.pk]),
        )


def _held() -> Iterator[Item]:
    for run in selectors.runs(group="held").order_by("held_at", "id")[:MOST]:
        yield Item(
            "held",
            run.reason,
            f"{run.order_number} · {run.service_name}",
            run.held_at,
            reverse("console:run_detail", args=[run.pk]),
        )


def _overrides() -> Iterator[Item]:
    for one in provisioning.open_overrides()[:MOST]:
        yield Item(
            "override",
            f"{one.step}: {one.evidence}"[:200],
            f"{one.run.order_number} · {one.asked_by}",
            one.asked_at,
            reverse("console:run_detail", args=[one.run_id]),
        )


def _leaks() -> Iterator[Item]:
    for one in selectors.leaks()[:MOST]:
        yield Item(
            "leak",
            f"{one.what} {one.detail}".strip()[:200],
            f"{one.run.order_number} · {one.site.name}",
            one.since,
            reverse("console:run_detail", args=[one.run_id]),
        )


def _findings() -> Iterator[Item]:
    for one in findings.findings(status="open").order_by("first_seen_at")[:MOST]:
        yield Item(
            "finding",
            f"{one.get_kind_display()}: {one.seen}"[:200],
            f"{one.subject} · {one.site.name}",
            one.first_seen_at,
            reverse("console:finding_detail", args=[one.pk]),
        )


def _events() -> Iterator[Item]:
    late = Q(attempts__gt=0) | Q(created_at__lt=NeoNow() - selectors.LATE_EVENT)
    for event in OutboxEvent.objects.filter(late, delivered_at=None).order_by("id")[:MOST]:
        yield Item(
            "event",
            event.last_error[:200] or event.name,
            f"{event.name} · {event.subject}",
            event.created_at,
            reverse("console:home") + "#events",
        )


def _nodes() -> Iterator[Item]:
    for node in _nodes_without_ticket().order_by("seen_changed_at", "name")[:MOST]:
        yield Item(
            "node",
            reasons.in_words(node.status_reason) or node.seen_fault or node.seen_provision_state,
            f"{node.name} · {node.site.name}",
            node.seen_changed_at,
            reverse("console:node_detail", args=[node.pk]),
        )


def _nodes_without_ticket() -> QuerySet[Node]:
    """Nodes out of service that nobody has a ticket for; the others are told by theirs."""
    ticketed = Ticket.objects.filter(node=OuterRef("pk"), closed_at=None)
    return inventory.nodes_needing_attention().filter(~Exists(ticketed))


def _queues() -> Iterator[Item]:
    site = Site.objects.filter(id=OuterRef("site")).values("name")[:1]
    stuck = (
        QueueEntry.objects.filter(left_at=None)
        .values("site", "resource_class")
        .annotate(
            n=Count("id", output_field=IntegerField()),
            since=Min("entered_at"),
            site_name=Subquery(site),
        )
        .filter(since__lt=NeoNow() - STUCK)
        .order_by("since")
    )
    for row in stuck[:MOST]:
        yield Item(
            "queue",
            _("{n} orders wait").format(n=row["n"]),
            f"{row['resource_class']} · {row['site_name'] or '–'}",
            row["since"],
            reverse("console:capacity") + "#queue",
        )


def _tickets() -> Iterator[Item]:
    for ticket in inventory.open_tickets()[:MOST]:
        yield Item(
            "ticket",
            ticket.action or _without_name(ticket),
            f"{ticket.node.name} · {ticket.node.site.name}",
            ticket.opened_at,
            reverse("console:ticket_detail", args=[ticket.pk]),
        )


def _without_name(ticket: Ticket) -> str:
    """The title as the reader's language has it; the node's name stands beside it."""
    return reasons.in_words(ticket.title.removeprefix(f"{ticket.node.name}: "))
