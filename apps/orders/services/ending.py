"""Orders that end without servers in use: cancelled, refused, expired."""

from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.core.errors import NotFound
from apps.orders import causes, deadlines, projections
from apps.orders.errors import NotCancellable, Protected
from apps.orders.models import Order, QueueEntry, Service
from apps.orders.services.approving import close_approval
from apps.orders.services.states import end_service
from apps.orders.states import ORDER, OrderStatus, ServiceState


def lock_order(order_id: UUID) -> Order:
    """The order under its row lock. Raises NotFound, the same for another tenant's."""
    order = Order.objects.select_for_update().filter(pk=order_id).first()
    if order is None:
        raise NotFound(field="order")
    return order


@transaction.atomic
def expire_order(*, order_id: UUID, reason: str) -> None:
    """An order whose time has passed before it began: holds nothing, charged never.

    Returns quietly for one that has begun or ended. Whoever calls says in `reason` what passed.
    """
    order = lock_order(order_id)
    if ORDER.can(order.status, "expire"):
        end_order(order, "expire", reason=reason)


@transaction.atomic
def cancel_order(*, order_id: UUID, actor: User, reason: str = "") -> Order:
    """Cancel an order at any stage before its servers are in use; cancelling twice changes nothing.

    Raises NotCancellable when a service was ready already, Protected when one is, NotFound.
    """
    order = lock_order(order_id)  # lock
    if order.status == OrderStatus.CANCELLED:
        return order
    services = list(  # in the order in which their nodes are locked
        Service.objects.select_for_update().filter(order=order).order_by("node_id")
    )
    if any(service.ready_at for service in services):
        raise NotCancellable(number=order.number)
    for service in services:
        if service.is_protected and service.state == ServiceState.PROVISIONING:
            raise Protected(name=service.name)
    before = order.status
    ORDER.move(order, "cancel")  # check and change
    order.status_reason = reason[:400]
    order.save(update_fields=["status", "status_reason"])
    for service in services:
        if service.state == ServiceState.PROVISIONING:
            end_service(order, service, cause=causes.ORDER_CANCELLED)
    leave(order)
    audit.record(
        actor, "order.cancelled", order, reason=reason, before={"status": before},
        after={"status": order.status},
    )  # fmt: skip
    outbox.publish("order.cancelled", subject=order.pk)
    return order


def end_order(order: Order, verb: str, *, reason: str) -> None:
    """End a locked order that has no services; whoever placed it is told why."""
    ORDER.move(order, verb)
    order.status_reason = reason[:400]
    order.decided_at = clock.now()
    order.save(update_fields=["status", "status_reason", "decided_at"])
    leave(order, verb="expire" if verb == "expire" else "withdraw")
    audit.record(None, f"order.{order.status}", order, reason=reason)
    outbox.publish(f"order.{order.status}", subject=order.pk)


def leave(order: Order, *, verb: str = "withdraw") -> None:
    """Nothing waits for a locked order any more: no queue, no approver, no deadline."""
    QueueEntry.objects.filter(order=order.pk, left_at=None).update(left_at=clock.now())
    close_approval(order=order, verb=verb)
    deadlines.clear_deadlines(subject=order.pk)
    projections.write_order(order)
