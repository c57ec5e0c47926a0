"""Capacity for orders: taken at once, waited for in the pool's queue, or refused with what else is
possible.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction

from apps.audit import services as audit
from apps.catalog.models import Offering
from apps.core import clock, outbox
from apps.core.uuids import uuid7
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Site
from apps.orders import deadlines, projections
from apps.orders.alternatives import alternatives
from apps.orders.errors import OthersWait, ReservationBusy
from apps.orders.models import (
    Condition,
    IfUnavailable,
    Order,
    QueueEntry,
    Reservation,
    Service,
)
from apps.orders.queues import queue_length
from apps.orders.services.ending import end_order, lock_order
from apps.orders.services.lifetime import arm_end
from apps.orders.services.states import begin_service
from apps.orders.states import ORDER, OrderStatus, ReservationStatus
from apps.tenancy.context import platform_context
from apps.tenancy.selectors import current_tenant

PATIENCE = timedelta(days=7)  # an order waits so long unless its customer chose


def accept_or_queue(
    order: Order, offering: Offering, site: Site, *, patience: timedelta | None = None
) -> None:
    """Give a locked order its servers, or a place in the queue if it chose to wait.

    Nobody overtakes who waits already. Raises OutOfCapacity with what else is possible, and
    ReservationBusy.
    """
    try:
        _accept_or_queue(order, offering, site, patience)
    except OutOfCapacity as error:
        if order.reservation_id is None:
            error.alternatives = [
                one.as_facts()
                for one in alternatives(
                    sku=order.sku,
                    site_code=order.site_code,
                    quantity=order.quantity,
                    ends_at=order.ends_at,
                )
            ]
        raise


def _accept_or_queue(
    order: Order, offering: Offering, site: Site, patience: timedelta | None
) -> None:
    waits = order.if_unavailable == IfUnavailable.QUEUE
    if order.reservation_id is None:
        waiting = queue_length(site_id=site.pk, resource_class=offering.resource_class)
        if waiting and not waits:
            raise OthersWait(
                field="quantity",
                waiting=waiting,
                free=0,
                wanted=order.quantity,
                resource_class=offering.resource_class,
                site=site.shown_name,
            )
        if waiting:
            _enter_queue(order, site, offering, patience)
            return
    try:
        with transaction.atomic():
            _accept(order, offering, site)
    except OutOfCapacity:
        if not waits:
            raise
        order.refresh_from_db()
        _enter_queue(order, site, offering, patience)


def _accept(order: Order, offering: Offering, site: Site) -> None:
    """Take the nodes, make the services, say so; raises OutOfCapacity."""
    service_ids = [uuid7() for _ in range(order.quantity)]
    if order.reservation_id is not None:
        _refuse_idle(order.reservation_id)
    allocations = inventory.allocate(
        site=site,
        resource_class=offering.resource_class,
        traits=offering.traits,
        gpus_each=order.gpus_each,
        tenant=current_tenant().id,
        order=order.pk,
        services=service_ids,
        plan=order.plan,
        until=order.ends_at,
        accepts_recall=order.accepts_recall,
        reservation=order.reservation_id,
    )
    ORDER.move(order, "accept")
    order.decided_at = clock.now()
    order.status_reason = ""
    order.save(update_fields=["status", "decided_at", "status_reason"])
    deadlines.clear_deadlines(subject=order.pk)
    for number, allocation in enumerate(allocations, start=1):
        service = begin_service(
            Service(
                id=allocation.service,
                order=order,
                project_id=order.project_id,
                ordinal=number,
                name=order.name if order.quantity == 1 else f"{order.name}-{number}",
                sku=order.sku,
                gpus=order.gpus_each,
                site_id=site.pk,
                site_code=site.code,
                node_id=allocation.node_id,
                node_name=allocation.node.name,
                condition=Condition.WORKING,
                reservation_id=order.reservation_id,
                ends_at=order.ends_at,
                recalled_at=inventory.lent_until(allocation, site),
            )
        )
        arm_end(service)
        _arm_leaving(order, service)
    projections.write_order(order)
    audit.record(None, "order.accepted", order)
    outbox.publish("order.accepted", subject=order.pk, services=[str(one) for one in service_ids])


def _refuse_idle(reservation_id: UUID) -> None:
    """Servers come from a reservation within its term, unless it is suspended; the row stays
    locked, so that it is neither suspended nor ended meanwhile.
    """
    reservation = Reservation.objects.select_for_update(no_key=True).get(pk=reservation_id)
    now = clock.now()
    runs = reservation.starts_at <= now < reservation.ends_at
    serves = reservation.status in (ReservationStatus.BOOKED, ReservationStatus.ACTIVE)
    if not serves or not runs:
        raise ReservationBusy(
            number=reservation.number, status=reservation.get_status_display(), field="reservation"
        )


def _arm_leaving(order: Order, service: Service) -> None:
    """A service that goes on after its reservation leaves it at that instant."""
    if order.reservation is None:
        return
    end = order.reservation.ends_at
    if service.ends_at is None or service.ends_at > end:
        deadlines.set_deadline(kind="service.leave", subject=service.pk, due_at=end)


def _enter_queue(
    order: Order, site: Site, offering: Offering, patience: timedelta | None = None
) -> None:
    ORDER.move(order, "queue")
    order.save(update_fields=["status"])
    expires_at = clock.now() + (patience or PATIENCE)
    QueueEntry.objects.create(
        tenant=current_tenant().id,
        order=order.pk,
        site=site.pk,
        offering=offering.pk,
        resource_class=offering.resource_class,
        plan=order.plan,
        reservation=order.reservation_id,
        gpus=order.gpus,
        quantity=order.quantity,
        expires_at=expires_at,
    )
    deadlines.set_deadline(kind="queue.expire", subject=order.pk, due_at=expires_at)
    projections.write_order(order)
    outbox.publish("order.queued", subject=order.pk)


@transaction.atomic
def accept_from_queue(*, order_id: UUID) -> bool:
    """Give a waiting order its capacity if there is some; True when its entry left the queue."""
    order = Order.objects.select_for_update().get(pk=order_id)
    entry = (
        QueueEntry.objects.select_for_update()
        .filter(order=order_id, service=None, left_at=None)
        .first()
    )
    if entry is None:
        return False
    now = clock.now()
    if order.status != OrderStatus.QUEUED:
        entry.left_at = now
        entry.save(update_fields=["left_at"])
        return True
    if _has_passed(order.ends_at) or _has_passed(entry.expires_at):
        return False  # its end is about to be served
    offering, site = agreed(order)
    try:
        with transaction.atomic():
            entry.left_at, entry.is_served = now, True
            entry.save(update_fields=["left_at", "is_served"])
            _accept(order, offering, site)
    except (OutOfCapacity, ReservationBusy):
        return False
    return True


@transaction.atomic
def expire_queued(*, order_id: UUID, reason: str) -> None:
    """A waiting order has waited as long as was chosen; returns quietly for any other."""
    order = lock_order(order_id)
    waits = QueueEntry.objects.filter(order=order_id, service=None, left_at=None).first()
    if order.status == OrderStatus.QUEUED and waits and _has_passed(waits.expires_at):
        end_order(order, "expire", reason=reason)


def _has_passed(instant: object) -> bool:
    return instant is not None and instant <= clock.now()  # type: ignore[operator]


def agreed(order: Order) -> tuple[Offering, Site]:
    """The order's offering and site; hidden from the tenant by now or not, what was agreed
    stands.
    """
    with platform_context():
        offering = Offering.objects.get(pk=order.offering_id)
    return offering, Site.objects.get(pk=order.site_id)
