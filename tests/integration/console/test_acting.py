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
from apps.inventory.services import site_password
from apps.notices.models import Notice
from apps.orders.models import TenantLimit
from apps.provisioning.adapters.fake import FakeCompute
from apps.provisioning.models import FailurePolicy, Leak, Run
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from tests.integration.console.conftest import staff
from tests.integration.console.operator import World, fill
from tests.integration.inventory.builders import a_site, seen
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


def test_a_node_is_restored_with_its_ticket_or_it_is_said_that_it_stays_open(
    full: World, browser: Browser
):
    closed, left = full.nodes[:2]
    for node in (closed, left):
        browser.post(url("node_act", node.pk, "quarantine"), {"reason": "fan 3 stands still"})
    page = browser.get(url("node_detail", closed.pk)).text
    assert "Close its open ticket with this reason" in page
    browser.post(url("node_act", closed.pk, "restore"), {"reason": "fan changed", "also": "yes"})
    assert closed.tickets.get().resolution == "fan changed"
    browser.post(url("node_act", left.pk, "restore"), {"reason": "false alarm"})
    assert left.tickets.get().closed_at is None
    assert "1 ticket stays open." in browser.get(url("node_detail", left.pk)).text


SITE_FORM = {
    "code": "busan-1",
    "name": "Busan 1",
    "name_ko": "부산 1",
    "timezone": "Asia/Seoul",
    "driver": "ironic",
    "endpoint": "https://ironic.example.test",
    "username": "neocloud",
    "password": "sesame",
    "call_home_url": "https://console.example.test/call-home",
    "concurrency": "10",
    "turn_around_minutes": "90",
    "console_url": "https://kvm.example.test/{node}",
    "is_routable": "on",
}
POOL_FORM = {
    "name": "front",
    "prefix": "10.30.0.0/24",
    "gateway": "10.30.0.1",
    "first_address": "10.30.0.10",
    "last_address": "10.30.0.99",
    "dns": "10.30.0.2, 10.30.0.3",
    "vlan_first": "100",
    "vlan_last": "120",
}


def test_a_site_is_added_and_changed_on_pages(full: World, browser: Browser):
    assert "new/" in browser.get(url("site_list")).text
    browser.post(url("site_create"), SITE_FORM)
    site = Site.objects.get(code="busan-1")
    assert (site.status, site.name_ko, site.concurrency) == ("paused", "부산 1", 10)
    assert site_password(site) == "sesame"
    assert (site.turn_around_minutes, site.is_routable) == (90, True)
    assert site.console_url == "https://kvm.example.test/{node}"
    page = browser.get(url("site_edit", site.pk)).text
    assert "Busan 1" in page
    assert "sesame" not in page
    # an empty password leaves the one there is, and the code stays whatever is sent
    browser.post(
        url("site_edit", site.pk), SITE_FORM | {"code": "x-1", "name": "Busan", "password": ""}
    )
    site.refresh_from_db()
    assert (site.code, site.name, site_password(site)) == ("busan-1", "Busan", "sesame")


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"code": "Busan 1"}, "is-invalid"),
        ({"code": "seoul"}, "There is a site with this code"),
        ({"endpoint": "ironic"}, "is-invalid"),
        ({"call_home_url": "ftp://x"}, "is-invalid"),
        ({"timezone": "Mars/Olympus"}, "is-invalid"),
        ({"concurrency": "0"}, "is-invalid"),
        ({"console_url": "kvm"}, "is-invalid"),
        ({"driver": "magic"}, "is-invalid"),
    ],
)
def test_a_wrong_site_is_refused_beside_its_field(
    full: World, browser: Browser, wrong: dict[str, str], says: str
):
    before = Site.objects.count()
    page = browser.post(url("site_create"), SITE_FORM | wrong)
    assert page.status_code == 422
    assert says in page.text
    assert Site.objects.count() == before


def test_an_address_pool_is_added_and_changed_on_pages(full: World, browser: Browser):
    site = full.shop.site
    browser.post(url("pool_create", site.pk), POOL_FORM)
    pool = site.address_pools.get(name="front")
    assert pool.dns == ["10.30.0.2", "10.30.0.3"]
    assert "10.30.0.2 10.30.0.3" in browser.get(url("pool_edit", site.pk, pool.pk)).text
    browser.post(url("pool_edit", site.pk, pool.pk), POOL_FORM | {"last_address": "10.30.0.120"})
    pool.refresh_from_db()
    assert pool.last_address == "10.30.0.120"
    assert "front" in browser.get(url("site_detail", site.pk)).text


@pytest.mark.parametrize(
    "wrong",
    [
        {"prefix": "10.30.0.1/24"},
        {"gateway": "10.31.0.1"},
        {"last_address": "10.30.0.9"},
        {"dns": "dns.example"},
        {"vlan_last": "99"},
        {"vlan_first": "0"},
    ],
)
def test_a_wrong_pool_is_refused_beside_its_field(
    full: World, browser: Browser, wrong: dict[str, str]
):
    page = browser.post(url("pool_create", full.shop.site.pk), POOL_FORM | wrong)
    assert page.status_code == 422
    assert "is-invalid" in page.text
    assert not full.shop.site.address_pools.filter(name="front").exists()


def test_a_pool_is_not_made_twice_nor_found_at_another_site(full: World, browser: Browser):
    site = full.shop.site
    browser.post(url("pool_create", site.pk), POOL_FORM)
    assert browser.post(url("pool_create", site.pk), POOL_FORM).status_code == 422
    pool = site.address_pools.get(name="front")
    other = a_site("elsewhere")
    assert browser.get(url("pool_edit", other.pk, pool.pk)).status_code == 404


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
    # and nothing is offered to import once more
    page = browser.post(url("site_import", site.pk))
    assert "Nothing to import" in page.text
    assert 'name="keep"' not in page.text


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


def test_a_run_is_taken_over_and_shows_what_happens_next_and_who_decides(
    full: World, browser: Browser
):
    run = full.runs[0]
    browser.post(url("run_act", run.pk, "take-over"), REASON)
    page = browser.get(url("run_detail", run.pk)).text
    assert "Taken over by" in page
    assert "What happens next if this fails" in page
    assert url("runbook", "run-taken-over") in page


def test_a_leak_is_looked_after_and_closed_with_a_reason(full: World, browser: Browser):
    leak = Leak.objects.get()
    assert leak.what in browser.get(url("leak_list")).text
    browser.post(url("leak_act", leak.pk, "assign"))
    browser.post(url("leak_act", leak.pk, "close"), REASON)
    leak.refresh_from_db()
    assert leak.owner
    assert "seen and understood" in leak.gone_how


def test_a_failure_policy_is_set_for_a_site_and_nonsense_is_shown_at_its_field(
    full: World, browser: Browser
):
    address = f"{url('policy_edit')}?site={full.shop.site.pk}&offering="
    form = browser.get(address).context["form"]
    given = {name: "" if value is None else value for name, value in form.initial.items()}
    wrong = browser.post(address, given | {"hold_hours": 0} | REASON)
    assert wrong.status_code == 422
    assert "hold_hours" in wrong.context["form"].errors
    browser.post(address, given | {"hold_hours": 6} | REASON)
    assert FailurePolicy.objects.get(site=full.shop.site).hold_hours == 6
