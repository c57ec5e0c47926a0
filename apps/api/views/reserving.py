"""Capacity for a term: its quote, its booking, its end before it begins."""

from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, lists, shows
from apps.api.serializers import orders as order_shapes
from apps.api.serializers import reservations as shapes
from apps.orders import selectors, services
from apps.orders.models import Quote, Reservation


class ReservationQuotes(Endpoint):
    """Terms for a term."""

    @acts(
        "createReservationQuote",
        "order.place",
        order_shapes.QuoteSerializer,
        body=shapes.NewReservationQuote,
        status=201,
    )
    def post(self, asked: Asked) -> Quote:
        """Ask what a term costs: in `terms` the whole of it and each month. Nothing is held."""
        return services.quote_reservation(actor=asked.user, **asked.body)


class Reservations(Endpoint):
    """Capacity of the organisation."""

    @lists(
        "listReservations",
        "order.view",
        shapes.ReservationSerializer,
        query=shapes.ReservationFilters,
    )
    def get(self, asked: Asked) -> QuerySet[Reservation]:
        """List reservations, newest first."""
        return selectors.reservations().filter(**asked.query)

    @acts(
        "placeReservation",
        "order.place",
        shapes.ReservationSerializer,
        body=shapes.NewReservation,
        status=201,
    )
    def post(self, asked: Asked) -> Reservation:
        """Confirm the quote of a term: its servers are held from now on.

        Placing the same quote again answers the same reservation.
        """
        made = services.place_reservation(actor=asked.user, **asked.body)
        return selectors.reservation_by_id(made.pk)


class ReservationItem(Endpoint):
    """One reservation."""

    @shows("showReservation", "order.view", shapes.ReservationSerializer)
    def get(self, asked: Asked, reservation: UUID) -> Reservation:
        """Show a reservation."""
        return selectors.reservation_by_id(reservation)


class ReservationCancellation(Endpoint):
    """Gives a reservation up."""

    @acts(
        "cancelReservation", "order.cancel", shapes.ReservationSerializer, body=order_shapes.Reason
    )
    def post(self, asked: Asked, reservation: UUID) -> Reservation:
        """Cancel a reservation before it begins; nothing is charged."""
        services.cancel_reservation(reservation_id=reservation, actor=asked.user, **asked.body)
        return selectors.reservation_by_id(reservation)
