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
from apps.orders import causes, deadlines, projections
from apps.orders.errors import NodeReserved, Protected, ServiceOver
from apps.orders.models import Order, Service
from apps.orders.services import policy
from apps.orders.services.quoting import in_seconds
from apps.orders.services.states import OVER, end_service, lock_service, lock_with_order

WARNINGS = (timedelta(days=7), timedelta(days=1), timedelta(hours=1))


def arm_end(service: Service) -> None:
    """Let the agreed end of a locked service, and the next warning of it, fall due."""
    if service.ends_at is None:
        deadlines.clear_deadline(kind="service.end", subject=service.pk)
        deadlines.clear_deadline(kind="service.warning", subject=service.pk)
        return
    deadlines.set_deadline(kind="service.end", subject=service.pk, due_at=service.ends_at)
    warn_at = min(
        (service.ends_at - lead for lead in WARNINGS if service.ends_at - lead > clock.now()),
        default=None,
    )
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
    service.ends_at = ends_at
    service.save(update_fields=["ends_at"])
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
    if service.ends_at is not None and service.ends_at <= clock.now():
        end = end or service.ends_at
    if service.state in OVER or end is not None:
        raise ServiceOver(name=service.name, ended_at=end or "—")


def _check_longer(order: Order, service: Service, ends_at: datetime | None, *, actor: User) -> None:
    begun = service.ready_at or order.starts_at or clock.now()
    policy.check_duration(begins_at=begun, ends_at=ends_at)
    policy.check_longer(order, actor=actor)
    latest = inventory.held_until(service=service.pk)
    if latest is not None and (ends_at is None or ends_at > latest):
        raise NodeReserved(name=service.name, latest=latest, field="ends_at")


def _is_later(new: datetime | None, old: datetime | None) -> bool:
    """None is never: later than any instant."""
    return old is not None and (new is None or new > old)


@transaction.atomic
def end_as_agreed(*, service_id: UUID) -> None:
    """Terminate a service whose agreed end has come; returns quietly for any other."""
    order, service = lock_with_order(service_id)
    if service.state in OVER or service.ends_at is None or service.ends_at > clock.now():
        return
    before = service.state
    end_service(order, service, cause=causes.END_REACHED)
    audit.record(
        None,
        "service.ended_as_agreed",
        service,
        before={"state": before},
        after={"state": service.state, "ends_at": service.ends_at.isoformat()},
    )


@transaction.atomic
def warn_of_end(*, service_id: UUID) -> None:
    """Warn that the agreed end comes near, and let the next warning fall due."""
    service = lock_service(service_id)
    now = clock.now()
    if service.state in OVER or service.ends_at is None or service.ends_at <= now:
        return
    passed = [lead for lead in WARNINGS if service.ends_at - lead <= now]
    if passed:
        outbox.publish(
            "service.ends_soon",
            subject=service.pk,
            ends_at=service.ends_at.isoformat(),
            hours=int(min(passed) / timedelta(hours=1)),
        )
    arm_end(service)
