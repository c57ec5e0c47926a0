"""Approvals: a question to the tenant's administrators, answered once, or expired.

What is asked about (an order, a reservation) says how it is locked and what follows:

    APPROVABLE["order"] = Approvable(lock=…, granted=…, ended=…)

The thing is locked before its question, so approving, refusing, cancelling and expiring at one
moment end in one outcome.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.accounts.access import require
from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.core.errors import NotFound
from apps.orders import deadlines
from apps.orders.errors import OwnApproval, ReasonNeeded
from apps.orders.models import Approval, Order, Reservation
from apps.orders.selectors import order_policy
from apps.orders.services.policy import approvers_in_words
from apps.orders.states import APPROVAL, ApprovalStatus

LONGEST_REASON = 300


@dataclass(frozen=True)
class Approvable:
    """How one kind of thing takes part: `lock` its row, go on when `granted`, and when it was
    `ended` by a verb (refuse or expire) with a reason.
    """

    lock: Callable[[UUID], Any]
    granted: Callable[[Any, User], None]
    ended: Callable[[Any, str, str], None]


APPROVABLE: dict[str, Approvable] = {}


def ask_approval(
    *,
    actor: User,
    rule: str,
    order: Order | None = None,
    reservation: Reservation | None = None,
    not_after: datetime | None = None,
) -> Approval:
    """Ask the tenant's administrators about a locked thing, in the transaction that placed it.

    The question expires after the hours of the order policy, and `not_after` at the latest.
    """
    thing = order or reservation
    expires_at = clock.now() + timedelta(hours=order_policy().approval_hours)
    approval = Approval.objects.create(
        order=order,
        reservation=reservation,
        asked_by=actor,
        rule=rule[:200],
        expires_at=min(expires_at, not_after or expires_at),
    )
    deadlines.set_deadline(kind="approval.expire", subject=approval.pk, due_at=approval.expires_at)
    audit.record(actor, "approval.asked", thing, reason=rule)  # type: ignore[arg-type]
    outbox.publish("approval.asked", subject=approval.pk)
    return approval


@transaction.atomic
def approve(*, approval_id: UUID, actor: User, reason: str = "") -> Approval:
    """Say yes: what was asked about goes on at once. Saying it again changes nothing.

    Limits and capacity are looked at now; when they do not suffice the error says so and the
    question stays open. Raises OwnApproval, QuotaExceeded, OutOfCapacity, WrongStatus, NotFound.
    """
    require(actor, "order.approve")
    approval, kind, thing = _locked(approval_id)
    if approval.status == ApprovalStatus.APPROVED:
        return approval
    if approval.asked_by_id == actor.pk and actor.role != Role.OWNER:
        raise OwnApproval(holders=approvers_in_words(but=actor))
    _answer(approval, "approve", actor, reason)
    kind.granted(thing, actor)
    audit.record(actor, "approval.approved", thing, reason=reason)
    return approval


@transaction.atomic
def refuse_approval(*, approval_id: UUID, actor: User, reason: str) -> Approval:
    """Say no, and why. Saying it again changes nothing. Raises ReasonNeeded, WrongStatus,
    NotFound.
    """
    require(actor, "order.approve")
    reason = reason.strip()
    if not 3 <= len(reason) <= LONGEST_REASON:
        raise ReasonNeeded(most=LONGEST_REASON, field="reason")
    approval, kind, thing = _locked(approval_id)
    if approval.status == ApprovalStatus.REFUSED:
        return approval
    _answer(approval, "refuse", actor, reason)
    kind.ended(thing, "refuse", reason)
    audit.record(actor, "approval.refused", thing, reason=reason)
    return approval


@transaction.atomic
def expire_approval(*, approval_id: UUID, reason: str) -> None:
    """Nobody answered in time; returns quietly when somebody did."""
    approval, kind, thing = _locked(approval_id)
    if approval.status != ApprovalStatus.WAITING or approval.expires_at > clock.now():
        return
    _answer(approval, "expire", None, "")
    kind.ended(thing, "expire", reason)
    audit.record(None, "approval.expired", thing, reason=reason)


def close_approval(
    *,
    order: Order | None = None,
    reservation: Reservation | None = None,
    verb: str = "withdraw",
) -> None:
    """The locked thing is wanted no more: its open question, if there is one, is withdrawn, or
    expires with it.
    """
    approval = (
        Approval.objects.select_for_update()
        .filter(order=order, reservation=reservation, status=ApprovalStatus.WAITING)
        .first()
    )
    if approval is not None:
        _answer(approval, verb, None, "")


def _locked(approval_id: UUID) -> tuple[Approval, Approvable, Any]:
    """The question and its thing, the thing locked first. Raises NotFound."""
    found = Approval.objects.filter(pk=approval_id).first()
    if found is None:
        raise NotFound(field="approval")
    kind = APPROVABLE["order" if found.order_id else "reservation"]
    thing_id = found.order_id or found.reservation_id
    assert thing_id is not None  # noqa: S101 - the database says so; tells the type checker
    thing = kind.lock(thing_id)
    return Approval.objects.select_for_update().get(pk=approval_id), kind, thing


def _answer(approval: Approval, verb: str, actor: User | None, reason: str) -> None:
    APPROVAL.move(approval, verb)
    approval.decided_by, approval.decided_at = actor, clock.now()
    approval.reason = reason[:LONGEST_REASON]
    approval.save(update_fields=["status", "decided_by", "decided_at", "reason"])
    deadlines.clear_deadlines(subject=approval.pk)
    outbox.publish("approval.answered", subject=approval.pk, status=approval.status)
