"""Tickets: work on hardware, opened by a fault or a person, with what is done and how it ended."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import Invalid
from apps.inventory.errors import TicketClosed
from apps.inventory.models import Node, Ticket
from apps.inventory.services.nodes import locked

CATEGORIES = ("node", "gpu", "nic", "disk", "memory", "bmc", "power", "cooling", "network")


@transaction.atomic
def open_ticket(
    *,
    node: Node,
    title: str,
    actor: Any,
    category: str = "node",
    detail: str = "",
    action: str = "",
) -> Ticket:
    """Begin work on a node. Raises Invalid for an unknown category or an empty title."""
    _refuse_unknown(category)
    if not title.strip():
        raise Invalid(_("Say in a few words what is wrong."), field="title")
    ticket = Ticket.objects.create(
        node=node,
        title=title.strip()[:200],
        category=category,
        detail=detail,
        action=action[:200],
        opened_at=clock.now(),
    )
    audit.record(
        actor, "ticket.opened", ticket, reason=title, after={"category": category, "action": action}
    )
    return ticket


@transaction.atomic
def ensure_ticket(*, node: Node, title: str, detail: str, category: str = "node") -> Ticket:
    """One open ticket of a category for a node; what is open already stays as it is."""
    node = locked(node.pk)
    found = node.tickets.filter(closed_at=None, category=category).first()
    return found or Ticket.objects.create(
        node=node, title=title[:200], detail=detail, category=category
    )


@transaction.atomic
def update_ticket(*, ticket: Ticket, actor: Any, **columns: str) -> Ticket:
    """Change category, action or detail of an open ticket. Raises TicketClosed or Invalid."""
    ticket = Ticket.objects.select_for_update().get(pk=ticket.pk)
    if ticket.closed_at is not None:
        raise TicketClosed(title=ticket.title)
    before = {name: getattr(ticket, name) for name in columns}
    if "category" in columns:
        _refuse_unknown(columns["category"])
    for name in ("category", "action", "detail"):
        if name in columns:
            setattr(ticket, name, columns[name][:200] if name == "action" else columns[name])
    ticket.updated_at = clock.now()
    ticket.save(update_fields=["category", "action", "detail", "updated_at"])
    audit.record(actor, "ticket.changed", ticket, before=before, after=dict(columns))
    return ticket


@transaction.atomic
def close_ticket(*, ticket: Ticket, actor: Any, resolution: str) -> Ticket:
    """End the work on a ticket; repeated, it changes nothing."""
    ticket = Ticket.objects.select_for_update().get(pk=ticket.pk)
    if ticket.closed_at is None:
        ticket.closed_at, ticket.resolution = clock.now(), resolution
        ticket.save(update_fields=["closed_at", "resolution"])
        audit.record(actor, "ticket.closed", ticket, reason=resolution)
    return ticket


def _refuse_unknown(category: str) -> None:
    if category not in CATEGORIES:
        raise Invalid(
            _("“{category}” is no category of tickets. Choose one of: {known}."),
            field="category",
            category=category,
            known=", ".join(CATEGORIES),
        )
