"""The queue and what falls due, as Celery runs them."""

import structlog
from celery import shared_task

from apps.orders import deadlines, services
from apps.orders.models import QueueEntry
from apps.orders.selectors import queue_heads
from apps.tenancy.context import tenant_by_id, tenant_context

log = structlog.get_logger(__name__)


@shared_task(platform=True)
def serve_queues() -> None:
    """Offer capacity to the head of each queue, again and again until every head has to wait."""
    for _round in range(50):
        served = [_serve(entry) for entry in queue_heads()]
        if not any(served):
            return


@shared_task(platform=True)
def keep_capacity() -> None:
    """Reserved servers that broke are replaced; borrowed ones stay where they may."""
    services.keep_terms()
    services.keep_loans()


@shared_task(platform=True)
def serve_deadlines() -> None:
    """Do what has fallen due."""
    deadlines.serve_due()


def _serve(entry: QueueEntry) -> bool:
    """Serve one head; what goes wrong with it holds back its own queue only."""
    try:
        with tenant_context(tenant_by_id(entry.tenant)):
            if entry.service is not None:
                return services.give_node(service_id=entry.service)
            return services.accept_from_queue(order_id=entry.order)
    except Exception:
        log.exception("queue.stuck", order=str(entry.order), tenant=str(entry.tenant))
        return False
