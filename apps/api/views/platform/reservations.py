"""Reservations of all tenants, and the operator's hold on them."""

from collections.abc import Callable
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, lists
from apps.api.serializers import orders as order_shapes
from apps.api.serializers import reservations as shapes
from apps.orders import selectors, services
from apps.orders.models import ReservationProjection
from apps.tenancy.context import tenant_by_id, tenant_context


class AllReservations(Endpoint):
    """Reservations of all tenants."""

    @lists(
        "listAllReservations",
        "order.view",
        shapes.ProjectedReservation,
        query=shapes.ProjectedReservationFilters,
        order=("-created_at", "-reservation"),
    )
    def get(self, asked: Asked) -> QuerySet[ReservationProjection]:
        """List reservations of all tenants, newest first."""
        return selectors.projected_reservations().filter(**asked.query)


class ReservationSuspension(Endpoint):
    """The operator's hold on a reservation."""

    @acts(
        "suspendReservation",
        "service.operate",
        shapes.ProjectedReservation,
        body=order_shapes.Why,
    )
    def post(self, asked: Asked, reservation: UUID) -> ReservationProjection:
        """Let no server be taken from a reservation; its capacity stays held."""
        return _decided(services.suspend_reservation, asked, reservation)


class ReservationResumption(Endpoint):
    """The end of the operator's hold."""

    @acts(
        "resumeReservation",
        "service.operate",
        shapes.ProjectedReservation,
        body=order_shapes.Why,
    )
    def post(self, asked: Asked, reservation: UUID) -> ReservationProjection:
        """Let servers be taken from a suspended reservation again."""
        return _decided(services.resume_reservation, asked, reservation)


def _decided(
    decide: Callable[..., object], asked: Asked, reservation: UUID
) -> ReservationProjection:
    row = selectors.projected_reservation(reservation)
    with tenant_context(tenant_by_id(row.tenant)):
        decide(reservation_id=reservation, actor=asked.user, **asked.body)
    return selectors.projected_reservation(reservation)
