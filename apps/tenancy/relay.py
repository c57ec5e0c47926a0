"""The outbox relay and the dispatcher: deliver events, hand out work, forget nothing."""

from datetime import timedelta
from importlib import import_module

import structlog
from celery import current_app
from django.apps import apps
from django.db import connection, transaction

from apps.core import clock
from apps.core.models import OutboxEvent, WorkPending
from apps.core.outbox import HANDLERS, TELLERS, WORK, Handler, on
from apps.core.uuids import uuid7
from apps.tenancy.context import platform_context, tenant_by_id, tenant_context

log = structlog.get_logger(__name__)
TELL_AGAIN = "outbox.tell_again"
_LOCK = 0x6E656F01
_BATCH = 200
_loaded = False


def load_handlers() -> None:
    """Import `handlers.py` of every app once, so that `@on` has been read."""
    global _loaded
    if _loaded:
        return
    for config in apps.get_app_configs():
        if config.name.startswith("apps."):
            try:
                import_module(f"{config.name}.handlers")
            except ModuleNotFoundError as error:
                if error.name != f"{config.name}.handlers":
                    raise
    _loaded = True


def deliver_waiting(*, limit: int = _BATCH) -> int:
    """Deliver what is due, in id order, one relay at a time; a failing event holds back only its
    own subject.

    Rows of transactions still open are left for later, so order per subject is the order of
    commits.
    """
    load_handlers()
    delivered = 0
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_LOCK])
        if not cursor.fetchone()[0]:
            return 0
    try:
        held: set[object] = set()
        for event in _waiting(limit):
            if event.subject in held:
                continue
            if event.next_try_at > clock.now() or not _deliver(event):
                held.add(event.subject)
            else:
                delivered += 1
    finally:
        with platform_context(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_LOCK])
    return delivered


def _waiting(limit: int) -> list[OutboxEvent]:
    return list(
        OutboxEvent.objects.filter(delivered_at=None)
        .extra(where=["xid < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"])
        .order_by("id")[:limit]
    )


def _deliver(event: OutboxEvent) -> bool:
    try:
        for handler in HANDLERS.get(event.name, []):
            _run(handler, event)
    except Exception as error:
        wait = min(300, 2 ** min(event.attempts, 8))
        log.exception("outbox.failed", name=event.name, subject=str(event.subject))
        OutboxEvent.objects.filter(pk=event.pk).update(
            attempts=event.attempts + 1,
            next_try_at=clock.now() + timedelta(seconds=wait),
            last_error=f"{type(error).__name__}: {error}"[:500],
        )
        return False
    _tell(event)
    OutboxEvent.objects.filter(pk=event.pk).update(
        delivered_at=clock.now(), attempts=event.attempts + 1, last_error=""
    )
    return True


def _run(handler: Handler, event: OutboxEvent) -> None:
    """Run a handler on the side its event came from, in a transaction of its own."""
    if event.tenant is None:
        with platform_context(), transaction.atomic():
            handler(event)
    else:
        with tenant_context(tenant_by_id(event.tenant)), transaction.atomic():
            handler(event)


def _tell(event: OutboxEvent) -> None:
    """Tell people; a failure becomes an event of its own, so that it holds back nothing else."""
    try:
        for handler in TELLERS.get(event.name, []):
            _run(handler, event)
    except Exception:
        log.exception("outbox.telling_failed", name=event.name, subject=str(event.subject))
        OutboxEvent.objects.create(
            name=TELL_AGAIN, subject=uuid7(), tenant=event.tenant, payload={"event": event.pk}
        )


@on(TELL_AGAIN)
def tell_again(event: OutboxEvent) -> None:
    """Tell people of an event for which it failed before; each is told once."""
    original = OutboxEvent.objects.get(pk=event.payload["event"])
    for handler in TELLERS.get(original.name, []):
        handler(original)


def dispatch_pending(*, limit: int = _BATCH) -> int:
    """Send the task of every due (kind, tenant); the task clears its own mark when
    nothing is left.
    """
    load_handlers()
    now = clock.now()
    due = list(WorkPending.objects.filter(due_at__lte=now).order_by("due_at")[:limit])
    for work in due:
        task = WORK.get(work.kind)
        if task is None:
            log.error("work.unknown_kind", kind=work.kind)
            continue
        WorkPending.objects.filter(pk=work.pk).update(due_at=now + timedelta(seconds=30))
        current_app.tasks[task].apply_async(tenant=work.tenant)
    return len(due)
