"""Orders placed from a quote, approved where somebody has to agree, begun or scheduled."""

from collections.abc import Sequence
from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.models import Offering
from apps.core import clock, outbox
from apps.inventory.models import Site
from apps.orders import deadlines, projections
from apps.orders.errors import QuoteExpired, QuoteNotFound
from apps.orders.models import IfUnavailable, Order, Quote
from apps.orders.numbers import next_order_serial
from apps.orders.services import policy
from apps.orders.services.accepting import accept_or_queue, agreed
from apps.orders.services.approving import APPROVABLE, Approvable, ask_approval
from apps.orders.services.choices import (
    check_patience,
    choice_of,
    image_of,
    keys_of,
    name_of,
    project_of,
)
from apps.orders.services.ending import end_order, lock_order
from apps.orders.services.quoting import is_booking, offering_of, site_of
from apps.orders.states import ORDER

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
    patience: timedelta | None = None,
) -> Order:
    """Turn a quote into an order and take its capacity, in one transaction.

    Placing the same quote again answers the same order. Raises the error of the first rule that is
    broken: input, quote, policy (permission, TooLong), quota (QuotaExceeded), capacity
    (OutOfCapacity when `if_unavailable` is `fail`); then nothing is changed. An order that needs
    approval, or begins later, holds nothing until then. Without capacity it waits for `patience`,
    if it chose to wait.
    """
    check_patience(patience)
    quote = Quote.objects.select_for_update().filter(pk=quote_id).first()  # lock
    if quote is None or is_booking(quote):
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
                "unit_price", "contract_id", "reservation_id", "starts_at", "ends_at",
                "accepts_recall",
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
        _go_on(order, offering, site, patience)
    log.info("order.placed", order=order.number, status=order.status)
    return order


def _go_on(order: Order, offering: Offering, site: Site, patience: timedelta | None = None) -> None:
    """Nobody has to agree any more: begin now, or let the begin fall due."""
    ORDER.move(order, "approve")
    if order.starts_at is None or order.starts_at <= clock.now():
        order.save(update_fields=["status"])
        accept_or_queue(order, offering, site, patience=patience)
        return
    ORDER.move(order, "schedule")
    order.save(update_fields=["status"])
    deadlines.set_deadline(kind="order.start", subject=order.pk, due_at=order.starts_at)
    projections.write_order(order)
    outbox.publish("order.scheduled", subject=order.pk)


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
        "accepts_recall": order.accepts_recall,
        "reservation": str(order.reservation_id) if order.reservation_id else None,
        **term_of(order),
    }


def term_of(order: Order) -> dict[str, str | None]:
    return {
        name: instant.isoformat() if instant else None
        for name, instant in (("starts_at", order.starts_at), ("ends_at", order.ends_at))
    }
