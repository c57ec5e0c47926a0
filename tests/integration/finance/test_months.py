"""Which month something belongs to, on the desk of an operator with tenants in many zones."""

from datetime import timedelta

import pytest

from apps.core.uuids import uuid7
from apps.finance import selectors
from apps.orders.models import ServiceProjection
from tests.builders import an_instant

pytestmark = pytest.mark.django_db


def a_use(tenant, since, *, hours=1):
    """A service of a tenant that was in use."""
    ready_at = an_instant(since)
    ServiceProjection.objects.create(
        service=uuid7(), tenant=tenant.id, order=uuid7(), number="ORD-000001", name="a", sku="a",
        site_code="a", gpus=8, state="terminated", ready_at=ready_at,
        ended_at=ready_at + timedelta(hours=hours), created_at=ready_at,
    )  # fmt: skip


def in_month(period):
    return {row.tenant.slug: row.services for row in selectors.closing(period=period)}


def test_a_service_belongs_to_the_month_of_its_tenants_billing_time_zone(acme, globex, platform):
    globex.billing_timezone = "America/Los_Angeles"
    globex.save()
    a_use(acme, "2026-12-01T08:00:00+09:00")  # 30 November in UTC, December in Seoul
    a_use(globex, "2026-12-01T08:00:00+09:00")  # 30 November in Los Angeles

    assert in_month("2026-11") == {"globex": 1}
    assert in_month("2026-12") == {"acme": 1}


def test_use_across_a_months_end_belongs_to_both(acme, platform):
    a_use(acme, "2026-11-30T23:30:00+09:00")

    assert in_month("2026-11") == {"acme": 1}
    assert in_month("2026-12") == {"acme": 1}
