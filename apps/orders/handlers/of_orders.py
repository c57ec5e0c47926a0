"""What people are told of orders and of approvals."""

from typing import Any

from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.selectors import people_who_may, recipient_of
from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.notices import services as notices
from apps.orders import causes
from apps.orders.handlers.telling import tell, the_order
from apps.orders.models import Approval, Order
from apps.orders.names import offering_for_readers
from apps.orders.states import ApprovalStatus


@on("order.queued", tells=True)
def tell_queued(event: OutboxEvent) -> None:
    """It waits for capacity."""
    order = Order.objects.select_related("placed_by").get(pk=event.subject)
    tell(
        order,
        event=event,
        subject=_("{number} is waiting for capacity"),
        body=_("{number} is in the queue for {offering}. We begin as soon as a server is free."),
        link=f"/orders/{order.pk}/",
        offering=offering_for_readers(order),
    )


@on("order.scheduled", tells=True)
def tell_scheduled(event: OutboxEvent) -> None:
    """It begins later; nothing is held until then."""
    order = the_order(event.subject)
    tell(
        order,
        event=event,
        subject=_("{number} is scheduled"),
        body=_(
            "{number} begins at {starts_at}. Until then it holds no server and costs nothing; "
            "limits and free servers are looked at when it begins."
        ),
        link=f"/orders/{order.pk}/",
        starts_at=order.starts_at,
    )


@on("order.refused", tells=True)
@on("order.expired", tells=True)
def tell_over(event: OutboxEvent) -> None:
    """It ended before it began."""
    order = the_order(event.subject)
    tell(
        order,
        event=event,
        subject=_("{number} was refused")
        if event.name == "order.refused"
        else _("{number} has expired"),
        body=_("{reason} Nothing is held and nothing is charged. You can order again at any time."),
        link=f"/orders/{order.pk}/",
        reason=order.status_reason,
    )


@on("approval.asked", tells=True)
def tell_approvers(event: OutboxEvent) -> None:
    """Somebody waits for an answer."""
    approval = Approval.objects.select_related("order", "reservation", "asked_by").get(
        pk=event.subject
    )
    thing = approval.order or approval.reservation
    for person in people_who_may("order.approve").exclude(pk=approval.asked_by_id):
        _tell_of_approval(
            approval,
            person,
            event=event,
            subject=_("{number} of {who} waits for your approval"),
            body=_(
                "{who} asks for {quantity} × {offering} ({gpus} GPUs). Answer by {until}, or it "
                "expires. {rule}"
            ),
            who=approval.asked_by.name,
            quantity=getattr(thing, "quantity", ""),
            offering=offering_for_readers(thing) if thing else "",
            gpus=getattr(thing, "gpus", ""),
            until=approval.expires_at,
            rule=lazy(lambda: causes.rule_in_words(approval.rule), str)(),
        )


@on("approval.answered", tells=True)
def tell_answer(event: OutboxEvent) -> None:
    """Who asked learns that it goes on; a refusal or an expiry is told by the order itself."""
    approval = Approval.objects.select_related("asked_by", "decided_by").get(pk=event.subject)
    if approval.status != ApprovalStatus.APPROVED or approval.decided_by is None:
        return
    _tell_of_approval(
        approval,
        approval.asked_by,
        event=event,
        subject=_("{number} is approved"),
        body=_("{who} approved {number}. {reason}"),
        who=approval.decided_by.name,
        reason=approval.reason,
    )


def _tell_of_approval(
    approval: Approval,
    person: User,
    *,
    event: OutboxEvent,
    subject: Any,
    body: Any,
    **facts: object,
) -> None:
    where = f"/orders/{approval.order_id}/" if approval.order_id else "/approvals/"
    notices.tell(
        to=recipient_of(person),
        kind=event.name,
        dedup_key=f"{event.name}:{approval.pk}",
        subject=subject,
        body=body,
        link=where,
        number=approval.order or approval.reservation,
        **facts,
    )
