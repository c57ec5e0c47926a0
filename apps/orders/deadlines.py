"""What falls due: one row for each kind and thing, served by one task at its instant or later.

    set_deadline(kind="service.end", subject=service.pk, due_at=ends_at)   beside the change

    @due("service.end")
    def end(deadline: Deadline) -> None:   in the tenant, in a transaction

The instant that counts is `deadline.due_at`, however late the task comes. A handler locks its
thing first and returns quietly when the thing itself says otherwise by then: it may be called
again after it has done its work, never beside itself with both results kept. It may move or clear
its own deadline; every other change of the row while it works takes its work back.
"""

from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

import structlog
from django.db import connection, transaction

from apps.core import clock
from apps.orders.models import Deadline
from apps.tenancy.context import tenant_by_id, tenant_context
from apps.tenancy.relay import load_handlers
from apps.tenancy.selectors import current_tenant

log = structlog.get_logger(__name__)
Handler = Callable[[Deadline], None]
_HANDLERS: dict[str, Handler] = {}
_LEASE = timedelta(seconds=60)  # for how long a claimed row is left alone when its worker dies
_FIRST_WAIT = timedelta(seconds=5)
_LONGEST_WAIT = timedelta(minutes=5)
_MOST_AT_ONCE = 200
_PATIENCE = timedelta(seconds=30)  # of one call, well below a task's time limit


@dataclass
class _Served:
    kind: str
    subject: UUID
    is_touched: bool = False  # the handler itself moved or cleared the row


_served: ContextVar[_Served | None] = ContextVar("served", default=None)


class _Moved(Exception):
    """Somebody moved or cleared the deadline while it was served."""


def due(kind: str) -> Callable[[Handler], Handler]:
    """Register the handler of a kind; it stands in a `handlers.py`."""

    def register(handler: Handler) -> Handler:
        if kind in _HANDLERS:
            raise ValueError(f"deadlines of kind {kind} have a handler already")
        _HANDLERS[kind] = handler
        return handler

    return register


def set_deadline(*, kind: str, subject: UUID, due_at: datetime) -> None:
    """Let something fall due for a thing of this tenant; an open row of that kind is moved.

    The same instant again changes nothing.
    """
    _touch(kind, subject)
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO public.orders_deadline AS d"
            " (tenant, kind, subject, due_at, next_try_at, attempts, last_error)"
            " VALUES (%(tenant)s, %(kind)s, %(subject)s, %(at)s, %(at)s, 0, '')"
            " ON CONFLICT (kind, subject) WHERE done_at IS NULL DO UPDATE"
            " SET due_at = EXCLUDED.due_at, next_try_at = EXCLUDED.next_try_at,"
            " attempts = 0, last_error = ''"
            " WHERE d.due_at <> EXCLUDED.due_at",
            {"tenant": current_tenant().id, "kind": kind, "subject": subject, "at": due_at},
        )


def clear_deadline(*, kind: str, subject: UUID) -> None:
    """Nothing of this kind falls due for the thing any more."""
    _touch(kind, subject)
    Deadline.objects.filter(kind=kind, subject=subject, done_at=None).delete()


def clear_deadlines(*, subject: UUID) -> None:
    """Nothing falls due for the thing any more: it has ended."""
    served = _served.get()
    if served is not None and served.subject == subject:
        served.is_touched = True
    Deadline.objects.filter(subject=subject, done_at=None).delete()


def deadline_of(*, kind: str, subject: UUID) -> datetime | None:
    """When something of this kind falls due for the thing, if it does."""
    row = Deadline.objects.filter(kind=kind, subject=subject, done_at=None).first()
    return row.due_at if row else None


def serve_due(*, limit: int = _MOST_AT_ONCE) -> int:
    """Serve what is due, oldest first; how many were done. For the platform's side.

    One that fails backs off by itself and holds back nothing else.
    """
    load_handlers()
    until = clock.now() + _PATIENCE
    done = 0
    for _number in range(limit):
        deadline = _claim() if clock.now() < until else None
        if deadline is None:
            break
        done += _serve(deadline)
    return done


@transaction.atomic
def _claim() -> Deadline | None:
    """Take the row that waits longest and set its next try now, in case nobody comes back."""
    deadline = (
        Deadline.objects.select_for_update(skip_locked=True)
        .filter(done_at=None, next_try_at__lte=clock.now())
        .order_by("next_try_at", "id")
        .first()
    )
    if deadline is not None:
        deadline.attempts += 1
        deadline.next_try_at = clock.now() + _LEASE
        deadline.save(update_fields=["attempts", "next_try_at"])
    return deadline


def _serve(deadline: Deadline) -> bool:
    try:
        with tenant_context(tenant_by_id(deadline.tenant)):
            _run(deadline)
    except _Moved:
        return False
    except Exception as error:
        log.exception("deadline.failed", kind=deadline.kind, subject=str(deadline.subject))
        _back_off(deadline, error)
        return False
    return True


@transaction.atomic
def _run(deadline: Deadline) -> None:
    """The work and its mark, in one transaction of the tenant.

    The thing is locked before the row, as everywhere: the row is marked only after the work, and
    only if nobody else has moved it.
    """
    served = _Served(deadline.kind, deadline.subject)
    token = _served.set(served)
    try:
        _HANDLERS[deadline.kind](deadline)
    finally:
        _served.reset(token)
    marked = Deadline.objects.filter(
        pk=deadline.pk, done_at=None, due_at=deadline.due_at
    ).update(done_at=clock.now(), last_error="")  # fmt: skip
    if not marked and not served.is_touched:
        raise _Moved


def _back_off(deadline: Deadline, error: Exception) -> None:
    wait = min(_FIRST_WAIT * 2 ** min(deadline.attempts - 1, 8), _LONGEST_WAIT)
    Deadline.objects.filter(pk=deadline.pk, done_at=None, due_at=deadline.due_at).update(
        next_try_at=clock.now() + wait, last_error=f"{type(error).__name__}: {error}"[:400]
    )


def _touch(kind: str, subject: UUID) -> None:
    served = _served.get()
    if served is not None and (served.kind, served.subject) == (kind, subject):
        served.is_touched = True
