"""Questions over several apps: offerings with price and room, work under way."""

from datetime import datetime
from typing import Any
from uuid import UUID

from apps.api.serializers.base import Instant
from apps.api.serializers.orders import UNKNOWN
from apps.catalog import selectors as catalog
from apps.catalog.models import Offering
from apps.core import clock
from apps.core.errors import NotFound
from apps.inventory import selectors as inventory
from apps.invoicing import selectors as invoicing
from apps.orders import selectors as orders
from apps.orders.models import Order, Service
from apps.orders.states import OrderStatus
from apps.provisioning import selectors as provisioning
from apps.provisioning import standing
from apps.provisioning.standing import Standing
from apps.tenancy.selectors import current_tenant


def offerings_now() -> list[Offering]:
    """What the tenant may order, each with `price` (None: no price now) and `availability`."""
    tenant = current_tenant()
    offerings = list(catalog.visible_offerings())
    prices = catalog.prices_in_force(currency=tenant.currency, at=clock.now(), tenant=tenant.id)
    room: dict[UUID, list[inventory.Availability]] = {}
    for row in inventory.availability():
        room.setdefault(row.offering_id, []).append(row)
    for offering in offerings:
        offering.price = prices.get(offering.sku)  # type: ignore[attr-defined]
        offering.availability = room.get(offering.pk, [])  # type: ignore[attr-defined]
    return offerings


def offering_now(sku: str) -> Offering:
    """One of them. Raises NotFound."""
    for offering in offerings_now():
        if offering.sku == sku:
            return offering
    raise NotFound()


def service_in_work(service_id: UUID) -> Service:
    """A service with `progress` and `expected_at` of the work under way. Raises NotFound."""
    return _with_progress([orders.service_by_id(service_id)])[0]


def order_in_work(order_id: UUID) -> Order:
    """An order with its `servers`, `progress` and `expected_at` of the last. Raises NotFound."""
    order = orders.order_by_id(order_id)
    found = _with_progress(list(orders.services_of_order(order_id)))
    waits = order.status == OrderStatus.QUEUED
    stands = orders.queue_standing(order) if waits else None
    order.servers = found  # type: ignore[attr-defined]
    order.progress = {  # type: ignore[attr-defined]
        "ready": sum(one.ready_at is not None for one in found),
        "of": order.quantity,
        "queue_place": stands.place if stands else None,
        "queue_expected_at": _told(stands.expected_at) if stands else None,
        "queue_expires_at": stands.expires_at if stands else None,
    }
    order.question = orders.approval_of_order(order_id)  # type: ignore[attr-defined]
    shown = standing.of_order(
        order,
        [one.standing for one in found],  # type: ignore[attr-defined]
        place=order.progress["queue_place"],  # type: ignore[attr-defined]
    )
    order.standing, order.expected_at = shown, _expected(shown)  # type: ignore[attr-defined]
    return order


def line_of(document_id: UUID, line_id: UUID, *, with_drafts: bool = False) -> dict[str, Any]:
    """All a line of this document follows from. Raises NotFound."""
    found = invoicing.explain_line(line_id, with_drafts=with_drafts)
    if found["document"].pk != document_id:
        raise NotFound()
    return found


def _with_progress(services: list[Service]) -> list[Service]:
    """Adds `progress` and `expected_at`: null without work, `unknown` while nobody can tell."""
    found = provisioning.progress_of(one.pk for one in services if standing.is_under_way(one))
    now = clock.now() if found else None
    for service in services:
        progress = found.get(service.pk)
        shown = standing.of_service(service, progress, now=now)
        service.progress, service.standing = progress, shown  # type: ignore[attr-defined]
        service.expected_at = _expected(shown)  # type: ignore[attr-defined]
    return services


def _expected(shown: Standing) -> str | None:
    """An instant, `unknown` while nobody can tell, or None when nobody waits."""
    if not shown.is_awaited:
        return None
    return _told(shown.expected_at)


def _told(at: datetime | None) -> str:
    return str(Instant().to_representation(at)) if at else UNKNOWN
