"""A service that lost its node waits for another one: before all orders, at its old place."""

from datetime import datetime
from uuid import UUID

from django.db import transaction

from apps.core import clock, outbox
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.orders.models import Condition, QueueEntry
from apps.orders.services.accepting import agreed
from apps.orders.services.states import describe_service, lock_with_order, show_condition
from apps.orders.states import ServiceState
from apps.tenancy.selectors import current_tenant

WAITING_IN = (ServiceState.PROVISIONING, ServiceState.SUSPENDED)


@transaction.atomic
def wait_for_node(*, service_id: UUID, left_at: datetime | None = None) -> None:
    """Give the service's node back and let it wait: it keeps its quota, and the place its order
    had when it was accepted. Safe to repeat.
    """
    order, service = lock_with_order(service_id)
    inventory.release(service=service.pk, left_at=left_at)
    offering, site = agreed(order)
    QueueEntry.objects.update_or_create(
        order=order.pk,
        service=service.pk,
        defaults={
            "tenant": current_tenant().id,
            "site": site.pk,
            "offering": offering.pk,
            "resource_class": offering.resource_class,
            "gpus": service.gpus,
            "quantity": 1,
            "reservation": service.reservation_id,
            "entered_at": order.decided_at or service.created_at,
            "left_at": None,
        },
    )
    show_condition(service_id=service.pk, condition=Condition.IN_QUEUE)


@transaction.atomic
def give_node(*, service_id: UUID) -> bool:
    """Give a waiting service its node if there is one; True when its entry left the queue."""
    order, service = lock_with_order(service_id)
    entries = QueueEntry.objects.select_for_update().filter(service=service_id, left_at=None)
    entry = entries.first()
    if entry is None:
        return False
    if service.state in WAITING_IN:
        offering, _site = agreed(order)
        try:
            with transaction.atomic():
                allocation = inventory.replace_allocation(
                    service=service.pk,
                    resource_class=offering.resource_class,
                    traits=offering.traits,
                )
        except OutOfCapacity:
            return False
        describe_service(
            service_id=service.pk, node_id=allocation.node_id, node_name=allocation.node.name
        )
        outbox.publish("service.node_given", subject=service.pk)
    entry.left_at = clock.now()
    entry.save(update_fields=["left_at"])
    return True
