"""Orders: placed from a quote, accepted with capacity, queued without, cancelled, expired."""

from collections.abc import Sequence
from uuid import UUID

import structlog
from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.models import Offering
from apps.core import clock, outbox
from apps.core.uuids import uuid7
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Site
from apps.orders import deadlines, projections
from apps.orders.errors import OthersWait, QuoteExpired, QuoteNotFound
from apps.orders.models import Condition, IfUnavailable, Order, QueueEntry, Quote, Service
from apps.orders.numbers import next_order_serial
from apps.orders.queues import queue_length
from apps.orders.services import policy
from apps.orders.services.approving import APPROVABLE, Approvable, ask_approval
from apps.orders.services.choices import choice_of, image_of, keys_of, name_of, project_of
from apps.orders.services.ending import end_order, lock_order
from apps.orders.services.lifetime import arm_end
from apps.orders.services.quoting import offering_of, site_of
from apps.orders.services.states import begin_service
from apps.orders.states import ORDER, OrderStatus
from apps.tenancy.context import platform_context
from apps.tenancy.selectors import current_tenant

log = structlog.get_logger(__name__)


@transaction.atomic
def place_order(
    *,
    actor: User,
    quote_id: UUID,
    project_id: UUID,
    name: str,
    image_code: str = "",
    ssh_key_ids: Sequence[UUID] = (),
    ssh_public_keys: Sequence[str] = (),
    if_unavailable: str = IfUnavailable.FAIL,
) -> Order:
    """Turn a quote into an order and take its capacity, in one transaction.

    Placing the same quote again answers the same order. Raises the error of the first rule that is
    broken: input, quote, policy (permission, TooLong), quota (QuotaExceeded), capacity
    (OutOfCapacity when `if_unavailable` is `fail`); then nothing is changed. An order that needs
    approval, or begins later, holds nothing until then.
    """
    quote = Quote.objects.select_for_update().filter(pk=quote_id).first()  # lock
    if quote is None:
        raise QuoteNotFound(field="quote")
    before = Order.objects.filter(quote=quote).first()
    if before is not None:
        return before
    if quote.valid_until <= clock.now():
        raise QuoteExpired(until=quote.valid_until.isoformat(timespec="minutes"), field="quote")
    offering = offering_of(quote.sku)
    site = site_of(quote.site_code, offering)
    project = project_of(project_id, actor)
    order = Order(  # check
        serial=0,
        quote=quote,
        placed_by=actor,
        project=project,
        name=name_of(name),
        image_code=image_of(offering, image_code).code,
        ssh_keys=keys_of(ssh_key_ids, ssh_public_keys),
        if_unavailable=choice_of(if_unavailable),
        **{
            field: getattr(quote, field)
            for field in (
                "offering_id", "sku", "offering_name", "site_id", "site_code", "quantity",
                "gpus_each", "currency", "plan", "billing_basis", "price_rule", "price_id",
                "unit_price", "contract_id", "starts_at", "ends_at",
            )
        },
    )  # fmt: skip
    policy.check_order(order, actor=actor)
    order.serial = next_order_serial()
    order.placed_at = clock.now()
    ORDER.move(order, "place")  # change
    order.save(force_insert=True)
    audit.record(actor, "order.placed", order, after=_terms(order))  # record
    outbox.publish("order.placed", subject=order.pk)  # tell
    if order.ends_at is not None:
        deadlines.set_deadline(kind="order.end", subject=order.pk, due_at=order.ends_at)
    if rule := policy.approval_rule(order, actor=actor):
        projections.write_order(order)
        ask_approval(actor=actor, rule=rule, order=order, not_after=order.ends_at)
    else:
        _go_on(order, offering, site)
    log.info("order.placed", order=order.number, status=order.status)
    return order


def _go_on(order: Order, offering: Offering, site: Site) -> None:
    """Nobody has to agree any more: begin now, or let the begin fall due."""
    ORDER.move(order, "approve")
    if order.starts_at is None or order.starts_at <= clock.now():
        order.save(update_fields=["status"])
        accept_or_queue(order, offering, site)
        return
    ORDER.move(order, "schedule")
    order.save(update_fields=["status"])
    deadlines.set_deadline(kind="order.start", subject=order.pk, due_at=order.starts_at)
    projections.write_order(order)
    outbox.publish("order.scheduled", subject=order.pk)


def accept_or_queue(order: Order, offering: Offering, site: Site) -> None:
    tenant = current_tenant()
    if waiting := queue_length(site_id=site.pk, resource_class=offering.resource_class):
        if order.if_unavailable == IfUnavailable.FAIL:  # nobody overtakes who waits already
            raise OthersWait(
                field="quantity",
                waiting=waiting,
                free=0,
                wanted=order.quantity,
                resource_class=offering.resource_class,
                site=site.shown_name,
            )
        _enter_queue(order, site, offering)
        return
    try:
        with transaction.atomic():
            _accept(order, offering, site, tenant=tenant.id)
    except OutOfCapacity:
        if order.if_unavailable == IfUnavailable.FAIL:
            raise
        order.refresh_from_db()
        _enter_queue(order, site, offering)


def _accept(order: Order, offering: Offering, site: Site, *, tenant: UUID) -> None:
    """Take the nodes, make the services, say so; raises OutOfCapacity."""
    service_ids = [uuid7() for _ in range(order.quantity)]
    allocations = inventory.allocate(
        site=site,
        resource_class=offering.resource_class,
        traits=offering.traits,
        gpus_each=order.gpus_each,
        tenant=tenant,
        order=order.pk,
        services=service_ids,
    )
    ORDER.move(order, "accept")
    order.decided_at = clock.now()
    order.status_reason = ""
    order.save(update_fields=["status", "decided_at", "status_reason"])
    deadlines.clear_deadlines(subject=order.pk)
    for number, allocation in enumerate(allocations, start=1):
        service = begin_service(
            Service(
                id=allocation.service,
                order=order,
                project_id=order.project_id,
                ordinal=number,
                name=order.name if order.quantity == 1 else f"{order.name}-{number}",
                sku=order.sku,
                gpus=order.gpus_each,
                site_id=site.pk,
                site_code=site.code,
                node_id=allocation.node_id,
                node_name=allocation.node.name,
                condition=Condition.WORKING,
                ends_at=order.ends_at,
            )
        )
        arm_end(service)
    projections.write_order(order)
    audit.record(None, "order.accepted", order)
    outbox.publish("order.accepted", subject=order.pk, services=[str(one) for one in service_ids])


def _enter_queue(order: Order, site: Site, offering: Offering) -> None:
    ORDER.move(order, "queue")
    order.save(update_fields=["status"])
    QueueEntry.objects.create(
        tenant=current_tenant().id,
        order=order.pk,
        site=site.pk,
        offering=offering.pk,
        resource_class=offering.resource_class,
        gpus=order.gpus,
    )
    projections.write_order(order)
    outbox.publish("order.queued", subject=order.pk)


@transaction.atomic
def accept_from_queue(*, order_id: UUID) -> bool:
    """Give a waiting order its capacity if there is some; True when its entry left the queue."""
    order = Order.objects.select_for_update().get(pk=order_id)
    entry = (
        QueueEntry.objects.select_for_update()
        .filter(order=order_id, service=None, left_at=None)
        .first()
    )
    if order.status != OrderStatus.QUEUED or entry is None:
        if entry is not None:
            entry.left_at = clock.now()
            entry.save(update_fields=["left_at"])
        return entry is not None
    if order.ends_at is not None and order.ends_at <= clock.now():
        return False  # its end is about to be served
    offering, site = agreed(order)
    try:
        with transaction.atomic():
            entry.left_at = clock.now()
            entry.save(update_fields=["left_at"])
            _accept(order, offering, site, tenant=current_tenant().id)
    except OutOfCapacity:
        return False
    return True


def _granted(order: Order, actor: User) -> None:
    """An approver agreed: limits and capacity are looked at again."""
    policy.check_quota(order)
    _go_on(order, *agreed(order))


APPROVABLE["order"] = Approvable(
    lock=lock_order,
    granted=_granted,
    ended=lambda order, verb, reason: end_order(order, verb, reason=reason),
)


def _terms(order: Order) -> dict[str, object]:
    return {
        "sku": order.sku,
        "site": order.site_code,
        "quantity": order.quantity,
        "unit_price": str(order.unit_price),
        "currency": order.currency,
        "plan": order.plan,
        "billing_basis": order.billing_basis,
        "price_rule": order.price_rule,
        "if_unavailable": order.if_unavailable,
        **term_of(order),
    }


def term_of(order: Order) -> dict[str, str | None]:
    return {
        name: instant.isoformat() if instant else None
        for name, instant in (("starts_at", order.starts_at), ("ends_at", order.ends_at))
    }


def agreed(order: Order) -> tuple[Offering, Site]:
    """The order's offering and site; hidden from the tenant by now or not, what was agreed
    stands.
    """
    with platform_context():
        offering = Offering.objects.get(pk=order.offering_id)
    return offering, Site.objects.get(pk=order.site_id)
