"""What staff decide on the console is done, with a reason, in their name, if they may."""

from typing import Any

import pytest
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.catalog.models import Offering
from apps.catalog.services import export_catalog
from apps.inventory.models import Node, Site
from apps.notices.models import Notice
from apps.orders.models import TenantLimit
from apps.provisioning.adapters.fake import FakeCompute
from apps.provisioning.models import Run
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from tests.integration.console.conftest import staff
from tests.integration.console.operator import World, fill
from tests.integration.inventory.builders import seen
from tests.people import Browser

REASON = {"reason": "seen and understood"}


def url(name: str, *args: Any) -> str:
    return reverse(f"console:{name}", args=args, urlconf="neocloud.urls_platform")


@pytest.fixture
def full(world: World) -> World:
    """The world with one of everything."""
    fill(world)
    return world


def test_a_held_run_goes_on_when_a_person_says_so(full: World, browser: Browser):
    run = full.runs[0]
    answer = browser.post(url("run_act", run.pk, "retry"), REASON)
    assert answer["Location"] == url("run_detail", run.pk)
    run.refresh_from_db()
    assert run.status == "forward"
    assert "seen and understood" in browser.get(url("run_detail", run.pk)).text
    assert AuditEntry.objects.get(action="run.retried").reason == "seen and understood"


def test_a_held_run_is_undone_when_a_person_says_so(full: World, browser: Browser):
    run = full.runs[0]
    browser.post(url("run_act", run.pk, "undo"), REASON)
    run.refresh_from_db()
    assert run.status == "undoing"


def test_nobody_decides_without_a_reason(full: World, browser: Browser):
    run = full.runs[0]
    assert browser.post(url("run_act", run.pk, "retry"), {"reason": " "}).status_code == 422
    assert Run.objects.get(pk=run.pk).status == "held"
    node = full.nodes[0]
    assert browser.post(url("node_act", node.pk, "quarantine"), {"reason": "-"}).status_code == 422
    assert Node.objects.get(pk=node.pk).status == "available"


@pytest.mark.parametrize("role", [Role.AUDITOR, Role.FINANCE])
def test_who_only_looks_may_not_decide(role: str, full: World):
    mine, run, node = staff(role), full.runs[0], full.nodes[0]
    for address in (
        url("run_act", run.pk, "retry"),
        url("node_act", node.pk, "quarantine"),
        url("site_act", full.shop.site.pk, "pause"),
        url("site_import", full.shop.site.pk),
        url("tenant_limits", full.tenant.pk),
        url("tenant_create"),
        url("offering_import"),
    ):
        assert mine.post(address, REASON).status_code == 403, address
    assert Run.objects.get(pk=run.pk).status == "held"
    assert Node.objects.get(pk=node.pk).status == "available"


def test_a_node_goes_into_quarantine_and_back(full: World, browser: Browser):
    node = full.nodes[0]
    browser.post(url("node_act", node.pk, "quarantine"), {"reason": "ECC errors on GPU 3"})
    page = browser.get(url("node_detail", node.pk)).text
    assert "ECC errors on GPU 3" in page
    ticket = node.tickets.get()
    browser.post(url("ticket_close", ticket.pk), {"reason": "GPU 3 replaced"})
    browser.post(url("node_act", node.pk, "restore"), {"reason": "burn-in passed"})
    node.refresh_from_db()
    ticket.refresh_from_db()
    assert node.status == "available"
    assert ticket.resolution == "GPU 3 replaced"
    assert all(event.actor.startswith("Person") for event in node.events.all())


def test_an_allocated_node_offers_no_maintenance(full: World, browser: Browser):
    node = Node.objects.filter(status="allocated").first()
    assert node is not None
    page = browser.get(url("node_detail", node.pk)).text
    assert 'data-opens="quarantine"' in page
    assert 'data-opens="service"' not in page
    assert browser.post(url("node_act", node.pk, "service"), REASON).status_code == 409


def test_a_site_is_paused_and_sells_again(full: World, browser: Browser):
    site = full.shop.site
    browser.post(url("site_act", site.pk, "pause"), {"reason": "power works"})
    assert Site.objects.get(pk=site.pk).status == "paused"
    assert "power works" in browser.get(url("home")).text
    browser.post(url("site_act", site.pk, "resume"), {"reason": "power is back"})
    assert Site.objects.get(pk=site.pk).status == "active"


def test_importing_nodes_shows_the_difference_before_anything_is_kept(
    world: World, browser: Browser
):
    # given a site that has one node we do not know
    FakeCompute.forget_all()
    site = world.shop.site
    Site.objects.filter(pk=site.pk).update(driver="fake")
    FakeCompute.of(site.code).add(seen("brand-new", "52:54:00:aa:bb:01"))
    # when it is compared
    page = browser.post(url("site_import", site.pk))
    # then the node is shown as new and not kept
    assert "brand-new" in page.text
    assert "Nothing was changed." in page.text
    assert not Node.objects.filter(name="brand-new").exists()
    # when it is imported
    browser.post(url("site_import", site.pk), {"keep": "1"})
    # then it is there
    assert Node.objects.filter(name="brand-new").exists()


def test_a_tenant_is_made_with_its_limits_and_first_administrator(browser: Browser):
    fields = {
        "name": "Initech",
        "slug": "initech",
        "admin_name": "First Person",
        "admin_email": "first@initech.test",
        "language": "en",
        "currency": "USD",
        "billing_timezone": "UTC",
        "vat_percent": "0",
        "max_gpus": "16",
        "max_services": "2",
    }
    made = browser.post(url("tenant_create"), fields)
    tenant = Tenant.objects.get(slug="initech")
    assert made["Location"] == url("tenant_detail", tenant.pk)
    assert TenantLimit.objects.get(tenant=tenant.pk).max_gpus == 16
    with tenant_context(tenant):
        assert User.objects.get().role == Role.OWNER
    # a second one of that name is refused beside the field, and nothing of it stays
    again = browser.post(url("tenant_create"), fields | {"name": "Another"})
    assert again.status_code == 422
    assert "is-invalid" in again.text
    assert Tenant.objects.filter(name="Another").count() == 0


def test_limits_are_set_on_the_tenants_page(full: World, browser: Browser):
    browser.post(url("tenant_limits", full.tenant.pk), {"max_gpus": "80", "max_services": "9"})
    assert TenantLimit.objects.get(tenant=full.tenant.pk).max_gpus == 80
    refused = browser.post(
        url("tenant_limits", full.tenant.pk), {"max_gpus": "-1", "max_services": "9"}
    )
    assert refused.status_code == 422


def test_a_catalogue_is_tried_before_it_is_kept(full: World, browser: Browser):
    text = export_catalog().replace("8 × H200", "Eight H200")
    assert "Eight H200" in text
    tried = browser.post(url("offering_import"), {"text": text})
    assert "Eight H200" in tried.text
    assert not Offering.objects.filter(name="Eight H200").exists()
    browser.post(url("offering_import"), {"text": text, "keep": "1"})
    assert Offering.objects.filter(name="Eight H200").exists()


def test_a_broken_catalogue_is_refused_row_by_row(full: World, browser: Browser):
    page = browser.post(url("offering_import"), {"text": "offerings:\n- sku: x y\n", "keep": "1"})
    assert page.status_code == 422
    assert "sku" in page.text


def test_a_notice_to_all_staff_is_read(full: World, browser: Browser):
    notice = Notice.objects.create(kind="t", subject="Run held", body="x", dedup_key="t:1")
    assert "Run held" in browser.get(url("notices")).text
    browser.post(url("notice_read", notice.pk))
    notice.refresh_from_db()
    assert notice.read_at is not None


def test_the_chain_of_the_trail_is_verified_on_request(full: World, browser: Browser):
    assert "The chain is whole" in browser.get(url("audit") + "?verify=1").text
