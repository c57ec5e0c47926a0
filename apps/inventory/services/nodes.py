"""What becomes of a node: recycled on proof, quarantined, serviced, restored, retired."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.db import connection, transaction
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.core import outbox
from apps.inventory.errors import NodeHeld, NotProvenClean
from apps.inventory.models import Node, NodeEvent, Ticket
from apps.inventory.states import NODE, NodeStatus

CLAIMED = "claimed"  # by two people, in place of what the site would tell
SUCCEEDED = ("success", "succeeded", "ok", "done")


def locked(node_id: UUID) -> Node:
    """The node under its row lock. Raises Node.DoesNotExist."""
    return Node.objects.select_for_update(no_key=True).get(pk=node_id)


def moved(node: Node, verb: str, *, reason: str = "", actor: Any = None, **columns: Any) -> None:
    """Move a locked node, save it with the columns given and write its history."""
    before = NODE.move(node, verb)
    node.status_reason = reason[:400]
    for name, value in columns.items():
        setattr(node, name, value)
    node.save(update_fields=["status", "status_reason", *columns])
    NodeEvent.objects.create(
        node=node,
        verb=verb,
        status=node.status,
        reason=reason,
        actor=str(actor) if actor is not None else "",
    )
    if actor is not None:
        audit.record(
            actor,
            f"node.{verb}",
            node,
            reason=reason,
            before={"status": before},
            after={"status": node.status},
        )
    if node.status == NodeStatus.AVAILABLE:
        outbox.publish(
            "node.available",
            subject=node.pk,
            site=str(node.site_id),
            resource_class=node.resource_class,
        )


@transaction.atomic
def recycle(*, node: Node, proof: dict[str, Any]) -> Node:
    """Put a cleaned node back into the pool.

    `proof` tells of a cleaning that succeeded and began after the last lease ended: steps,
    started_at, ended_at (ISO 8601), result, simulated. Raises NotProvenClean, or WrongStatus unless
    it is cleaning.
    """
    node = locked(node.pk)
    ended = _accept_proof(node, proof)
    moved(node, "recycle", cleaned_at=ended, clean_proof=proof)
    return node


@transaction.atomic
def note_cleaning(*, node: Node, proof: dict[str, Any]) -> Node:
    """Keep a newer proof of cleaning of a node in the pool. Raises NotProvenClean."""
    node = locked(node.pk)
    node.cleaned_at, node.clean_proof = _accept_proof(node, proof), proof
    node.save(update_fields=["cleaned_at", "clean_proof"])
    return node


@transaction.atomic
def quarantine(
    *, node: Node, reason: str, actor: Any = None, ticket_title: str | None = None
) -> Node:
    """Keep a node out of the pool until a person restores it, with one open ticket about it.

    Allocations stay as they are. A node already quarantined is left alone.
    """
    node = locked(node.pk)
    if node.status != NodeStatus.QUARANTINED:
        moved(node, "quarantine", reason=reason, actor=actor)
        outbox.publish("node.quarantined", subject=node.pk, node=node.name)
    if not node.tickets.filter(closed_at=None).exists():
        Ticket.objects.create(node=node, title=(ticket_title or reason)[:200], detail=reason)
    return node


@transaction.atomic
def service_node(*, node: Node, actor: Any, reason: str) -> Node:
    """Take a node out for work on it.

    Raises WrongStatus while it is allocated or cleaning, or NodeHeld.
    """
    node = locked(node.pk)
    _refuse_held(node)
    moved(node, "service", reason=reason, actor=actor)
    return node


@transaction.atomic
def restore_node(
    *, node: Node, actor: Any, reason: str, proof: dict[str, Any] | None = None
) -> Node:
    """Put a quarantined or serviced node back into the pool.

    If it was leased since its last proven cleaning, a newer proof is needed (see `recycle`). Raises
    NodeHeld, NotProvenClean or WrongStatus.
    """
    node = locked(node.pk)
    _refuse_held(node)
    if proof is not None:
        moved(
            node,
            "restore",
            reason=reason,
            actor=actor,
            cleaned_at=_accept_proof(node, proof),
            clean_proof=proof,
        )
        return node
    _held, lease_ended = last_lease(node)
    if lease_ended is not None and (node.cleaned_at is None or node.cleaned_at < lease_ended):
        raise NotProvenClean(
            field="proof", node=node.name, problem=_("it was not cleaned since its last customer")
        )
    moved(node, "restore", reason=reason, actor=actor)
    return node


@transaction.atomic
def retire_node(*, node: Node, actor: Any, reason: str) -> Node:
    """Take a node out for good.

    Raises WrongStatus while it is allocated or cleaning, or NodeHeld.
    """
    node = locked(node.pk)
    _refuse_held(node)
    moved(node, "retire", reason=reason, actor=actor)
    return node


def last_lease(node: Node) -> tuple[bool, datetime | None]:
    """Is the node held now, and when did its last lease end (None: it never had one)?"""
    with connection.cursor() as cursor:
        cursor.execute("SELECT is_held, ended_at FROM public.inventory_last_lease(%s)", [node.pk])
        is_held, ended_at = cursor.fetchone()
    return bool(is_held), ended_at


def _refuse_held(node: Node) -> None:
    if last_lease(node)[0]:
        raise NodeHeld(field="node", node=node.name)


def _accept_proof(node: Node, proof: dict[str, Any]) -> datetime:
    """The end of a cleaning that proves the node clean.

    Raises NotProvenClean saying what is wrong with it.
    """
    problem = ""
    started, ended = _instant(proof.get("started_at")), _instant(proof.get("ended_at"))
    is_held, lease_ended = last_lease(node)
    if is_held:
        problem = _("a customer still holds it")
    elif not _is_good(proof):
        problem = _("the cleaning did not succeed")
    elif not proof.get("steps"):
        problem = _("the cleaning names no step that was run")
    elif started is None or ended is None or ended < started:
        problem = _("the cleaning has no start and end that can be read")
    elif lease_ended is not None and started < lease_ended.replace(microsecond=0):
        problem = _("the cleaning began before its last customer left")
    if problem or ended is None:
        raise NotProvenClean(field="proof", node=node.name, problem=problem)
    return ended


def _is_good(proof: dict[str, Any]) -> bool:
    """A cleaning that succeeded, or one that two different people vouch for."""
    result = str(proof.get("result", "")).lower()
    by = [proof.get("claimed_by"), proof.get("confirmed_by")]
    return result in SUCCEEDED or (result == CLAIMED and all(by) and by[0] != by[1])


def _instant(value: Any) -> datetime | None:
    """An ISO 8601 instant; without an offset it is UTC, as Ironic writes it."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value if value.tzinfo else value.replace(tzinfo=UTC)
