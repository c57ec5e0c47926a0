"""What happens to orders, services and reservations when their time comes."""

from django.utils import translation
from django.utils.translation import gettext_lazy as _

from apps.orders import services
from apps.orders.deadlines import due
from apps.orders.models import Deadline
from apps.tenancy.selectors import current_tenant


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


@due("suspension.warning")
def warn_of_suspension(deadline: Deadline) -> None:
    """A suspension is about to end a service."""
    services.warn_of_suspension(service_id=deadline.subject)
