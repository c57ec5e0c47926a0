"""Closing a month drafts every tenant's invoice, each for itself."""

from apps.core.uuids import uuid7
from apps.invoicing import services
from apps.orders.models import ServiceProjection
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.services import create_tenant
from tests.builders import a_price, a_used_service, move_clock


def used_by(tenant, **columns):
    """A used service with its row in the console's list."""
    with tenant_context(tenant):
        service = a_used_service(**columns)
        ServiceProjection.objects.create(
            service=service.pk,
            tenant=tenant.pk,
            order=service.order_id,
            number=service.order.number,
            name=service.name,
            sku=service.sku,
            site_code=service.site_code,
            gpus=service.gpus,
            state=service.state,
            created_at=service.facts.earliest("start_at").start_at,
        )


def test_one_tenants_trouble_stops_nobody_else(platform):
    alpha, beta, gamma, idle = (
        create_tenant(slug=f"close-{name}", name=name)
        for name in ("alpha", "beta", "gamma", "idle")
    )
    a_price(4000)
    used_by(alpha)
    used_by(beta, sku=f"unpriced-{uuid7().hex[-6:]}")
    used_by(gamma)
    move_clock("2026-04-01T03:00:00")
    with tenant_context(gamma):
        draft = services.draft_invoice(tenant=gamma, period="2026-03", actor=None)
        services.issue_invoice(document_id=draft.pk, actor=None)

    results = {
        one.tenant.slug: one
        for one in services.close_month(period="2026-03", currency="KRW", actor=None)
    }

    assert results["close-alpha"].result == "drafted"
    assert str(results["close-alpha"].total) == "35200"
    assert results["close-beta"].result == "refused"
    assert results["close-beta"].error.code == "no_price"
    assert (results["close-gamma"].result, results["close-gamma"].document_id) == (
        "invoiced",
        draft.pk,
    )
    assert idle.slug not in results


def test_a_month_that_is_not_over_is_refused_for_each(platform):
    tenant = create_tenant(slug="close-early", name="Early")
    used_by(tenant)
    move_clock("2026-03-20T00:00:00")
    results = services.close_month(period="2026-03", currency="KRW", actor=None)
    assert [one.error.code for one in results] == ["period_not_over"]


def test_a_month_in_which_nothing_ran_gives_nothing(platform):
    tenant = create_tenant(slug="close-quiet", name="Quiet")
    with platform_context():
        used_by(tenant)
    move_clock("2026-06-01T00:00:00")
    results = services.close_month(period="2026-05", currency="KRW", actor=None)
    assert [one.result for one in results] == ["nothing"]
