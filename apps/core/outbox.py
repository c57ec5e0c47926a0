"""Events go up through the outbox: published in the transaction of the change, delivered after it.

Delivery is at least once and in order per subject, so handlers must be safe to repeat.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.core.models import OutboxEvent, WorkPending
from apps.core.realms import current_tenant_id

Handler = Callable[[OutboxEvent], None]
HANDLERS: dict[str, list[Handler]] = {}
TELLERS: dict[str, list[Handler]] = {}
# Called after the commit of an event; a lost call is harmless.
WAKERS: list[Callable[[], None]] = []
# Kind of work left for later → the task that does it in the tenant.
WORK: dict[str, str] = {
    "seal_audit": "apps.audit.tasks.seal_tenant",
    "forget_answers": "apps.core.tasks.forget_answers_of_tenant",
}


def publish(name: str, *, subject: UUID, **payload: Any) -> OutboxEvent:
    """Write an event beside its change. Must run inside a transaction; names are past:
    `order.placed`.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"{name}: an event is published inside the transaction of its change")
    event = OutboxEvent.objects.create(
        name=name, subject=subject, payload=payload, tenant=current_tenant_id()
    )
    for wake in WAKERS:
        transaction.on_commit(wake, robust=True)
    return event


def on(name: str, *, tells: bool = False) -> Callable[[Handler], Handler]:
    """Register a handler: `@on("order.placed")`. It runs in the tenant of the event.

    One that only `tells` people never holds back work: it runs after the others, and when it
    fails it is tried again by itself while the events of its subject go on.
    """

    def register(handler: Handler) -> Handler:
        (TELLERS if tells else HANDLERS).setdefault(name, []).append(handler)
        return handler

    return register


def mark_work(kind: str, *, tenant: UUID) -> None:
    """Say that a tenant has work of a kind; the dispatcher runs the kind's task in that tenant.

    The task calls `take_work` first, so a mark made while it runs is not lost.
    """
    if kind not in WORK:
        raise LookupError(f"no task is registered for work of kind {kind}")
    WorkPending.objects.bulk_create(
        [WorkPending(kind=kind, tenant=tenant)],
        update_conflicts=True,
        unique_fields=["kind", "tenant"],
        update_fields=["due_at"],
    )


def hint_work(kind: str, *, tenant: UUID, due_at: datetime | None = None) -> None:
    """As `mark_work`, without waiting for anybody: for work that the next mark may do as well.

    `due_at`: not before then; a mark that is there keeps its time.
    """
    mark = WorkPending(kind=kind, tenant=tenant)
    if due_at is not None:
        mark.due_at = due_at
    WorkPending.objects.bulk_create([mark], ignore_conflicts=True)


def take_work(kind: str, *, tenant: UUID) -> None:
    """Take a mark off before doing its work."""
    WorkPending.objects.filter(kind=kind, tenant=tenant).delete()
