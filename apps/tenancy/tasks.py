"""The task base that carries a tenant, and the two platform tasks that hand out work to tenants."""

from typing import Any, ClassVar
from uuid import UUID

import structlog
from celery import Task, current_task, shared_task
from celery.exceptions import Reject
from django.conf import settings
from kombu.exceptions import OperationalError

from apps.core.realms import NOBODY, PLATFORM, speaker
from apps.tenancy import relay
from apps.tenancy.context import (
    NOBODY_SIDE,
    platform_context,
    switch_to,
    tenant_by_id,
    tenant_context,
)

log = structlog.get_logger(__name__)
HEADER = "neo_tenant"


class TenantTask(Task):
    """Runs in the tenant it was sent from; without one it is refused, or says `platform=True`.

    The tenant travels in a header, so groups, chord callbacks and retries keep it: what a task
    sends as or after it ends takes the header of that task.
    """

    abstract = True
    platform: ClassVar[bool] = False

    def apply_async(self, args: Any = None, kwargs: Any = None, **options: Any) -> Any:
        """Send the task with the tenant of the connection, unless one is named by `tenant=`."""
        headers = dict(options.pop("headers", None) or {})
        named = options.pop("tenant", None)
        if not self.platform:
            headers.setdefault(HEADER, str(named) if named else self._sender())
        return super().apply_async(args, kwargs, headers=headers, **options)

    def _sender(self) -> str:
        who = speaker()
        if who not in (PLATFORM, NOBODY):
            return who
        carried = getattr(self.request, HEADER, None)
        if carried is None and current_task:
            carried = getattr(current_task.request, HEADER, None)
        if carried is None:
            raise RuntimeError(f"{self.name} belongs to a tenant and was sent without one")
        return str(carried)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run on the right side and leave the connection speaking for nobody."""
        structlog.contextvars.clear_contextvars()
        structlog.contextvars.bind_contextvars(task=self.name)
        try:
            if self.platform:
                with platform_context():
                    return super().__call__(*args, **kwargs)
            carried = getattr(self.request, HEADER, None)
            if not carried:
                log.error("task.refused", reason="no tenant")
                raise Reject("a tenant task without a tenant", requeue=False)
            with tenant_context(tenant_by_id(UUID(str(carried)))):
                return super().__call__(*args, **kwargs)
        finally:
            switch_to(NOBODY_SIDE)
            structlog.contextvars.clear_contextvars()


@shared_task(platform=True)
def relay_outbox() -> None:
    """Deliver waiting events."""
    relay.deliver_waiting()


def wake_relay() -> None:
    """Deliver soon; when the broker is away, beat wakes the relay later."""
    if not settings.CELERY_BROKER_URL:
        return
    try:
        relay_outbox.apply_async(retry=False, expires=10)
    except (OSError, OperationalError) as error:
        log.warning("relay.wake_lost", error=str(error))


@shared_task(platform=True)
def dispatch_pending_work() -> None:
    """Start the tasks of tenants that left work behind."""
    relay.dispatch_pending()
