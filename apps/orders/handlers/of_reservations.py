"""What people are told of reservations."""

from django.utils.translation import gettext_lazy as _

from apps.accounts.selectors import admins_to_tell, recipient_of
from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.notices import services as notices
from apps.orders.models import Reservation
from apps.orders.names import offering_for_readers

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
