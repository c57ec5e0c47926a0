"""The finance desk's world: a tenant with a month of usage, and staff to bill it."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from apps.accounts.roles import Role
from apps.catalog.models import PriceBook
from apps.orders.models import Service, ServiceProjection
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests.builders import SKU, a_price, a_price_book, a_used_service, move_clock
from tests.integration.inventory.builders import an_offering
from tests.people import Browser, a_browser, an_operator

PERIOD = "2026-03"
NOW = "2026-04-02T00:00:00+09:00"


@dataclass
class Desk:
    """What finance bills."""

    tenant: Tenant
    book: PriceBook


@pytest.fixture
def desk(acme: Any) -> Iterator[Desk]:
    """April has just begun, and acme used a server of eight GPUs for an hour in March."""
    move_clock(NOW)
    book = a_price_book()
    a_price(4000, book=book)
    used(acme)
    with platform_context():
        an_offering(SKU)
        yield Desk(acme, book)


@pytest.fixture
def browser(desk: Desk) -> Browser:
    """The finance desk's browser."""
    return staff(Role.FINANCE)


def staff(role: str) -> Browser:
    """The browser of somebody with that role."""
    return a_browser("console", user=an_operator(role))


def used(
    tenant: Tenant, start: str = "2026-03-10T00:00:00", end: str = "2026-03-10T01:00:00"
) -> Service:
    """A server of a tenant that ran from start to end, as tenant and console know it."""
    with tenant_context(tenant):
        service = a_used_service(start, end, currency=tenant.currency)
        facts = list(service.facts.order_by("start_at"))
        ServiceProjection.objects.update_or_create(
            service=service.pk,
            defaults={
                "tenant": tenant.pk,
                "order": service.order_id,
                "number": service.order.number,
                "name": service.name,
                "sku": service.sku,
                "site_code": service.site_code,
                "gpus": service.gpus,
                "state": service.state,
                "ready_at": facts[1].start_at,
                "ended_at": facts[2].start_at,
                "created_at": facts[0].start_at,
            },
        )
    return service
