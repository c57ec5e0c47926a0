"""Orders: placed from a quote, accepted with capacity, queued without, cancelled."""

import re
from collections.abc import Iterable, Sequence
from uuid import UUID

import structlog
from django.db import transaction

from apps.accounts import ssh_keys
from apps.accounts.models import Project, SSHKey, User
from apps.audit import services as audit
from apps.catalog.models import Image, Offering
from apps.core import clock, outbox
from apps.core.errors import NotFound
from apps.core.uuids import uuid7
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Site
from apps.orders import causes, projections
from apps.orders.errors import (
    NoKeys,
    NotCancellable,
    OthersWait,
    Protected,
    QuoteExpired,
    QuoteNotFound,
    UnknownKey,
    UnknownProject,
    WrongChoice,
    WrongImage,
    WrongName,
)
from apps.orders.models import (
    Condition,
    IfUnavailable,
    Order,
    QueueEntry,
    Quote,
    Service,
)
from apps.orders.numbers import next_order_serial
from apps.orders.queues import queue_length
from apps.orders.services.limits import reserve_quota
from apps.orders.services.quoting import offering_of, site_of
from apps.orders.services.states import begin_service, end_provisioning
from apps.orders.states import ORDER, OrderStatus, ServiceState
from apps.tenancy.context import platform_context
from apps.tenancy.selectors import current_tenant

log = structlog.get_logger(__name__)
NAME = re.compile(r"[A-Za-z][A-Za-z0-9-]{0,59}")


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
    broken: input, quote, quota (QuotaExceeded), capacity (OutOfCapacity when `if_unavailable` is
    `fail`);
    then nothing is changed.
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
    project = _project(project_id)
    order = Order(  # check
        serial=0,
        quote=quote,
        placed_by=actor,
        project=project,
        name=_name(name, quote.quantity),
        image_code=_image(offering, image_code).code,
        ssh_keys=_keys(ssh_key_ids, ssh_public_keys),
        if_unavailable=_choice(if_unavailable),
        **{
            field: getattr(quote, field)
            for field in (
                "offering_id", "sku", "offering_name", "site_id", "site_code", "quantity",
                "gpus_each", "currency", "plan", "billing_basis", "price_rule", "price_id",
                "unit_price", "contract_id",
            )
        },
    )  # fmt: skip
    tenant = current_tenant()
    reserve_quota(tenant=tenant.id, project=project, gpus=order.gpus, services=order.quantity)
    order.serial = next_order_serial()
    order.placed_at = clock.now()
    ORDER.move(order, "place")  # change
    ORDER.move(order, "approve")
    order.save(force_insert=True)
    audit.record(actor, "order.placed", order, after=_terms(order))  # record
    outbox.publish("order.placed", subject=order.pk)  # tell
    _accept_or_queue(order, offering, site, actor=actor)
    log.info("order.placed", order=order.number, status=order.status)
    return order


def _accept_or_queue(order: Order, offering: Offering, site: Site, *, actor: User | None) -> None:
    tenant = current_tenant()
    if waiting := queue_length(site_id=site.pk, resource_class=offering.resource_class):
        if order.if_unavailable == IfUnavailable.FAIL:  # nobody overtakes who waits already
            raise OthersWait(
                field="quantity",
                waiting=waiting,
                free=0,
                wanted=order.quantity,
                resource_class=offering.resource_class,
                site=site.name,
            )
        _enter_queue(order, site, offering)
        return
    try:
        with transaction.atomic():
            _accept(order, offering, site, tenant=tenant.id, actor=actor)
    except OutOfCapacity:
        if order.if_unavailable == IfUnavailable.FAIL:
            raise
        order.refresh_from_db()
        _enter_queue(order, site, offering)


def _accept(
    order: Order, offering: Offering, site: Site, *, tenant: UUID, actor: User | None
) -> None:
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
    for number, allocation in enumerate(allocations, start=1):
        begin_service(
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
            )
        )
    projections.write_order(order)
    audit.record(actor, "order.accepted", order)
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
    entry = QueueEntry.objects.select_for_update().filter(order=order_id, left_at=None).first()
    if order.status != OrderStatus.QUEUED or entry is None:
        if entry is not None:
            entry.left_at = clock.now()
            entry.save(update_fields=["left_at"])
        return entry is not None
    site = Site.objects.get(pk=order.site_id)
    with (
        platform_context()
    ):  # the offering may be hidden from the tenant by now; what was agreed stands
        offering = Offering.objects.get(pk=order.offering_id)
    try:
        with transaction.atomic():
            entry.left_at = clock.now()
            entry.save(update_fields=["left_at"])
            _accept(order, offering, site, tenant=current_tenant().id, actor=None)
    except OutOfCapacity:
        return False
    return True


@transaction.atomic
def cancel_order(*, order_id: UUID, actor: User, reason: str = "") -> Order:
    """Cancel an order at any stage before its servers are in use; cancelling twice changes nothing.

    Raises NotCancellable when a service was ready already, Protected when one is, NotFound.
    """
    order = Order.objects.select_for_update().filter(pk=order_id).first()  # lock
    if order is None:
        raise NotFound(field="order")
    if order.status == OrderStatus.CANCELLED:
        return order
    services = list(  # in the order in which their nodes are locked
        Service.objects.select_for_update().filter(order=order).order_by("node_id")
    )
    if any(service.ready_at for service in services):
        raise NotCancellable(number=order.number)
    for service in services:
        if service.is_protected and service.state == ServiceState.PROVISIONING:
            raise Protected(name=service.name)
    before = order.status
    ORDER.move(order, "cancel")  # check and change
    order.status_reason = reason[:400]
    order.save(update_fields=["status", "status_reason"])
    QueueEntry.objects.filter(order=order.pk, left_at=None).update(left_at=clock.now())
    for service in services:
        if service.state == ServiceState.PROVISIONING:
            end_provisioning(service, cause=causes.ORDER_CANCELLED)
    projections.write_order(order)
    audit.record(
        actor, "order.cancelled", order, reason=reason, before={"status": before},
        after={"status": order.status},
    )  # fmt: skip
    outbox.publish("order.cancelled", subject=order.pk)
    return order


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
    }


def _name(name: str, quantity: int) -> str:
    if not NAME.fullmatch(name) or name.endswith("-"):
        raise WrongName(asked=name[:80], field="name")
    return name


def _project(project_id: UUID) -> Project:
    open_ones = Project.objects.filter(archived_at=None)
    project = open_ones.filter(pk=project_id).first()
    if project is None:
        known = ", ".join(open_ones.order_by("name").values_list("name", flat=True)) or "—"
        raise UnknownProject(project=project_id, known=known, field="project")
    return project


def _image(offering: Offering, code: str) -> Image:
    images = list(
        offering.images.filter(is_retired=False).order_by("offeringimage__position", "code")
    )
    for image in images:
        if code in ("", image.code):
            return image
    raise WrongImage(
        sku=offering.sku, image=code, known=", ".join(one.code for one in images), field="image"
    )


def _keys(key_ids: Iterable[UUID], pasted: Iterable[str]) -> list[str]:
    wanted = list(dict.fromkeys(key_ids))
    stored = {key.pk: key.public_key for key in SSHKey.objects.filter(pk__in=wanted)}
    for key_id in wanted:
        if key_id not in stored:
            raise UnknownKey(key=key_id, field="ssh_keys")
    keys = [stored[key_id] for key_id in wanted]
    keys += [ssh_keys.parse(text, field="ssh_public_keys").text for text in pasted if text.strip()]
    if not keys:
        raise NoKeys(field="ssh_keys")
    return list(dict.fromkeys(keys))


def _choice(if_unavailable: str) -> str:
    if if_unavailable not in IfUnavailable.values:
        raise WrongChoice(
            name="if_unavailable",
            known=", ".join(IfUnavailable.values),
            asked=if_unavailable,
            field="if_unavailable",
        )
    return if_unavailable
