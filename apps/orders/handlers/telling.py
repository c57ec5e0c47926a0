"""How people are told of their orders and services: once, in their language."""

from typing import Any
from uuid import UUID

from apps.accounts.selectors import admins_to_tell, recipient_of
from apps.core.models import OutboxEvent
from apps.notices import services as notices
from apps.orders.models import Order, Service


def tell(
    order: Order, *, event: OutboxEvent, subject: Any, body: Any, link: str, **facts: object
) -> None:
    """Tell who placed the order, or the administrators once that person is gone; once for each
    event, or for each `dedup_key`.
    """
    dedup_key = facts.pop("dedup_key", f"{event.name}:{event.pk}")
    placed_by = order.placed_by
    for recipient in [recipient_of(placed_by)] if placed_by.is_active else admins_to_tell():
        notices.tell(
            to=recipient,
            kind=event.name,
            dedup_key=str(dedup_key),
            subject=subject,
            body=body,
            link=link,
            number=order.number,
            **facts,
        )


def the_service(service_id: UUID) -> Service:
    """A service with whoever ordered it."""
    return Service.objects.select_related("order__placed_by").get(pk=service_id)


def the_order(order_id: UUID) -> Order:
    """An order with whoever placed it."""
    return Order.objects.select_related("placed_by").get(pk=order_id)
