"""What is looked after again and again: reserved servers that broke, borrowed ones."""

from uuid import UUID

from django.utils.translation import gettext_lazy as _

from apps.catalog.models import Offering
from apps.inventory import selectors
from apps.inventory import services as inventory
from apps.inventory.models import Allocation
from apps.notices.services import tell_operators
from apps.orders.models import ReservationProjection
from apps.orders.services.lifetime import review_recall
from apps.tenancy.context import tenant_by_id, tenant_context


def keep_terms() -> int:
    """Give reservations other servers for those that cannot serve them; how many got one.

    Where there is none, operators are told once and find a ticket. For the platform's side.
    """
    moved = 0
    rows = list(selectors.terms_without_a_node().select_related("node"))
    booked = ReservationProjection.objects.in_bulk([row.reservation for row in rows])
    traits = dict(
        Offering.objects.filter(sku__in={one.sku for one in booked.values()}).values_list(
            "sku", "traits"
        )
    )
    for row in rows:
        reservation = booked.get(row.reservation)
        if reservation is None:
            continue
        if inventory.move_term(hold=row.pk, traits=traits.get(reservation.sku, [])) is None:
            _tell_shortage(row, reservation)
        else:
            moved += 1
    return moved


def _tell_shortage(row: Allocation, reservation: ReservationProjection) -> None:
    tell_operators(
        kind="reservation.short",
        dedup_key=f"reservation.short:{row.pk}",
        subject=_("{number} lacks a server"),
        body=_(
            "{node} cannot serve {number} from {starts_at} to {ends_at}, and no other server is "
            "free. Repair it, or free another one of its kind."
        ),
        link=f"/reservations/{reservation.pk}/",
        number=reservation.number,
        node=row.node.name,
        starts_at=row.during.lower,
        ends_at=row.during.upper,
    )


def keep_loans() -> int:
    """Let services stay longer on borrowed servers whose reservation went away; how many do.

    For the platform's side.
    """
    return sum(_keep(row.tenant, row.service) for row in selectors.loans_that_may_last())


def _keep(tenant: UUID, service: UUID | None) -> bool:
    if service is None:
        return False
    with tenant_context(tenant_by_id(tenant)):
        return review_recall(service_id=service)
