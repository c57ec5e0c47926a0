"""A service in the console: where it stands, and suspending it with a reason."""

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.orders.models import Service, ServiceProjection
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.portal.shop import a_shop, an_order_of, make_ready
from tests.people import a_browser, an_operator

pytestmark = pytest.mark.django_db


def url(name: str, *args: Any) -> str:
    return reverse(f"console:{name}", args=args, urlconf="neocloud.urls_platform")


@pytest.fixture
def service(acme: Any) -> Service:
    return make_ready(Service.objects.get(order=an_order_of(a_shop())))


def staff(role: str = Role.OPERATOR) -> Any:
    with platform_context():
        return a_browser("console", user=an_operator(role))


def test_an_operator_sees_a_service_suspends_and_resumes_it(acme: Any, service: Service):
    browser = staff()
    page = browser.get(url("service_detail", service.pk))
    assert service.name in page.text
    assert 'data-opens="suspend"' in page.text
    act = url("service_act", service.pk, "suspend")
    assert browser.post(act, {"reason": ""}).status_code == 422
    assert browser.post(act, {"reason": "not paid"}).status_code == 302
    page = browser.get(url("service_detail", service.pk))
    assert "Suspended" in page.text
    assert 'data-opens="resume"' in page.text
    browser.post(url("service_act", service.pk, "resume"), {"reason": "paid"})
    with tenant_context(acme):
        assert Service.objects.get().state == "active"
        acts = AuditEntry.objects.filter(subject_id=str(service.pk)).order_by("id")
        reasons = dict(acts.values_list("action", "reason"))
        assert (reasons["service.suspended"], reasons["service.resumed"]) == ("not paid", "paid")
        assert AuditEntry.objects.filter(action="staff.looked").count() == 1
    with platform_context():
        assert ServiceProjection.objects.get().state == "active"


def test_who_only_looks_has_no_buttons(service: Service):
    page = staff(Role.AUDITOR).get(url("service_detail", service.pk))
    assert 'data-opens="suspend"' not in page.text
