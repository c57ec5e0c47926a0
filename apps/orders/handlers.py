"""What happens to orders and services when their time comes, and what people are told."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.utils import translation
from django.utils.functional import lazy
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.accounts.selectors import admins_to_tell, people_who_may, recipient_of
from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.notices import services as notices
from apps.orders import causes, services
from apps.orders.deadlines import due
from apps.orders.models import Approval, Deadline, Order, Reservation, Service
from apps.orders.names import offering_for_readers
from apps.orders.states import ApprovalStatus
from apps.orders.verbs import in_words as verb_in_words
from apps.tenancy.selectors import current_tenant


def _tell(
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


@on("order.scheduled", tells=True)
def tell_scheduled(event: OutboxEvent) -> None:
    """It begins later; nothing is held until then."""
    order = _order(event.subject)
    _tell(
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
    order = _order(event.subject)
    _tell(
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


@on("service.ends_soon", tells=True)
def tell_ends_soon(event: OutboxEvent) -> None:
    """Its agreed end comes near: 7 days, 1 day, 1 hour before, each once for one end."""
    service = _service(event.subject)
    ends_at = datetime.fromisoformat(event.payload["ends_at"])
    if service.leaves_at != ends_at:
        return  # it was moved meanwhile
    called_back = _(
        "Your server {name} of {number} was lent until {ends_at}, when somebody's reservation of "
        "it comes near; it is removed then, with everything on it. Save your data, or order "
        "another server."
    )
    protected = _(
        "Your server {name} of {number} ends at {ends_at}, although it is protected against "
        "termination: an agreed end counts. Everything on it is lost then. To keep it, choose a "
        "later end on its page."
    )
    plain = _(
        "Your server {name} of {number} ends at {ends_at}. Everything on it is lost then. To keep "
        "it, choose a later end on its page."
    )
    _tell(
        service.order,
        event=event,
        subject=_("{name} ends at {ends_at}"),
        body=called_back
        if service.recalled_at == ends_at
        else protected
        if service.is_protected
        else plain,
        link=f"/services/{service.pk}/",
        name=service.name,
        ends_at=ends_at,
        dedup_key=f"ends_soon:{service.pk}:{ends_at.isoformat()}:{event.payload['hours']}",
    )


@on("service.left_reservation", tells=True)
def tell_left_reservation(event: OutboxEvent) -> None:
    """Its reservation is over; it goes on, on demand."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} goes on, on demand"),
        body=_(
            "The reservation of {name} is over. The server goes on as you ordered it, and is "
            "charged on demand from then on. Terminate it when you do not need it any more."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
    )


@on("service.recall_moved", tells=True)
def tell_recall_moved(event: OutboxEvent) -> None:
    """The reservation of a borrowed server went away."""
    service = _service(event.subject)
    later = _("{name} may stay until {until}: the reservation of its server has changed.")
    for_ever = _("{name} may stay: nobody has reserved its server any more.")
    _tell(
        service.order,
        event=event,
        subject=_("{name} may stay longer"),
        body=later if service.recalled_at else for_ever,
        link=f"/services/{service.pk}/",
        name=service.name,
        until=service.recalled_at or "",
    )


_RESERVATION_WORDS = {
    "reservation.booked": (
        _("{number} is booked"),
        _(
            "{quantity} × {offering} are held for you from {starts_at} to {ends_at}. The term is "
            "charged at one price, used or not. Until it begins you can cancel it at no cost."
        ),
    ),
    "reservation.begun": (
        _("{number} has begun"),
        _(
            "{quantity} × {offering} are yours until {ends_at}. Order servers under the "
            "reservation: they are covered by its price."
        ),
    ),
    "reservation.ends_soon": (
        _("{number} ends at {ends_at}"),
        _(
            "Servers that live on it end then, or go on on demand where you ordered so and nobody "
            "has reserved them. To keep the capacity, book a new term."
        ),
    ),
    "reservation.expired": (
        _("{number} is over"),
        _("Its term ended at {ends_at}; nothing is held any more. {reason}"),
    ),
    "reservation.refused": (
        _("{number} was refused"),
        _("{reason} Nothing is held and nothing is charged."),
    ),
    "reservation.cancelled": (
        _("{number} is cancelled"),
        _("Nothing is held and nothing is charged. {reason}"),
    ),
    "reservation.suspend": (
        _("{number} is suspended"),
        _(
            "No server can be taken from it until the operator resumes it; your capacity stays "
            "held. {reason}"
        ),
    ),
    "reservation.resume": (
        _("{number} serves again"),
        _("Servers can be ordered under it from {starts_at} to {ends_at}."),
    ),
}


def tell_of_reservation(event: OutboxEvent) -> None:
    """What became of a reservation."""
    reservation = Reservation.objects.select_related("placed_by").get(pk=event.subject)
    subject, body = _RESERVATION_WORDS[event.name]
    placed_by = reservation.placed_by
    for recipient in [recipient_of(placed_by)] if placed_by.is_active else admins_to_tell():
        notices.tell(
            to=recipient,
            kind=event.name,
            dedup_key=f"{event.name}:{event.pk}",
            subject=subject,
            body=body,
            link=f"/reservations/{reservation.pk}/",
            number=reservation.number,
            quantity=reservation.quantity,
            offering=offering_for_readers(reservation),
            starts_at=reservation.starts_at,
            ends_at=reservation.ends_at,
            reason=reservation.status_reason,
        )


for _name in _RESERVATION_WORDS:
    on(_name, tells=True)(tell_of_reservation)


@due("queue.expire")
def expire_queued(deadline: Deadline) -> None:
    """It waited as long as its customer chose."""
    with translation.override(current_tenant().language):
        services.expire_queued(
            order_id=deadline.subject, reason=str(_("No server became free in time."))
        )


@due("service.leave")
def leave_reservation(deadline: Deadline) -> None:
    """The term under a service is over."""
    services.leave_reservation(service_id=deadline.subject)


@due("reservation.begin")
def begin_reservation(deadline: Deadline) -> None:
    """Its term begins."""
    services.begin_reservation(reservation_id=deadline.subject)


@due("reservation.warning")
def warn_of_term(deadline: Deadline) -> None:
    """Its term comes near the end."""
    services.warn_of_term(reservation_id=deadline.subject)


@due("reservation.end")
def expire_reservation(deadline: Deadline) -> None:
    """Its term is over."""
    services.expire_reservation(reservation_id=deadline.subject)


@due("order.start")
def start_order(deadline: Deadline) -> None:
    """A scheduled order begins."""
    services.begin_scheduled(order_id=deadline.subject)


@due("order.end")
def expire_order(deadline: Deadline) -> None:
    """The agreed end came before the order could begin."""
    with translation.override(current_tenant().language):
        services.expire_past_end(
            order_id=deadline.subject, reason=str(_("Its end came before it could begin."))
        )


@due("approval.expire")
def expire_approval(deadline: Deadline) -> None:
    """Nobody answered in time."""
    with translation.override(current_tenant().language):
        services.expire_approval(
            approval_id=deadline.subject, reason=str(_("Nobody answered in time."))
        )


@due("service.warning")
def warn_of_end(deadline: Deadline) -> None:
    """The agreed end of a service comes near."""
    services.warn_of_end(service_id=deadline.subject)


@due("service.end")
def end_service(deadline: Deadline) -> None:
    """The agreed end of a service has come."""
    services.end_as_agreed(service_id=deadline.subject)


@due("suspension.end")
def end_suspension(deadline: Deadline) -> None:
    """A suspended service could not be brought back in time."""
    services.end_suspension(service_id=deadline.subject, due_at=deadline.due_at)


@on("service.degraded", tells=True)
def tell_degraded(event: OutboxEvent) -> None:
    """Its server has a fault."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} is degraded"),
        body=_(
            "We have seen a fault of the server of {name} ({number}). It may still work. "
            "We look at it; you are told what comes next."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
    )


@on("service.recovered", tells=True)
def tell_recovered(event: OutboxEvent) -> None:
    """The fault is gone."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} is well again"),
        body=_("The fault of the server of {name} ({number}) is gone."),
        link=f"/services/{service.pk}/",
        name=service.name,
    )


@on("service.suspended", tells=True)
def tell_suspended(event: OutboxEvent) -> None:
    """Its server is lost; it is free until it runs again."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("The server of {name} is lost"),
        body=_(
            "The server of {name} ({number}) is lost, with what was on its own disks. We make you "
            "another one with the same name, address, image and keys. You pay nothing from {since} "
            "until it is proven ready."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        since=datetime.fromisoformat(event.payload["since"]),
    )


@on("service.resumed", tells=True)
def tell_resumed(event: OutboxEvent) -> None:
    """It runs on another server."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} runs again"),
        body=_(
            "{name} ({number}) runs on another server and is charged from {at} on. Its SSH host "
            "keys have changed; the new ones are on its page."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        at=datetime.fromisoformat(event.payload["at"]),
    )


@on("service.operation_failed", tells=True)
def tell_operation_failed(event: OutboxEvent) -> None:
    """What was asked for could not be done."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name}: “{verb}” did not work"),
        body=_(
            "“{verb}” of {name} ({number}) could not be done and was taken back. "
            "Its page shows how it is now; try again, or ask us."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        verb=verb_in_words(event.payload["verb"]),
    )


@due("suspension.warning")
def warn_of_suspension(deadline: Deadline) -> None:
    """A suspension is about to end a service."""
    services.warn_of_suspension(service_id=deadline.subject)


@on("service.suspended_by_operator", tells=True)
def tell_suspended_by_operator(event: OutboxEvent) -> None:
    """The operator suspended it: why, and until when."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} is suspended"),
        body=_(
            "{name} ({number}) was suspended by the operator: {reason}. It is not charged while "
            "suspended. Unless it is resumed by {until}, it is terminated and everything on it is "
            "lost. Answer to the operator before then."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        reason=event.payload["reason"],
        until=datetime.fromisoformat(event.payload["until"]),
    )


@on("service.resumed_by_operator", tells=True)
def tell_resumed_by_operator(event: OutboxEvent) -> None:
    """It goes on as before."""
    service = _service(event.subject)
    _tell(
        service.order,
        event=event,
        subject=_("{name} is no longer suspended"),
        body=_("{name} ({number}) goes on as before, from {at} on."),
        link=f"/services/{service.pk}/",
        name=service.name,
        at=datetime.fromisoformat(event.payload["at"]),
    )


@on("service.suspension_ends_soon", tells=True)
def tell_suspension_ends_soon(event: OutboxEvent) -> None:
    """Nobody resumed it yet: 3 days, 1 day, 1 hour before it is terminated."""
    service = _service(event.subject)
    until = datetime.fromisoformat(event.payload["until"])
    if service.suspended_until != until:
        return
    _tell(
        service.order,
        event=event,
        subject=_("{name} is terminated at {until}"),
        body=_(
            "{name} ({number}) is still suspended. Unless it is resumed by {until}, it is "
            "terminated and everything on it is lost."
        ),
        link=f"/services/{service.pk}/",
        name=service.name,
        until=until,
        dedup_key=f"suspension:{service.pk}:{until.isoformat()}:{event.payload['hours']}",
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


def _order(order_id: UUID) -> Order:
    return Order.objects.select_related("placed_by").get(pk=order_id)


MAINTENANCE_WORDS = {
    "planned": (
        _("Planned work on {name}"),
        _(
            "From {starts_at} to {ends_at} we work on the server of {name} of {number}: {title}. "
            "It may not answer during that time."
        ),
    ),
    "retirement": (
        _("The server of {name} will be retired"),
        _(
            "The server of {name} of {number} is taken out for good at {starts_at}: {title}. Move "
            "what you need to another server before then, or ask us to move it."
        ),
    ),
    "over": (
        _("The work on {name} is over"),
        _("The planned work on the server of {name} of {number} is over: {title}."),
    ),
    "cancelled": (
        _("The work on {name} is cancelled"),
        _("The work planned from {starts_at} on for {name} of {number} is cancelled: {title}."),
    ),
}


@on("service.maintenance", tells=True)
def tell_maintenance(event: OutboxEvent) -> None:
    """Planned work on the server of a service; once for each step of it."""
    service = _service(event.subject)
    what = str(event.payload["what"])
    subject, body = MAINTENANCE_WORDS[what]
    _tell(
        service.order,
        event=event,
        subject=subject,
        body=body,
        link=f"/services/{service.pk}/",
        dedup_key=f"maintenance:{event.payload['maintenance']}:{what}:{service.pk}",
        name=service.name,
        title=event.payload["title"],
        starts_at=datetime.fromisoformat(event.payload["starts_at"]),
        ends_at=datetime.fromisoformat(event.payload["ends_at"]),
    )
