"""Every page of the console opens, says what it should, and asks a bounded number of times."""

import re
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.console import work
from apps.core.uuids import uuid7
from apps.inventory.models import Maintenance, Node, Site, Ticket
from apps.inventory.services import quarantine
from apps.orders.models import OrderProjection
from apps.provisioning import findings
from apps.provisioning.models import Finding, RunStep, SiteCheck, SiteLook
from apps.provisioning.states import StepStatus
from apps.tenancy.context import tenant_context
from tests.builders import an_instant
from tests.integration.console.conftest import staff
from tests.integration.console.operator import World, a_world, fill
from tests.people import Browser

PLAIN = (
    "home", "capacity", "order_list", "run_list", "node_list", "node_map", "site_list",
    "tenant_list", "tenant_create", "offering_list", "offering_import", "audit", "notices",
    "search", "finding_list", "ticket_list", "maintenance_list", "work_list", "qualification_list",
)  # fmt: skip
LISTS = (
    "ticket_list",
    "maintenance_list",
    "finding_list",
    "qualification_list",
    "order_list",
    "run_list",
    "node_list",
    "tenant_list",
    "audit",
)
LIVE = ("home", "capacity", "node_map", "work_list")
MOST_QUERIES = 15


def url(name: str, *args: Any) -> str:
    return reverse(f"console:{name}", args=args, urlconf="neocloud.urls_platform")


def details(world: World) -> dict[str, str]:
    """The page of one thing of each kind."""
    check, _made = SiteCheck.objects.get_or_create(site=world.shop.site)
    return {
        "order_detail": url("order_detail", world.orders[1].pk),
        "run_detail": url("run_detail", world.runs[0].pk),
        "node_detail": url("node_detail", world.nodes[-1].pk),
        "site_detail": url("site_detail", world.shop.site.pk),
        "ticket_detail": url("ticket_detail", Ticket.objects.earliest("opened_at").pk),
        "maintenance_detail": url("maintenance_detail", Maintenance.objects.earliest("id").pk),
        "check_detail": url("check_detail", check.pk),
        "finding_detail": url("finding_detail", Finding.objects.earliest("id").pk),
        "tenant_detail": url("tenant_detail", world.tenant.pk),
    }


def statements(browser: Browser, address: str, **headers: str) -> int:
    """How many questions a page asks; changing sides and savepoints are none."""
    with CaptureQueriesContext(connection) as found:
        page = browser.get(address, headers=headers)
    assert page.status_code == 200, address
    told = [query["sql"] for query in found.captured_queries]
    return sum(not sql.startswith(("SET search_path", "SAVEPOINT", "RELEASE")) for sql in told)


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_opens_while_everything_is_empty(name: str, browser: Browser):
    page = browser.get(url(name))
    assert page.status_code == 200
    assert page.text.count("<h1") == 1


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_asks_no_more_often_when_it_is_full(name: str, world: World, browser: Browser):
    fill(world)
    before = statements(browser, url(name))
    fill(world)
    assert statements(browser, url(name)) == before <= MOST_QUERIES


def test_a_things_page_asks_no_more_often_when_there_is_more(world: World, browser: Browser):
    fill(world)
    for address in details(world).values():
        browser.get(address)  # the first look at a tenant is recorded
    before = {name: statements(browser, address) for name, address in details(world).items()}
    addresses = details(world)
    fill(world)
    after = {name: statements(browser, address) for name, address in addresses.items()}
    assert after == before
    assert max(after.values()) <= MOST_QUERIES, after


@pytest.mark.parametrize("name", LISTS)
def test_a_list_and_its_rows_come_from_one_address(name: str, world: World, browser: Browser):
    fill(world)
    rows = browser.get(url(name), headers={"HX-Request": "true"})
    assert rows.text.lstrip().startswith('<div id="rows"')
    assert statements(browser, url(name), **{"HX-Request": "true"}) <= MOST_QUERIES


@pytest.mark.parametrize("name", LIVE)
def test_a_live_page_renews_its_part_and_says_when_nothing_changed(
    name: str, world: World, browser: Browser
):
    fill(world)
    asked = {"HX-Request": "true", "Neo-Live": "1"}
    part = browser.get(url(name), headers=asked)
    assert "<html" not in part.text
    again = browser.get(url(name), headers=asked | {"If-None-Match": part["ETag"]})
    assert again.status_code == 304


def test_no_page_holds_inline_scripts_or_styles(world: World, browser: Browser):
    fill(world)
    for address in [*map(url, PLAIN), *details(world).values()]:
        page = browser.get(address)
        for forbidden in ("style=", "<style", "onclick", "hx-on", "<script>"):
            assert forbidden not in page.text, address


def test_home_shows_what_needs_a_person(world: World, browser: Browser):
    fill(world)
    page = browser.get(url("home")).text
    for told in ("image not found", "fan 3 stands still", "the node does not answer"):
        assert told in page
    assert "the handler refused" in page
    assert "gpu.b200.8x" in page  # an order waits for it, though there is none
    assert "₩32,000" in page  # what eight GPUs do not earn in an hour


def test_one_page_shows_what_needs_a_person_most_urgent_first(world: World, browser: Browser):
    fill(world)
    page = browser.get(url("work_list")).text
    held, leak, node = (page.index(word) for word in ("Held run", "Not undone", "fan 3 stands"))
    assert held < leak < node
    assert "maintenance power failure" in page
    menu = page[page.index("neo-side") : page.index("neo-top")]
    assert "badge bg-red" in menu  # how many there are, on every page


def test_home_says_when_nothing_needs_anybody(browser: Browser):
    assert "Nothing needs a person now." in browser.get(url("home")).text


def test_a_runs_page_shows_steps_errors_and_who_decided(world: World, browser: Browser):
    fill(world)
    page = browser.get(url("run_detail", world.runs[0].pk)).text
    for told in ("Install the operating system", "image not found", "Refused", "the engine"):
        assert told in page
    assert "Try the step again" in page


def test_a_run_that_ended_stops_asking(world: World, browser: Browser):
    fill(world)
    with tenant_context(world.tenant):
        run = world.orders[0].services.get().run_id
    page = browser.get(url("run_detail", run), headers={"HX-Request": "true", "Neo-Live": "1"})
    assert page.status_code == 286
    assert "NVIDIA H200" in page.text  # the evidence
    assert "as agreed" in page.text


def test_lists_are_narrowed_and_paged(world: World, browser: Browser):
    for number in range(60):
        OrderProjection.objects.create(
            order=uuid7(),
            tenant=world.tenant.pk,
            number=f"ORD-{number:06d}",
            name=f"train-{number % 3}",
            sku="bm-8xh200",
            site_code="seoul",
            quantity=1,
            gpus=8,
            status="accepted",
            created_at=an_instant("2026-03-01T00:00:00"),
        )
    first = browser.get(url("order_list"), headers={"HX-Request": "true"}).text
    assert first.count("<tr id=") == 50
    following = re.split(r'rel="next"\s+href="', first)[1].split('"')[0].replace("&amp;", "&")
    second = browser.get(url("order_list") + following, headers={"HX-Request": "true"}).text
    assert second.count("<tr id=") == 10
    shown = {part.split('"')[0] for part in first.split('id="row-')[1:]}
    assert not shown & {part.split('"')[0] for part in second.split('id="row-')[1:]}
    narrowed = browser.get(url("order_list") + "?q=train-1").text
    assert narrowed.count("<tr id=") == 20
    assert browser.get(url("order_list") + "?cursor=nonsense").status_code == 422


def test_nodes_are_found_by_serial_mac_and_status(world: World, browser: Browser):
    fill(world)
    node = world.nodes[0]
    for text in (node.serial, node.nics.get().mac, node.name):
        assert f"row-{node.pk}" in browser.get(url("node_list") + f"?q={text}").text
    broken = browser.get(url("node_list") + "?status=quarantined").text
    assert f"row-{world.nodes[-1].pk}" in broken
    assert f"row-{node.pk}" not in broken


def test_search_finds_things_of_every_kind(world: World, browser: Browser):
    fill(world)
    assert world.orders[0].number in browser.get(url("search") + "?q=train-0").text
    assert world.nodes[0].name in browser.get(url("search") + f"?q={world.nodes[0].serial}").text
    assert world.tenant.name in browser.get(url("search") + "?q=acme").text
    assert "Nothing of that name" in browser.get(url("search") + "?q=zzzz").text


def test_looking_at_a_tenant_is_recorded_in_its_own_trail(world: World, browser: Browser):
    browser.get(url("tenant_detail", world.tenant.pk))
    with tenant_context(world.tenant):
        entry = AuditEntry.objects.get(action="staff.looked")
        assert entry.actor_side == "platform"


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.FINANCE, Role.AUDITOR])
def test_every_role_sees_the_console(role: str, world: World):
    fill(world)
    mine = staff(role)
    for name in ("home", "capacity", "order_list", "run_list", "node_list", "site_list"):
        assert mine.get(url(name)).status_code == 200
    for address in details(world).values():
        page = mine.get(address)
        assert page.status_code == 200
        may_act = role == Role.OPERATOR
        if address == details(world)["run_detail"]:
            assert ("Try the step again" in page.text) == may_act


def test_a_page_speaks_korean_to_who_reads_korean(world: World, browser: Browser):
    browser.cookies["neo_language"] = "ko"
    assert '<html lang="ko"' in browser.get(url("home")).text


def test_a_tenants_person_is_not_let_in(acme: Any):
    world = a_world(acme)
    stranger = Browser(headers={"host": "console.localhost"})
    stranger.cookies["neo_session"] = "made-up"
    assert stranger.get(url("home")).status_code == 302
    assert world.tenant == acme


def test_an_undone_step_does_not_look_like_one_to_come(world: World, browser: Browser):
    fill(world)
    run = world.runs[0]
    RunStep.objects.filter(run=run, position=0).update(status=StepStatus.UNDONE)

    page = browser.get(url("run_detail", run.pk))

    assert page.text.count("neo-step-undone") == 1
    assert ": Undone</span>" in page.text


def test_the_proof_of_cleaning_is_told_in_the_readers_time(world: World, browser: Browser):
    fill(world)
    proof = {
        "steps": ["erase_devices"],
        "started_at": "2026-03-01T00:00:00.049171+00:00",
        "ended_at": None,
        "result": "success",
        "detail": "",
        "simulated": True,
    }
    Node.objects.filter(pk=world.nodes[0].pk).update(clean_proof=proof)

    page = browser.get(url("node_detail", world.nodes[0].pk))

    assert "erase_devices" in page.text
    assert "2026-03-01 09:00:00" in page.text
    assert "no disk was erased" in page.text
    assert "00:00.049171" not in page.text


def test_a_finding_shows_what_differs_what_it_means_and_its_one_click(
    world: World, browser: Browser
):
    fill(world)
    found = Finding.objects.earliest("id")
    address = url("finding_detail", found.pk)
    page = browser.get(address).text
    means = "The site took the node for broken"
    for told in ("maintenance power failure", means, "/runbooks/findings/"):
        assert told in page
    assert "Quarantine the node" in page

    answer = browser.post(url("finding_act", found.pk, "fix"), {})
    assert answer.status_code == 302
    assert Finding.objects.get(pk=found.pk).status == "fixing"
    again = browser.post(url("finding_act", found.pk, "fix"), {})
    assert again.status_code == 409


def test_a_finding_is_accepted_only_with_a_reason(world: World, browser: Browser):
    fill(world)
    found = Finding.objects.earliest("id")
    assert browser.post(url("finding_act", found.pk, "accept"), {}).status_code == 422
    browser.post(url("finding_act", found.pk, "accept"), {"reason": "fans are replaced"})
    assert Finding.objects.get(pk=found.pk).status == "accepted"
    assert "fans are replaced" in browser.get(url("finding_detail", found.pk)).text


def test_a_site_shows_its_last_comparison_and_what_needs_no_person(world: World, browser: Browser):
    fill(world)
    site = world.shop.site
    page = browser.get(url("site_detail", site.pk)).text
    assert "Belief and reality" in page
    assert "maintenance power failure" in page
    browser.post(url("site_policy", site.pk, "maintenance"), {"automatic": "1"})
    assert findings.policies(site)["maintenance"]
    browser.post(url("site_look", site.pk), {})
    assert SiteLook.objects.filter(site=site).exists()


def test_korean_staff_read_korean_names_of_sites(world: World, browser: Browser):
    fill(world)
    Site.objects.filter(pk=world.shop.site.pk).update(name_ko="서울 1센터")
    browser.cookies["neo_language"] = "ko"
    node, run = world.nodes[0].pk, world.runs[0].pk
    for page in (
        url("site_list"), url("site_detail", world.shop.site.pk), url("capacity"), url("node_list"),
        url("node_detail", node), url("run_detail", run), url("node_map"),
    ):  # fmt: skip
        text = browser.get(page).text
        assert "서울 1센터" in text, page
        assert "Seoul 1" not in text, page


def test_a_rack_is_cordoned_from_the_map_and_a_node_says_who_must_move(
    world: World, browser: Browser
):
    fill(world)
    site, node = world.shop.site, Node.objects.filter(status="allocated").first()
    Node.objects.update(rack="R01", is_cordoned=False)
    assert "A whole rack" in browser.get(f"{url('node_map')}?site={site.pk}").text
    words = {"rack": "R01", "verb": "cordon", "reason": "water in the rack"}
    assert browser.post(url("rack_act", site.pk), words | {"reason": ""}).status_code == 422
    assert browser.post(url("rack_act", site.pk), words).status_code == 302
    assert all(Node.objects.values_list("is_cordoned", flat=True))
    page = browser.get(url("node_detail", node.pk)).text
    assert "must move or end" in page
    assert "Lift the cordon" in page
    browser.post(url("node_act", node.pk, "uncordon"), {"reason": "it is dry again"})
    assert not Node.objects.get(pk=node.pk).is_cordoned


def test_a_ticket_is_opened_carried_on_and_closed_on_its_pages(world: World, browser: Browser):
    fill(world)
    node = world.nodes[0]
    wrong = browser.post(url("ticket_open", node.pk), {"title": "", "category": "gpu"})
    assert wrong.status_code == 422
    given = {"title": "GPU 3 throttles", "category": "gpu", "action": "", "detail": ""}
    browser.post(url("ticket_open", node.pk), given)
    ticket = Ticket.objects.get(title="GPU 3 throttles")
    browser.post(url("ticket_update", ticket.pk), given | {"action": "paste renewed"})
    assert "paste renewed" in browser.get(url("ticket_detail", ticket.pk)).text
    browser.post(url("ticket_close", ticket.pk), {"reason": "cool again"})
    page = browser.get(url("node_detail", node.pk)).text
    assert "GPU 3 throttles" in page
    assert "cool again" in page


def test_work_is_planned_in_the_zone_of_the_page_announced_and_ended(
    world: World, browser: Browser
):
    fill(world)
    node = world.nodes[0]
    address = url("maintenance_plan", node.site_id)
    given = {
        "title": "New switch",
        "nodes": f"{node.name}\nno-such-node",
        "starts_at": "2099-01-02T09:00",
        "ends_at": "2099-01-02T11:00",
    }
    refused = browser.post(address, given)
    assert refused.status_code == 422
    assert "no-such-node" in refused.text
    assert browser.post(address, given | {"nodes": node.name}).status_code == 302
    work = Maintenance.objects.get(title="New switch")
    assert work.starts_at.isoformat() == "2099-01-02T00:00:00+00:00"  # nine in Seoul
    browser.post(url("maintenance_act", work.pk, "announce"), {})
    browser.post(url("maintenance_act", work.pk, "end"), {"reason": "done at night"})
    work.refresh_from_db()
    assert work.announced_at
    assert work.ended_at


def test_a_broken_node_and_its_ticket_are_one_piece_of_work_and_counted_as_listed(
    world: World, settings: Any
):
    settings.ROOT_URLCONF = "neocloud.urls_platform"
    fill(world)
    quarantine(node=world.nodes[0], reason="prove_ready: not what was bought: 7 GPUs")
    Node.objects.filter(pk=world.nodes[1].pk).update(seen_provision_state="error")

    found = work.items()

    (broken,) = [one for one in found if world.nodes[0].name in one.where]
    assert broken.kind == "ticket"
    assert "prove_ready" not in broken.what
    assert work.count() == len([one for one in found if one.kind not in ("event", "queue")])
