"""Orders that begin later: their start, and moving it."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction
from django.utils import translation

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock
from apps.inventory.errors import OutOfCapacity
from apps.orders import deadlines
from apps.orders.errors import NotScheduled, QuotaExceeded, ReservationBusy, TooManyServices
from apps.orders.models import Order
from apps.orders.services import policy
from apps.orders.services.accepting import accept_or_queue, agreed
from apps.orders.services.ending import end_order, expire_order, lock_order
from apps.orders.services.placing import term_of
from apps.orders.services.quoting import in_seconds
from apps.orders.states import OrderStatus
from apps.tenancy.selectors import current_tenant


@transaction.atomic
def begin_scheduled(*, order_id: UUID) -> None:
    """The start of a scheduled order has come: limits and capacity are looked at now.

    Without room in the limits it is refused; without capacity it waits or is refused, as chosen.
    Returns quietly for any other order.
    """
    order = lock_order(order_id)
    if order.status != OrderStatus.SCHEDULED or _is_ahead(order.starts_at):
        return
    if order.ends_at is not None and not _is_ahead(order.ends_at):
        return  # we come so late that its end is due as well
    offering, site = agreed(order)
    try:
        with transaction.atomic():
            policy.check_quota(order)
            accept_or_queue(order, offering, site)
    except (QuotaExceeded, TooManyServices, OutOfCapacity, ReservationBusy) as error:
        order.refresh_from_db()
        with translation.override(current_tenant().language):
            end_order(order, "refuse", reason=error.detail)


@transaction.atomic
def reschedule_order(
    *, order_id: UUID, starts_at: datetime | None, ends_at: datetime | None, actor: User
) -> Order:
    """Move start and end of an order that has not begun; without a start it begins at once.

    Raises NotScheduled, WrongStart, WrongEnd, TooLong, EndNeeded, ApproverNeeded (a longer term
    than was approved), and without a start what placing raises.
    """
    order = lock_order(order_id)
    starts_at, ends_at = in_seconds(starts_at), in_seconds(ends_at)
    if order.status != OrderStatus.SCHEDULED:
        raise NotScheduled(number=order.number, status=order.get_status_display())
    if (starts_at, ends_at) == (order.starts_at, order.ends_at):
        return order
    policy.check_term(starts_at, ends_at)
    policy.check_duration(begins_at=starts_at or clock.now(), ends_at=ends_at)
    if _length(starts_at or clock.now(), ends_at) > _length(order.starts_at, order.ends_at):
        policy.check_longer(order, actor=actor)
    before = term_of(order)
    order.starts_at, order.ends_at = starts_at, ends_at
    order.save(update_fields=["starts_at", "ends_at"])
    deadlines.clear_deadlines(subject=order.pk)
    if ends_at is not None:
        deadlines.set_deadline(kind="order.end", subject=order.pk, due_at=ends_at)
    audit.record(actor, "order.rescheduled", order, before=before, after=term_of(order))
    if starts_at is not None:
        deadlines.set_deadline(kind="order.start", subject=order.pk, due_at=starts_at)
        return order
    policy.check_quota(order)
    accept_or_queue(order, *agreed(order))
    return order


@transaction.atomic
def expire_past_end(*, order_id: UUID, reason: str) -> None:
    """The agreed end of an order came before it could begin; returns quietly for any other."""
    order = lock_order(order_id)
    if order.ends_at is not None and not _is_ahead(order.ends_at):
        expire_order(order_id=order_id, reason=reason)


def _is_ahead(instant: datetime | None) -> bool:
    return instant is not None and instant > clock.now()


def _length(starts_at: datetime | None, ends_at: datetime | None) -> timedelta:
    """How long a term is; without an end it is longer than any other."""
    return ends_at - starts_at if starts_at and ends_at else timedelta.max
