"""The console's rows of orders and services: written with the change, rebuilt and compared by a
command.
"""

from typing import Any

from apps.core import clock
from apps.orders.models import (
    Order,
    OrderProjection,
    Reservation,
    ReservationProjection,
    Service,
    ServiceProjection,
)
from apps.tenancy.selectors import current_tenant


def order_row(order: Order) -> dict[str, Any]:
    """What the console shows of an order."""
    return {
        "tenant": current_tenant().id,
        "number": order.number,
        "name": order.name,
        "sku": order.sku,
        "site_code": order.site_code,
        "quantity": order.quantity,
        "gpus": order.gpus,
        "status": order.status,
        "status_reason": order.status_reason,
    }


def service_row(service: Service) -> dict[str, Any]:
    """What the console shows of a service."""
    return {
        "tenant": current_tenant().id,
        "order": service.order_id,
        "number": service.order.number,
        "name": service.name,
        "sku": service.sku,
        "site_code": service.site_code,
        "node_name": service.node_name,
        "gpus": service.gpus,
        "state": service.state,
        "condition": service.condition,
        "run": service.run_id,
        "ready_at": service.ready_at,
        "ended_at": service.ended_at,
    }


def write_order(order: Order) -> None:
    """Store the order's row."""
    row = order_row(order)
    OrderProjection.objects.bulk_create(
        [
            OrderProjection(
                order=order.pk,
                created_at=order.placed_at or clock.now(),
                changed_at=clock.now(),
                **row,
            )
        ],
        update_conflicts=True,
        unique_fields=["order"],
        update_fields=[*row, "changed_at"],
    )


def write_service(service: Service) -> None:
    """Store the service's row."""
    row = service_row(service)
    created = service.created_at if not hasattr(service.created_at, "resolve_expression") else None
    ServiceProjection.objects.bulk_create(
        [
            ServiceProjection(
                service=service.pk,
                created_at=created or clock.now(),
                changed_at=clock.now(),
                **row,
            )
        ],
        update_conflicts=True,
        unique_fields=["service"],
        update_fields=[*row, "changed_at"],
    )


def reservation_row(reservation: Reservation) -> dict[str, Any]:
    """What the console shows of a reservation."""
    return {
        "tenant": current_tenant().id,
        "number": reservation.number,
        "name": reservation.name,
        "sku": reservation.sku,
        "site_code": reservation.site_code,
        "quantity": reservation.quantity,
        "gpus": reservation.gpus,
        "starts_at": reservation.starts_at,
        "ends_at": reservation.ends_at,
        "status": reservation.status,
    }


def write_reservation(reservation: Reservation) -> None:
    """Store the reservation's row."""
    row, now = reservation_row(reservation), clock.now()
    ReservationProjection.objects.bulk_create(
        [ReservationProjection(reservation=reservation.pk, created_at=now, changed_at=now, **row)],
        update_conflicts=True,
        unique_fields=["reservation"],
        update_fields=[*row, "changed_at"],
    )


def differences() -> list[str]:
    """Rows of this tenant that are missing or say something else than the tenant's own tables."""
    found = []
    tenant = current_tenant().id
    orders = {row.order: row for row in OrderProjection.objects.filter(tenant=tenant)}
    for order in Order.objects.all():
        row = orders.pop(order.pk, None)
        if row is None or any(getattr(row, k) != v for k, v in order_row(order).items()):
            found.append(f"order {order.number}")
    services = {row.service: row for row in ServiceProjection.objects.filter(tenant=tenant)}
    for service in Service.objects.select_related("order"):
        seen = services.pop(service.pk, None)
        if seen is None or any(getattr(seen, k) != v for k, v in service_row(service).items()):
            found.append(f"service {service.name}")
    booked = {one.reservation: one for one in ReservationProjection.objects.filter(tenant=tenant)}
    for reservation in Reservation.objects.all():
        kept = booked.pop(reservation.pk, None)
        wanted = reservation_row(reservation)
        if kept is None or any(getattr(kept, k) != v for k, v in wanted.items()):
            found.append(f"reservation {reservation.number}")
    found += [f"reservation row {key} of nothing" for key in booked]
    found += [f"order row {key} of nothing" for key in orders]
    found += [f"service row {key} of nothing" for key in services]
    return found


def rebuild() -> None:
    """Write every row of this tenant again."""
    for order in Order.objects.all():
        write_order(order)
    for reservation in Reservation.objects.all():
        write_reservation(reservation)
    for service in Service.objects.select_related("order"):
        write_service(service)
