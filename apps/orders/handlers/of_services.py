"""What people are told of a service: its readiness, faults, suspension, end."""

from datetime import datetime

from django.utils.translation import gettext_lazy as _

from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.orders.handlers.telling import tell, the_service
from apps.orders.verbs import in_words as verb_in_words


@on("service.ready", tells=True)
def tell_ready(event: OutboxEvent) -> None:
    """It can be used, and is charged from now on."""
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    if service.ready_at is None:
        return
    tell(
        service.order,
        event=event,
        subject=_("{name} is removed"),
        body=_("Your server {name} of {number} is removed. Charging stopped at {ended_at}."),
        link=f"/services/{service.pk}/",
        name=service.name,
        ended_at=service.ended_at,
    )


@on("service.ends_soon", tells=True)
def tell_ends_soon(event: OutboxEvent) -> None:
    """Its agreed end comes near: 7 days, 1 day, 1 hour before, each once for one end."""
    service = the_service(event.subject)
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
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    later = _("{name} may stay until {until}: the reservation of its server has changed.")
    for_ever = _("{name} may stay: nobody has reserved its server any more.")
    tell(
        service.order,
        event=event,
        subject=_("{name} may stay longer"),
        body=later if service.recalled_at else for_ever,
        link=f"/services/{service.pk}/",
        name=service.name,
        until=service.recalled_at or "",
    )


@on("service.degraded", tells=True)
def tell_degraded(event: OutboxEvent) -> None:
    """Its server has a fault."""
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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


@on("service.suspended_by_operator", tells=True)
def tell_suspended_by_operator(event: OutboxEvent) -> None:
    """The operator suspended it: why, and until when."""
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    tell(
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
    service = the_service(event.subject)
    until = datetime.fromisoformat(event.payload["until"])
    if service.suspended_until != until:
        return
    tell(
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
    service = the_service(event.subject)
    what = str(event.payload["what"])
    subject, body = MAINTENANCE_WORDS[what]
    tell(
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
