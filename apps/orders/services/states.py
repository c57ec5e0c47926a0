"""The states of a service: `move_service` writes the fact, and nothing else does."""

from collections.abc import Collection
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Max

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.core.errors import NotFound
from apps.inventory import services as inventory
from apps.inventory.selectors import live_allocation
from apps.orders import causes, deadlines, projections
from apps.orders.errors import NameNotConfirmed, Protected, ServiceOver
from apps.orders.ledger import lock_facts_shared
from apps.orders.models import Condition, Fact, FactSource, Order, QueueEntry, Service
from apps.orders.states import ORDER, SERVICE, OrderStatus, ServiceState

OVER = (ServiceState.FAILED, ServiceState.TERMINATED, ServiceState.DELETING)


def begin_service(service: Service) -> Service:
    """Store a new service and its first fact."""
    service.save(force_insert=True)
    _write_fact(service, at=clock.now_seconds(), cause=causes.ORDER_ACCEPTED, run=None)
    projections.write_service(service)
    return service


@transaction.atomic
def move_service(
    *,
    service: Service,
    verb: str,
    cause: str,
    run: UUID | None = None,
    since: datetime | None = None,
) -> datetime:
    """Move a locked service to its next state and record the fact; returns the instant.

    The instant is read after the lock, in whole seconds, and is the same in the row, the fact and
    the event. Past its agreed end a service only ends, and ends at that instant, however late
    somebody comes. `since` is an earlier instant at which it was seen to happen: a lost host is
    free from there on. Raises Conflict when the verb is not possible from the state.
    """
    at = _instant(service, verb)
    if since is not None:
        at = max(_last_fact_at(service) or at, min(at, since.replace(microsecond=0)))
    SERVICE.move(service, verb, field="state")
    if verb == "ready":
        service.ready_at = service.ready_at or at
    if service.state in (ServiceState.DELETING, ServiceState.FAILED):
        service.ended_at = at
        QueueEntry.objects.filter(service=service.pk, left_at=None).update(left_at=at)
    service.condition, service.condition_detail = Condition.NONE, ""
    service.save(update_fields=["state", "ready_at", "ended_at", "condition", "condition_detail"])
    _write_fact(service, at=at, cause=cause, run=run)
    if service.ended_at is not None:
        deadlines.clear_deadlines(subject=service.pk)
    projections.write_service(service)
    return at


def _instant(service: Service, verb: str) -> datetime:
    now = clock.now_seconds()
    end = service.leaves_at
    if end is None or now < end or verb in ("ready", "fail", "finish"):
        return now
    if verb != "terminate":
        raise ServiceOver(name=service.name, ended_at=end)
    last = _last_fact_at(service)
    return max(end, last) if last else end


def _last_fact_at(service: Service) -> datetime | None:
    live = Fact.objects.filter(service=service, source=FactSource.LIVE)
    at: datetime | None = live.aggregate(at=Max("start_at"))["at"]
    return at


def _write_fact(service: Service, *, at: datetime, cause: str, run: UUID | None) -> None:
    lock_facts_shared()
    count = Fact.objects.filter(service=service, source=FactSource.LIVE).count()
    Fact.objects.create(
        service=service,
        version=service.version,
        state=service.state,
        start_at=at,
        source=FactSource.LIVE,
        source_key=f"{service.pk}:{count + 1}",
        cause=cause[:120],
        run_id=run,
        node_id=service.node_id,
    )


@transaction.atomic
def mark_ready(*, service_id: UUID, run: UUID, access: dict[str, Any]) -> Service:
    """The service is proven usable: charged from this instant on.

    `access` gives address, login and host_keys. Returns quietly when it is ready already; raises
    Conflict when it was cancelled meanwhile.
    """
    service = Service.objects.select_for_update().get(pk=service_id)
    if service.state == ServiceState.ACTIVE:
        return service
    service.address = str(access.get("address", ""))
    service.login = str(access.get("login", ""))
    service.host_keys = list(access.get("host_keys", []))
    service.save(update_fields=["address", "login", "host_keys"])
    at = move_service(service=service, verb="ready", cause=causes.PROVEN, run=run)
    audit.record(None, "service.ready", service, after={"ready_at": at.isoformat()})
    outbox.publish("service.ready", subject=service.pk, ready_at=at.isoformat())
    return service


@transaction.atomic
def fail_service(*, service_id: UUID, run: UUID) -> None:
    """Provisioning was given up and undone: never charged, capacity and quota returned.

    Why stands in the run, for operators; it is not the customer's to read.
    """
    order, service = lock_with_order(service_id)
    if service.state != ServiceState.PROVISIONING:
        return
    move_service(service=service, verb="fail", cause=causes.PROVISIONING_FAILED, run=run)
    inventory.release(service=service.pk)
    audit.record(None, "service.failed", service, after={"run": str(run)})
    outbox.publish("service.failed", subject=service.pk)
    _close_order_if_over(order)


def end_service(order: Order, service: Service, *, cause: str) -> None:
    """A locked service of a locked order is wanted no more: charging stops, its quota is returned,
    its node goes to cleaning. One that was never ready was never charged; the engine undoes its
    work. With its last service the order is closed.
    """
    at = move_service(service=service, verb="terminate", cause=cause)
    inventory.release(service=service.pk)
    facts = {"ended_at": at.isoformat()} if service.ready_at else {"order": str(service.order_id)}
    outbox.publish("service.terminating", subject=service.pk, **facts)
    _close_order_if_over(order)


@transaction.atomic
def terminate_service(
    *, service_id: UUID, actor: User, reason: str = "", confirm_name: str | None = None
) -> Service:
    """End a service: charging stops at this instant, its quota is returned, its node goes to
    cleaning.

    With its last service an order is closed: for the customer it is over now, though the node still
    goes to cleaning. Terminating again changes nothing. `confirm_name`, when given, must be the
    service's name. Raises Protected, NameNotConfirmed or NotFound.
    """
    order, service = lock_with_order(service_id)  # lock
    if service.state in OVER:
        return service
    if confirm_name is not None and confirm_name != service.name:
        raise NameNotConfirmed(name=service.name, field="confirm_name")
    if service.is_protected:
        raise Protected(name=service.name)
    before = service.state
    end_service(order, service, cause=causes.TERMINATED)
    audit.record(
        actor, "service.terminated", service, reason=reason, before={"state": before},
        after={"state": service.state},
    )  # fmt: skip
    return service


@transaction.atomic
def finish_service(*, service_id: UUID, run: UUID) -> None:
    """What belonged to the service is gone: the last fact."""
    order, service = lock_with_order(service_id)
    if service.state != ServiceState.DELETING:
        return
    ended_at = service.ended_at
    move_service(service=service, verb="finish", cause=causes.REMOVED, run=run)
    Service.objects.filter(pk=service.pk).update(ended_at=ended_at)
    outbox.publish("service.terminated", subject=service.pk)
    _close_order_if_over(order)


def lock_wanted(
    *, service_id: UUID, states: Collection[str] = (ServiceState.PROVISIONING,)
) -> bool:
    """Lock a service before its nodes are touched; is it still in a state in which the work on it
    makes sense?
    """
    _order, service = lock_with_order(service_id)
    return service.state in states


def lock_service(service_id: UUID) -> Service:
    """The service under its row lock. Raises NotFound, the same for another tenant's."""
    service = Service.objects.select_for_update().filter(pk=service_id).first()
    if service is None:
        raise NotFound(field="service")
    return service


def lock_with_order(service_id: UUID) -> tuple[Order, Service]:
    """Order first, then service: the lock order of everything that touches both. Raises NotFound,
    the same for another tenant's.
    """
    order = Order.objects.select_for_update(of=("self",)).filter(services=service_id).first()
    if order is None:
        raise NotFound(field="service")
    return order, Service.objects.select_for_update().get(pk=service_id)


def _close_order_if_over(order: Order) -> None:
    """Close a locked order once its last service is over for the customer."""
    open_ones = Service.objects.filter(order=order).exclude(state__in=OVER)
    if order.status == OrderStatus.ACCEPTED and not open_ones.exists():
        ORDER.move(order, "close")
        order.save(update_fields=["status"])
        projections.write_order(order)


@transaction.atomic
def protect_service(*, service_id: UUID, is_protected: bool, actor: User) -> Service:
    """Put termination protection on or take it off. Raises NotFound."""
    service = lock_service(service_id)
    if service.is_protected != is_protected:
        service.is_protected = is_protected
        service.save(update_fields=["is_protected"])
        audit.record(
            actor, "service.protection_changed", service, after={"is_protected": is_protected}
        )
    return service


def show_condition(
    *, service_id: UUID, condition: str, detail: str = "", run: UUID | None = None
) -> None:
    """What the customer sees on top of the state while work is under way; no fact, no charge."""
    service = Service.objects.select_for_update().get(pk=service_id)
    shown = (service.condition, service.condition_detail, service.run_id)
    service.condition, service.condition_detail = condition, detail[:300]
    service.run_id = run or service.run_id
    if shown == (service.condition, service.condition_detail, service.run_id):
        return
    service.save(update_fields=["condition", "condition_detail", "run_id"])
    projections.write_service(service)


def describe_service(*, service_id: UUID, node_id: UUID, node_name: str) -> None:
    """The service lives on another node from now on: same service, same order."""
    service = Service.objects.select_for_update().get(pk=service_id)
    service.node_id, service.node_name = node_id, node_name
    hold = live_allocation(service.pk)
    service.recalled_at = inventory.lent_until(hold, hold.node.site) if hold else None
    service.save(update_fields=["node_id", "node_name", "recalled_at"])
    if service.leaves_at is not None:
        deadlines.set_deadline(kind="service.end", subject=service.pk, due_at=service.leaves_at)
    projections.write_service(service)
