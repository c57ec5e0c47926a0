"""Sealing, as Celery runs it: the platform's trail by schedule, a tenant's when it left work."""

from celery import shared_task

from apps.audit import sealing
from apps.core.outbox import take_work
from apps.core.realms import current_tenant_id


@shared_task(platform=True)
def seal_platform() -> None:
    """Seal the platform's own trail."""
    sealing.seal()


@shared_task
def seal_tenant() -> None:
    """Seal the trail of the tenant this task was sent to."""
    tenant = current_tenant_id()
    if tenant is not None:
        take_work("seal_audit", tenant=tenant)
    sealing.seal()
