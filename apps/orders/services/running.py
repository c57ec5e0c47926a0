"""A service that runs: stopped and started by its customer, suspended while its host is lost, named
and tagged; what is wrong with it shows on top of its state.
"""

import re
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.orders import causes, deadlines, projections
from apps.orders.errors import BadTag, TooManyTags
from apps.orders.models import Condition, Fact, FactSource, Service
from apps.orders.services.choices import name_of
from apps.orders.services.states import (
    end_service,
    lock_service,
    lock_with_order,
    move_service,
)
from apps.orders.states import ServiceState

SUSPENDED_AT_MOST = timedelta(days=7)
MOST_TAGS = 20
TAG_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?")
TAG_VALUE = re.compile(r"[^\x00-\x1f\x7f]{0,80}")


@transaction.atomic
def stop_service(*, service_id: UUID, run: UUID) -> None:
    """The server is off, as its customer asked: what runs is charged no more, what is allocated is.

    Quiet when it is not active.
    """
    service = lock_service(service_id)
    if service.state == ServiceState.ACTIVE:
        move_service(service=service, verb="stop", cause=causes.POWERED_OFF, run=run)


@transaction.atomic
def start_service(*, service_id: UUID, run: UUID) -> None:
    """The server is on again, proven; quiet when it is not stopped."""
    service = lock_service(service_id)
    if service.state == ServiceState.STOPPED:
        move_service(service=service, verb="start", cause=causes.POWERED_ON, run=run)


@transaction.atomic
def suspend_for_fault(*, service_id: UUID, since: datetime | None = None) -> Service:
    """The host is lost: free from the recorded loss on, at most for some days, then it ends.

    Raises Conflict when the service is neither active nor stopped.
    """
    service = lock_service(service_id)
    at = move_service(service=service, verb="suspend", cause=causes.HOST_LOST, since=since)
    service.suspended_until = clock.now_seconds() + SUSPENDED_AT_MOST
    service.save(update_fields=["suspended_until"])
    deadlines.set_deadline(
        kind="suspension.end", subject=service.pk, due_at=service.suspended_until
    )
    outbox.publish("service.suspended", subject=service.pk, since=at.isoformat())
    return service


def is_suspended_for_fault(service: Service) -> bool:
    """Whether a suspended service waits for another host, and not for its operator's word."""
    facts = Fact.objects.filter(service=service, source=FactSource.LIVE)
    last = facts.order_by("-start_at", "-recorded_at").first()
    return last is not None and last.cause == causes.HOST_LOST


@transaction.atomic
def resume_service(*, service_id: UUID, run: UUID, access: dict[str, Any]) -> None:
    """Proven usable again, on whatever host: charged from this instant on; quiet when it is not
    suspended. What an operator suspended stays suspended until an operator lifts it.
    """
    service = lock_service(service_id)
    fact = suspension_of(service)
    if fact is None:
        return
    if fact.cause == causes.SUSPENDED:
        _keep_access(service, access)
        return
    at = move_service(service=service, verb="resume", cause=causes.PROVEN, run=run)
    service.suspended_until = service.degraded_at = None
    service.save(update_fields=["suspended_until", "degraded_at"])
    for kind in ("suspension.end", "suspension.warning"):
        deadlines.clear_deadline(kind=kind, subject=service.pk)
    _keep_access(service, access)
    outbox.publish("service.resumed", subject=service.pk, at=at.isoformat())


def suspension_of(service: Service) -> Fact | None:
    """The live fact with which a locked service was suspended; None when it is not."""
    if service.state != ServiceState.SUSPENDED:
        return None
    live = Fact.objects.filter(service=service, source=FactSource.LIVE)
    return live.order_by("-start_at", "-recorded_at").first()


@transaction.atomic
def renew_access(*, service_id: UUID, access: dict[str, Any]) -> None:
    """The same server was made anew: its login and host keys are others."""
    _keep_access(lock_service(service_id), access)


def _keep_access(service: Service, access: dict[str, Any]) -> None:
    service.address = str(access.get("address", ""))
    service.login = str(access.get("login", ""))
    service.host_keys = list(access.get("host_keys", []))
    service.save(update_fields=["address", "login", "host_keys"])


@transaction.atomic
def end_suspension(*, service_id: UUID, due_at: datetime) -> None:
    """Nobody could bring it back in time: it ends; quiet when it was resumed meanwhile."""
    order, service = lock_with_order(service_id)
    if service.state == ServiceState.SUSPENDED and service.suspended_until == due_at:
        end_service(order, service, cause=causes.SUSPENSION_ENDED)
        audit.record(None, "service.suspension_ended", service)


@transaction.atomic
def note_fault(*, service_id: UUID) -> bool:
    """The server has a fault and goes on: degraded from now on; False when that is known.

    What the fault is stands in the node's ticket, for operators.
    """
    service = lock_service(service_id)
    if service.state not in (ServiceState.ACTIVE, ServiceState.STOPPED):
        return False
    is_new = service.degraded_at is None
    if is_new:
        service.degraded_at = clock.now_seconds()
        service.save(update_fields=["degraded_at"])
        audit.record(None, "service.degraded", service)
        outbox.publish("service.degraded", subject=service.pk)
    settle_condition(service)
    return is_new


@transaction.atomic
def clear_fault(*, service_id: UUID) -> None:
    """The fault is gone; quiet when there was none."""
    service = lock_service(service_id)
    if service.degraded_at is None:
        return
    service.degraded_at = None
    service.save(update_fields=["degraded_at"])
    settle_condition(service)
    audit.record(None, "service.recovered", service)
    outbox.publish("service.recovered", subject=service.pk)


def end_operation(*, service_id: UUID, failed: str = "", run: UUID | None = None) -> None:
    """Work on a running service is over: what shows is its own state again.

    `failed` names the verb that could not be done; its customer is told. Why stands in the run.
    """
    service = lock_service(service_id)
    if service.state == ServiceState.DELETING:  # ended meanwhile: now its removal can begin
        outbox.publish("service.work_ended", subject=service.pk)
        return
    settle_condition(service)
    if failed:
        audit.record(None, f"service.{failed}_failed", service, after={"run": str(run)})
        outbox.publish("service.operation_failed", subject=service.pk, verb=failed)


def settle_condition(service: Service) -> None:
    """What a locked service shows while nobody works on it."""
    shown = Condition.DEGRADED if service.degraded_at else Condition.NONE
    if (service.condition, service.condition_detail) != (shown, ""):
        service.condition, service.condition_detail = shown, ""
        service.save(update_fields=["condition", "condition_detail"])
        projections.write_service(service)


@transaction.atomic
def rename_service(*, service_id: UUID, name: str, actor: User) -> Service:
    """Give a service another name; the server itself takes it when it is next installed.

    Raises WrongName or NotFound.
    """
    service = lock_service(service_id)
    before, service.name = service.name, name_of(name)
    if before != service.name:
        service.save(update_fields=["name"])
        projections.write_service(service)
        audit.record(
            actor, "service.renamed", service, before={"name": before}, after={"name": name}
        )
    return service


@transaction.atomic
def tag_service(*, service_id: UUID, tags: dict[str, str], actor: User) -> Service:
    """Set all tags of a service: the customer's own names and values.

    Raises TooManyTags, BadTag naming the tag, or NotFound.
    """
    if len(tags) > MOST_TAGS:
        raise TooManyTags(field="tags", most=MOST_TAGS, given=len(tags))
    for name, value in tags.items():
        if not TAG_NAME.fullmatch(name) or not TAG_VALUE.fullmatch(str(value)):
            raise BadTag(field="tags", tag=f"{name}={value}"[:80])
    service = lock_service(service_id)
    before, service.tags = service.tags, dict(sorted(tags.items()))
    if before != service.tags:
        service.save(update_fields=["tags"])
        audit.record(
            actor, "service.tagged", service, before={"tags": before}, after={"tags": service.tags}
        )
    return service
