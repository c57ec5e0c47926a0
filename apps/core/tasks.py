"""Forgetting kept answers, as Celery runs it: the platform's by schedule, a tenant's when due."""

from celery import shared_task

from apps.core import idempotency, outbox
from apps.core.realms import current_tenant_id


@shared_task(platform=True)
def forget_answers_of_platform() -> None:
    """Remove the oldest answers given to staff."""
    idempotency.forget_old()


@shared_task
def forget_answers_of_tenant() -> None:
    """Remove the oldest answers given to a tenant's people, and come again for the next ones."""
    tenant = current_tenant_id()
    if tenant is not None:
        outbox.take_work("forget_answers", tenant=tenant)
        if (due_at := idempotency.forget_old()) is not None:
            outbox.hint_work("forget_answers", tenant=tenant, due_at=due_at)
