"""From when to when: the agreed end of a service, its warnings, and changing it.

An agreed end counts to the second, however late we come: `move_service` writes the fact there.
Protection guards against termination by hand, not against an end that was agreed; but nobody
brings the end of a protected service nearer.
"""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.inventory import services as inventory
from apps.inventory.errors import HeldLater
from apps.orders import causes, deadlines, projections
from apps.orders.errors import NodeReserved, Protected, ServiceOver
from apps.orders.models import Order, Service
from apps.orders.services import policy
from apps.orders.services.quoting import in_seconds
from apps.orders.services.states import OVER, end_service, lock_service, lock_with_order

WARNINGS = (timedelta(days=7), timedelta(days=1), timedelta(hours=1))


def next_warning(end: datetime) -> datetime | None:
    """When people are next warned of an end; None after the last warning."""
    now = clock.now()
    return min((end - lead for lead in WARNINGS if end - lead > now), default=None)


def arm_end(service: Service) -> None:
    """Let the agreed end of a locked service, and the next warning of it, fall due."""
    end = service.leaves_at
    if end is None:
        deadlines.clear_deadline(kind="service.end", subject=service.pk)
        deadlines.clear_deadline(kind="service.warning", subject=service.pk)
        return
    deadlines.set_deadline(kind="service.end", subject=service.pk, due_at=end)
    warn_at = next_warning(end)
    if warn_at is None:
        deadlines.clear_deadline(kind="service.warning", subject=service.pk)
    else:
        deadlines.set_deadline(kind="service.warning", subject=service.pk, due_at=warn_at)


@transaction.atomic
def set_end(
    *, service_id: UUID, ends_at: datetime | None, actor: User, reason: str = ""
) -> Service:
    """Lengthen or shorten a service, give it an end or take its end away.

    The same end again changes nothing. Raises WrongEnd, Protected (an end that comes nearer),
    TooLong, EndNeeded, ApproverNeeded, NodeReserved naming the latest possible instant,
    ServiceOver, NotFound.
    """
    order, service = lock_with_order(service_id)
    ends_at = in_seconds(ends_at)
    _refuse_ended(service)
    if ends_at == service.ends_at:
        return service
    policy.check_term(None, ends_at)
    if _is_later(ends_at, service.ends_at):
        _check_longer(order, service, ends_at, actor=actor)
    elif service.is_protected:
        raise Protected(name=service.name)
    before = service.ends_at
    _hold_until(service, ends_at)
    service.ends_at = ends_at
    service.save(update_fields=["ends_at", "recalled_at"])
    arm_end(service)
    projections.write_service(service)
    audit.record(
        actor,
        "service.end_changed",
        service,
        reason=reason,
        before={"ends_at": before.isoformat() if before else None},
        after={"ends_at": ends_at.isoformat() if ends_at else None},
    )
    return service


def _refuse_ended(service: Service) -> None:
    end = service.ended_at
    if service.leaves_at is not None and service.leaves_at <= clock.now():
        end = end or service.leaves_at
    if service.state in OVER or end is not None:
        raise ServiceOver(name=service.name, ended_at=end or "—")


def _check_longer(order: Order, service: Service, ends_at: datetime | None, *, actor: User) -> None:
    begun = service.ready_at or order.starts_at or clock.now()
    policy.check_duration(begins_at=begun, ends_at=ends_at)
    policy.check_longer(order, actor=actor)


def _hold_until(service: Service, ends_at: datetime | None) -> None:
    """Keep the node as long; one that is lent is kept until it is called back."""
    try:
        hold = inventory.move_hold_end(service=service.pk, until=ends_at)
    except HeldLater as error:
        raise NodeReserved(
            name=service.name, latest=error.facts["latest"], field="ends_at"
        ) from None
    if hold is not None:
        service.recalled_at = inventory.lent_until(hold, hold.node.site)


@transaction.atomic
def review_recall(*, service_id: UUID) -> bool:
    """The reservation behind a borrowed node may have gone: keep the node longer if so; True when
    it is.
    """
    service = lock_service(service_id)
    if service.state in OVER or service.recalled_at is None:
        return False
    before = service.recalled_at
    _hold_until(service, service.ends_at)
    if service.recalled_at == before:
        return False
    service.save(update_fields=["recalled_at"])
    arm_end(service)
    audit.record(
        None,
        "service.recall_moved",
        service,
        before={"recalled_at": before.isoformat()},
        after={"recalled_at": service.recalled_at.isoformat() if service.recalled_at else None},
    )
    outbox.publish("service.recall_moved", subject=service.pk)
    return True


def _is_later(new: datetime | None, old: datetime | None) -> bool:
    """None is never: later than any instant."""
    return old is not None and (new is None or new > old)


@transaction.atomic
def end_as_agreed(*, service_id: UUID) -> None:
    """Terminate a service whose agreed end has come; returns quietly for any other."""
    order, service = lock_with_order(service_id)
    end = service.leaves_at
    if service.state in OVER or end is None or end > clock.now():
        return
    before = service.state
    cause = causes.END_REACHED if end == service.ends_at else causes.RECALLED
    end_service(order, service, cause=cause)
    audit.record(
        None,
        "service.ended_as_agreed",
        service,
        before={"state": before},
        after={"state": service.state, "ends_at": end.isoformat()},
    )


@transaction.atomic
def warn_of_end(*, service_id: UUID) -> None:
    """Warn that the agreed end comes near, and let the next warning fall due."""
    service = lock_service(service_id)
    now, end = clock.now(), service.leaves_at
    if service.state in OVER or end is None or end <= now:
        return
    passed = [lead for lead in WARNINGS if end - lead <= now]
    if passed:
        outbox.publish(
            "service.ends_soon",
            subject=service.pk,
            ends_at=end.isoformat(),
            hours=int(min(passed) / timedelta(hours=1)),
        )
    arm_end(service)
