"""The queue, as Celery runs it."""

from celery import shared_task

from apps.orders import services
from apps.orders.selectors import queue_heads
from apps.tenancy.context import tenant_by_id, tenant_context


@shared_task(platform=True)
def serve_queues() -> None:
    """Offer capacity to the head of each queue, again and again until one has to wait."""
    for _round in range(50):
        served = False
        for entry in queue_heads():
            with tenant_context(tenant_by_id(entry.tenant)):
                served = services.accept_from_queue(order_id=entry.order) or served
        if not served:
            return
