"""Suspension by the operator: free while it lasts, capped, and never a surprise.

The server and its data stay; access is kept. After `SUSPENDED_AT_MOST` a suspended service ends.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.orders import causes, deadlines
from apps.orders.errors import HostLost
from apps.orders.models import Fact, FactSource, Service
from apps.orders.services.running import SUSPENDED_AT_MOST, suspension_of
from apps.orders.services.states import (
    lock_service,
    move_service,
)
from apps.orders.states import ServiceState

SUSPENSION_WARNINGS = (timedelta(days=3), timedelta(days=1), timedelta(hours=1))


@transaction.atomic
def suspend_service(*, service_id: UUID, actor: User, reason: str) -> Service:
    """Suspend a service in use: it is not charged from this instant on, and ends after some days
    unless it is resumed. Suspending again changes nothing. Raises WrongStatus, NotFound.
    """
    service = lock_service(service_id)
    if service.state == ServiceState.SUSPENDED:
        return service
    before = service.state
    at = move_service(service=service, verb="suspend", cause=causes.SUSPENDED)
    service.suspended_until = at + SUSPENDED_AT_MOST
    service.condition_detail = reason[:300]  # until it is resumed
    service.save(update_fields=["suspended_until", "condition_detail"])
    deadlines.set_deadline(
        kind="suspension.end", subject=service.pk, due_at=service.suspended_until
    )
    _arm_warning(service)
    audit.record(
        actor,
        "service.suspended",
        service,
        reason=reason,
        before={"state": before},
        after={"state": service.state, "until": service.suspended_until.isoformat()},
    )
    outbox.publish(
        "service.suspended_by_operator",
        subject=service.pk,
        reason=reason,
        until=service.suspended_until.isoformat(),
    )
    return service


@transaction.atomic
def lift_suspension(*, service_id: UUID, actor: User, reason: str) -> Service:
    """Let a suspended service go on as it was: active, or stopped if its customer had stopped it.

    Raises HostLost when it was not an operator who suspended it, WrongStatus, NotFound.
    """
    service = lock_service(service_id)
    suspended = suspension_of(service)
    if suspended is not None and suspended.cause != causes.SUSPENDED:
        raise HostLost(name=service.name)
    was_stopped = suspended is not None and _state_before(suspended) == ServiceState.STOPPED
    at = move_service(service=service, verb="resume", cause=causes.RESUMED)
    if was_stopped:
        move_service(service=service, verb="stop", cause=causes.RESUMED)
    service.suspended_until = None
    service.save(update_fields=["suspended_until"])
    for kind in ("suspension.end", "suspension.warning"):
        deadlines.clear_deadline(kind=kind, subject=service.pk)
    audit.record(actor, "service.resumed", service, reason=reason, after={"state": service.state})
    outbox.publish("service.resumed_by_operator", subject=service.pk, at=at.isoformat())
    return service


@transaction.atomic
def warn_of_suspension(*, service_id: UUID) -> None:
    """Warn that a suspension is about to end the service, and let the next warning fall due."""
    service = lock_service(service_id)
    until, now = service.suspended_until, clock.now()
    if service.state != ServiceState.SUSPENDED or until is None or until <= now:
        return
    passed = [lead for lead in SUSPENSION_WARNINGS if until - lead <= now]
    if passed:
        outbox.publish(
            "service.suspension_ends_soon",
            subject=service.pk,
            until=until.isoformat(),
            hours=int(min(passed) / timedelta(hours=1)),
        )
    _arm_warning(service)


def _arm_warning(service: Service) -> None:
    until, now = service.suspended_until, clock.now()
    ahead = [until - lead for lead in SUSPENSION_WARNINGS if until and until - lead > now]
    if ahead:
        deadlines.set_deadline(kind="suspension.warning", subject=service.pk, due_at=min(ahead))


def _state_before(fact: Fact) -> str:
    facts = Fact.objects.filter(service=fact.service_id, source=FactSource.LIVE)
    before = facts.exclude(pk=fact.pk).order_by("-start_at", "-recorded_at").first()
    return before.state if before else ""
