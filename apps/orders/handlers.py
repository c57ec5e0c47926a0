"""What people are told of their orders and services."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils.translation import gettext_lazy as _

from apps.accounts.selectors import recipient_of
from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.notices import services as notices
from apps.orders.models import Order, Service
from apps.orders.names import offering_for_readers


def _tell(
    order: Order, *, event: OutboxEvent, subject: Any, body: Any, link: str, **facts: object
) -> None:
    """Tell who placed the order, once for each event."""
    notices.tell(
        to=recipient_of(order.placed_by),
        kind=event.name,
        dedup_key=f"{event.name}:{event.pk}",
        subject=subject,
        body=body,
        link=link,
        number=order.number,
        **facts,
    )


def _service(service_id: UUID) -> Service:
    return Service.objects.select_related("order__placed_by").get(pk=service_id)


@on("service.ready", tells=True)
def tell_ready(event: OutboxEvent) -> None:
    """It can be used, and is charged from now on."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} is ready"),
        body=_(
            "Your server {name} of {number} is ready: ssh {login}@{address}. "
            "It is charged from {ready_at} on."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        login=service.login,
        address=service.address,
        ready_at=datetime.fromisoformat(event.payload["ready_at"]),
    )


@on("service.failed", tells=True)
def tell_failed(event: OutboxEvent) -> None:
    """It could not be made; nothing is charged."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} could not be provided"),
        body=_(
            "We could not provide {name} of {number}. Everything was undone and nothing is "
            "charged. You can order again at any time."
        ),
        link=f"/orders/{service.order_id}/",
        name=service.name,
    )


@on("service.terminated", tells=True)
def tell_terminated(event: OutboxEvent) -> None:
    """It is gone and its disks are cleaned."""
    service = _service(event.subject)
    if service.ready_at is None:
        return
    _tell(
        service.order,
        event=event,
        subject=_("{name} is removed"),
        body=_("Your server {name} of {number} is removed. Charging stopped at {ended_at}."),
        link=f"/services/{service.pk}/",
        name=service.name,
        ended_at=service.ended_at,
    )


@on("order.queued", tells=True)
def tell_queued(event: OutboxEvent) -> None:
    """It waits for capacity."""
    order = Order.objects.select_related("placed_by").get(pk=event.subject)
    _tell(
        order,
        event=event,
        subject=_("{number} is waiting for capacity"),
        body=_("{number} is in the queue for {offering}. We begin as soon as a server is free."),
        link=f"/orders/{order.pk}/",
        offering=offering_for_readers(order),
    )
