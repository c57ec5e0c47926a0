"""Belief and reality differ at a site: found once, sure after two looks, mended or shown."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.db import connection

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import SiteUnreachable, Transient
from apps.core.machine import WrongStatus
from apps.inventory import services as inventory
from apps.inventory.models import AddressLease, Node, Ticket
from apps.inventory.observations import ObservedNode
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.models import Service, ServiceProjection
from apps.provisioning import findings
from apps.provisioning.adapters.fake_parts import FakeNetwork, FakeVolumes
from apps.provisioning.engine import reconciler
from apps.provisioning.engine.reconciler.cleaning import is_unclean
from apps.provisioning.errors import NoFix, ReasonMissing
from apps.provisioning.models import Finding, Run, SiteLook
from apps.provisioning.ports import CleaningRecord, ObservedClaim
from apps.tenancy.context import platform_context, tenant_context
from tests.builders import move_clock
from tests.integration.provisioning import world
from tests.people import an_operator


@pytest.fixture
def site(acme: Any, settings: Any) -> Iterator[Any]:
    """A fake site of two servers; the test runs on the platform's side."""
    settings.NEOCLOUD_GRACE_SECONDS = 0
    with platform_context():
        yield world.a_fake_site()


@pytest.fixture
def served(acme: Any, site: Any) -> ServiceProjection:
    """An active service whose run ended long ago."""
    with tenant_context(acme):
        service = world.until_ready(world.an_accepted_order())
    later(hours=1)
    return ServiceProjection.objects.get(service=service.pk)


def later(**length: float) -> None:
    """Time goes by."""
    move_clock(clock.now() + timedelta(**length))


def look(site: Any, times: int = 1) -> None:
    """Compare so often, whatever is due."""
    for _time in range(times):
        SiteLook.objects.update_or_create(site=site, defaults={"due_at": clock.now()})
        assert reconciler.look(site.pk) is not None


def work(rounds: int = 6) -> None:
    """Carry out the fixes that were asked for, and let the site's time pass."""
    for _round in range(rounds):
        Finding.objects.filter(next_try_at__isnull=False).update(next_try_at=clock.now())
        for finding_id in reconciler.due_fixes():
            reconciler.advance_fix(finding_id)
        world.fake().settle()


def node_of(service: ServiceProjection) -> Node:
    """The node a service is on."""
    return Node.objects.get(name=service.node_name)


def alter(node: Node, **columns: Any) -> None:
    """Somebody changes a node behind our back."""
    found = world.fake().nodes[node.infra_id]
    found.seen = replace(found.seen, changed_at=clock.now(), **columns)


def free_node() -> Node:
    """A node nobody holds."""
    return Node.objects.filter(status="available").first()


def the_finding() -> Finding:
    """The only one."""
    return Finding.objects.get()


def said() -> list[str]:
    """What the audit trail tells of findings, oldest first."""
    return list(
        AuditEntry.objects.filter(subject_type="finding")
        .order_by("id")
        .values_list("action", flat=True)
    )


# ---------------------------------------------------------------------- no false alarms
def test_a_site_that_is_as_we_believe_has_no_findings(site: Any, served: ServiceProjection):
    look(site, times=3)
    assert not list(Finding.objects.values("kind", "status", "seen", "believed"))
    told = SiteLook.objects.get()
    assert told.counts["nodes"] == 2
    assert told.counts["claims"] == 1
    assert told.looked_at
    assert told.error == ""


def test_nothing_is_said_of_a_node_while_a_run_works_on_it(acme: Any, site: Any):
    with tenant_context(acme):
        order = world.an_accepted_order()
        for _round in range(6):
            world.step()
            with platform_context():
                look(site, times=2)
        service = world.until_ready(order)
        with platform_context():
            look(site, times=2)
        person = service.order.placed_by
        orders.terminate_service(service_id=service.pk, actor=person)
        with platform_context():
            look(site, times=2)
        world.step()
        with platform_context():
            look(site, times=2)
        world.until_gone(service)
    look(site, times=2)
    later(minutes=5)
    look(site, times=2)
    assert not list(Finding.objects.values("kind", "status", "seen", "believed"))


def test_one_look_is_no_alarm(site: Any, served: ServiceProjection):
    node = node_of(served)
    alter(node, power_state="power off")
    look(site)
    assert not findings.findings().exists()
    alter(node, power_state="power on")
    look(site)
    assert not list(Finding.objects.values("kind", "status", "seen", "believed"))
    assert said() == []


def test_two_looks_at_the_same_moment_count_as_one(site: Any, served: Any, settings: Any):
    settings.NEOCLOUD_GRACE_SECONDS = 45
    alter(node_of(served), maintenance=True)
    look(site, times=3)
    assert not findings.findings().exists()
    later(seconds=50)
    look(site)
    assert findings.findings().get().kind == "maintenance"


def test_a_look_asks_no_more_often_when_there_is_more(site: Any):
    look(site)
    with CountQueries() as few:
        look(site)
    for _number in range(6):
        world.another_node(site)
    look(site)
    with CountQueries() as many:
        look(site)
    assert many.count == few.count


class CountQueries:
    """How many statements ran."""

    def __enter__(self) -> "CountQueries":
        connection.force_debug_cursor = True
        self.before = len(connection.queries_log)
        return self

    def __exit__(self, *error: object) -> None:
        self.count = len(connection.queries_log) - self.before
        connection.force_debug_cursor = False


# ---------------------------------------------------------------------- mended by policy
def test_an_active_service_whose_server_is_off_is_switched_on(site: Any, served: Any):
    alter(node_of(served), power_state="power off")
    look(site, times=2)
    found = the_finding()
    assert (found.kind, found.fix, found.status) == ("power", "power_on", "fixing")
    assert (found.tenant, found.service) == (served.tenant, served.service)

    work()
    assert world.fake().nodes[found.node.infra_id].seen.power_state == "power on"
    assert the_finding().status == "fixing"  # until a look has seen it
    look(site)
    assert (the_finding().status, the_finding().closed_by) == ("fixed", "")
    assert said() == [
        "finding.opened",
        "finding.fix_asked",
        "finding.fix_done",
        "finding.fixed",
    ]
    assert Notice.objects.filter(kind="finding.opened").count() == 1


def test_a_lessee_left_behind_is_cleared(site: Any):
    node = free_node()
    alter(node, lessee="the last customer")
    look(site, times=2)
    work()
    look(site)
    assert (the_finding().kind, the_finding().status) == ("lessee", "fixed")
    assert world.fake().nodes[node.infra_id].seen.lessee == ""


def test_the_address_of_a_service_that_ended_is_released(acme: Any, site: Any, served: Any):
    end(acme, served)
    lease = AddressLease.objects.get()
    AddressLease.objects.update(released_at=None)
    later(hours=1)
    look(site, times=2)
    work()
    look(site)
    assert (the_finding().kind, the_finding().status) == ("orphan_address", "fixed")
    lease.refresh_from_db()
    assert lease.released_at


def test_our_own_claim_left_behind_is_deleted_and_no_other(acme: Any, site: Any, served: Any):
    made_by = Run.objects.get(service=served.service)
    end(acme, served)
    later(hours=1)
    node, fake = free_node(), world.fake()
    ours = ObservedClaim(served.service, f"neo-{made_by.tail}-claim-1", node.infra_id, "active")
    like_ours = ObservedClaim(uuid4(), "neo-0123456789ab-claim-1", node.infra_id, "active")
    foreign = ObservedClaim(uuid4(), "somebody", node.infra_id, "active")
    far = ObservedClaim(uuid4(), "somebody else", uuid4(), "active")
    fake.claims |= {one.id: one for one in (ours, like_ours, foreign, far)}
    look(site, times=2)
    work()
    look(site)

    assert set(fake.claims) == {like_ours.id, foreign.id, far.id}
    told = {one.subject: one for one in Finding.objects.all()}
    assert set(told) == {str(ours.id), str(like_ours.id), str(foreign.id)}
    assert told[str(ours.id)].status == "fixed"
    assert told[str(foreign.id)].fix == told[str(like_ours.id)].fix == "take_out"


def test_a_policy_may_leave_it_to_a_person(site: Any, served: Any):
    operator = an_operator(Role.PLATFORM_ADMIN)
    findings.set_fix_policy(site=site, kind="power", is_automatic=False, actor=operator)
    alter(node_of(served), power_state="power off")
    look(site, times=2)
    work()
    assert the_finding().status == "open"
    findings.fix_finding(finding_id=the_finding().pk, actor=operator)
    work()
    look(site)
    assert (the_finding().status, the_finding().closed_by) == ("fixed", str(operator))
    asked = AuditEntry.objects.get(action="finding.fix_asked")
    assert asked.actor_name == str(operator)


def test_a_fix_without_effect_is_opened_again_and_not_tried_for_ever(site: Any, served: Any):
    node = node_of(served)
    for _again in range(6):
        alter(node, power_state="power off")
        look(site, times=2)
        work()
        alter(node, power_state="power off")
        later(minutes=1)
        look(site)
    assert the_finding().status == "open"
    assert the_finding().fix_tries == 3
    assert "still so after the fix" in the_finding().detail


def test_a_fix_whose_ground_is_gone_is_refused(acme: Any, site: Any, served: Any):
    alter(node_of(served), power_state="power off")
    look(site, times=2)
    end(acme, served)
    work()
    found = the_finding()
    assert found.status == "open"
    assert "not in that state" in found.detail
    later(minutes=5)
    look(site)
    assert the_finding().status == "gone"


def test_a_fix_waits_for_a_site_that_is_busy(site: Any, served: Any):
    alter(node_of(served), power_state="power off")
    look(site, times=2)
    world.fake().fail("set_power", Transient("locked"), SiteUnreachable("nobody"))
    work(rounds=1)
    assert the_finding().detail == "locked"
    assert the_finding().next_try_at > clock.now()
    work()
    look(site)
    assert the_finding().status == "fixed"


# ---------------------------------------------------------------------- uncleaned
def used_behind_our_back(node: Node, *, cleans: bool) -> None:
    """Somebody deploys a node of our pool by hand and removes it."""
    fake = world.fake()
    found = fake.nodes[node.infra_id]
    found.cleans = cleans
    later(minutes=1)
    fake.reserve(node.infra_id, name="by hand", instance=uuid4())
    found.touched_at = clock.now()
    alter(node, provision_state="active")
    later(minutes=1)
    fake.undeploy(node.infra_id)
    fake.settle()
    fake.settle()
    found.cleans = True


def test_a_node_used_behind_our_back_and_not_cleaned_is_quarantined_at_once(site: Any):
    node = free_node()
    used_behind_our_back(node, cleans=False)
    look(site)

    node.refresh_from_db()
    assert node.status == "quarantined"
    assert Ticket.objects.get().node == node
    found = findings.findings().get()
    assert (found.kind, found.status, found.fix) == ("not_cleaned", "open", "clean_node")

    look(site, times=3)
    assert the_finding().status == "open"  # quarantine alone does not clean it
    operator = an_operator()
    findings.fix_finding(finding_id=found.pk, actor=operator)
    work()
    look(site)
    node.refresh_from_db()
    assert the_finding().status == "fixed"
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert Ticket.objects.get().closed_at


def test_a_node_used_behind_our_back_and_cleaned_has_a_newer_proof(site: Any):
    node = free_node()
    used_behind_our_back(node, cleans=True)
    look(site, times=2)
    node.refresh_from_db()
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert not list(Finding.objects.values("kind", "status", "seen", "believed"))
    calls = world.fake().calls
    calls.clear()
    look(site)
    assert ("cleaning_since", node.infra_id) not in calls


def test_a_cleaning_that_fails_leaves_the_node_in_quarantine(site: Any):
    node = free_node()
    used_behind_our_back(node, cleans=False)
    world.fake().nodes[node.infra_id].clean_error = "disk 3 does not answer"
    look(site)
    findings.fix_finding(finding_id=the_finding().pk, actor=an_operator())
    work()
    found = Finding.objects.get(kind="not_cleaned")
    assert found.status == "open"
    assert "disk 3" in found.detail
    node.refresh_from_db()
    assert node.status == "quarantined"


def test_a_server_removed_behind_our_back_is_not_sold_uncleaned(acme: Any, site: Any, served: Any):
    node, fake = node_of(served), world.fake()
    fake.nodes[node.infra_id].cleans = False
    fake.undeploy(node.infra_id)
    fake.settle()
    later(minutes=1)
    look(site, times=2)
    assert (the_finding().kind, the_finding().fix) == ("lost_server", "quarantine")
    end(acme, served)
    node.refresh_from_db()
    assert node.status == "quarantined"


# ---------------------------------------------------------------------- work items
@pytest.mark.parametrize(
    ("change", "kind", "fix"),
    [
        ({"maintenance": True}, "maintenance", "end_maintenance"),
        ({"maintenance": True, "fault": "power failure"}, "maintenance", "quarantine"),
        ({"instance_id": uuid4()}, "wrong_instance", "quarantine"),
        ({"provision_state": "error"}, "lost_server", "quarantine"),
    ],
)
def test_a_served_node_that_is_not_as_it_should_be(
    site: Any, served: Any, change: dict[str, Any], kind: str, fix: str
):
    alter(node_of(served), **change)
    look(site, times=2)
    found = Finding.objects.exclude(kind="orphan_claim").get()
    assert (found.kind, found.fix, found.status) == (kind, fix, "open")


@pytest.mark.parametrize(
    ("change", "kind", "fix"),
    [
        ({"maintenance": True}, "maintenance", "take_out"),
        ({"provision_state": "active", "instance_id": uuid4()}, "orphan_server", "take_out"),
        ({"provision_state": "clean failed"}, "stuck", "clean_node"),
        ({"provision_state": "manageable"}, "stuck", "clean_node"),
        ({"instance_id": uuid4()}, "orphan_claim", "take_out"),
    ],
)
def test_a_free_node_that_is_not_as_it_should_be(
    site: Any, change: dict[str, Any], kind: str, fix: str
):
    alter(free_node(), **change)
    look(site, times=2)
    assert (the_finding().kind, the_finding().fix) == (kind, fix)
    findings.fix_finding(finding_id=the_finding().pk, actor=an_operator())
    work()
    assert the_finding().detail
    assert "Error" not in the_finding().detail


def test_a_node_that_takes_too_long_is_told_of(site: Any):
    alter(free_node(), provision_state="cleaning")
    look(site, times=2)
    assert not findings.findings().exists()
    later(hours=9)
    look(site, times=2)
    assert the_finding().kind == "stuck"


def test_a_node_left_between_two_customers_is_settled(acme: Any, site: Any, served: Any):
    end(acme, served)
    node = node_of(served)
    Node.objects.filter(pk=node.pk).update(status="cleaning")
    later(hours=1)
    look(site, times=2)
    assert the_finding().fix == "settle_node"
    findings.fix_finding(finding_id=the_finding().pk, actor=an_operator())
    work()
    look(site)
    node.refresh_from_db()
    assert (node.status, the_finding().status) == ("available", "fixed")


def test_a_server_of_a_service_that_ended_is_removed_by_one_click(
    acme: Any, site: Any, served: Any
):
    node = node_of(served)
    end(acme, served)
    later(hours=1)
    alter(node, provision_state="active", instance_id=served.service)
    look(site, times=2)
    found = the_finding()
    assert (found.kind, found.fix, found.service) == (
        "orphan_server",
        "remove_server",
        served.service,
    )
    findings.fix_finding(finding_id=found.pk, actor=an_operator())
    work()
    look(site)
    node.refresh_from_db()
    assert (the_finding().status, node.status) == ("fixed", "available")
    assert world.fake().nodes[node.infra_id].seen.provision_state == "available"


def test_a_node_that_is_gone_and_one_that_is_unknown(site: Any):
    fake, node = world.fake(), free_node()
    gone = fake.nodes.pop(node.infra_id)
    stranger = ObservedNode(infra_id=uuid4(), name="new-1", resource_class="gpu.h200.8x")
    fake.add(stranger)
    look(site, times=2)
    assert {one.kind: one.fix for one in Finding.objects.all()} == {
        "node_gone": "",
        "node_unknown": "import_node",
    }
    with pytest.raises(NoFix):
        findings.fix_finding(
            finding_id=Finding.objects.get(kind="node_gone").pk, actor=an_operator()
        )
    fake.nodes[node.infra_id] = gone
    look(site)
    assert Finding.objects.get(kind="node_gone").status == "gone"


def test_what_is_accepted_stays_accepted_until_it_changes(site: Any):
    node = free_node()
    alter(node, maintenance=True)
    look(site, times=2)
    operator = an_operator()
    with pytest.raises(ReasonMissing):
        findings.accept_finding(finding_id=the_finding().pk, actor=operator, reason=" ")
    findings.accept_finding(finding_id=the_finding().pk, actor=operator, reason="fans replaced")
    look(site, times=3)
    assert the_finding().status == "accepted"
    with pytest.raises(WrongStatus):
        findings.fix_finding(finding_id=the_finding().pk, actor=operator)

    alter(node, fault="power failure")
    look(site)
    assert the_finding().status == "open"
    findings.accept_finding(finding_id=the_finding().pk, actor=operator, reason="known")
    alter(node, maintenance=False, fault="")
    look(site)
    assert (the_finding().status, bool(the_finding().closed_at)) == ("accepted", True)


def test_what_a_site_does_not_list_is_not_taken_for_gone(site: Any):
    claim = ObservedClaim(uuid4(), "somebody", free_node().infra_id, "active")
    world.fake().claims[claim.id] = claim
    look(site, times=2)
    world.fake().fail("list_claims", Transient("HTTP 500"))
    look(site)
    assert the_finding().status == "open"
    assert "HTTP 500" in SiteLook.objects.get().error


def test_a_silent_site_closes_nothing_and_stops_no_other(site: Any):
    alter(free_node(), maintenance=True)
    look(site, times=2)
    world.fake().fail("list_nodes", SiteUnreachable("connection refused"))
    SiteLook.objects.update(due_at=clock.now())
    assert reconciler.look(site.pk) is None
    assert the_finding().status == "open"
    told = SiteLook.objects.get()
    assert told.error == "connection refused"
    assert told.lease_until is None
    assert told.due_at > clock.now()


def test_a_site_is_compared_by_one_worker_at_a_time(site: Any):
    assert reconciler.due_sites() == [site.pk]
    SiteLook.objects.update(lease_until=clock.now() + timedelta(minutes=1))
    assert reconciler.due_sites() == []
    assert reconciler.look(site.pk) is None
    later(minutes=2)
    assert reconciler.due_sites() == [site.pk]


def test_a_worker_that_died_in_a_fix_is_followed_by_another(site: Any, served: Any):
    alter(node_of(served), power_state="power off")
    look(site, times=2)
    Finding.objects.update(lease_until=clock.now() + timedelta(minutes=3))
    assert reconciler.due_fixes() == []
    later(minutes=4)
    work()
    look(site)
    assert the_finding().status == "fixed"


def end(acme: Any, served: ServiceProjection) -> None:
    """The customer ends the service, and its run is over."""
    with tenant_context(acme):
        service = Service.objects.get(pk=served.service)
        orders.terminate_service(service_id=service.pk, actor=service.order.placed_by)
        world.until_gone(service)


def test_a_proof_of_another_cleaning_is_none(site: Any):
    record = CleaningRecord(None, None, (), "none", touched_at=clock.now())
    assert is_unclean(record)
    assert not is_unclean(replace(record, touched_at=None))
    assert inventory.last_lease(free_node()) == (False, None)


def test_a_port_and_a_volume_left_behind_are_deleted_by_one_click(
    acme: Any, site: Any, served: Any
):
    network, disks = FakeNetwork.of(world.SITE), FakeVolumes.of(world.SITE)
    run = Run.objects.get(service=served.service)
    end(acme, served)
    later(hours=1)
    tail = served.service.hex[-12:]
    network.ensure_port(name=f"neo-{tail}-port-1", node=uuid4(), address="10.20.0.9", vlan=None)
    disks.ensure_volume(name=f"neo-{run.tail}-disk-1", size_gb=100)
    disks.ensure_volume(name="neo-0123456789ab-disk-1", size_gb=1)  # no run of ours made it
    disks.ensure_volume(name="somebody", size_gb=1)
    look(site, times=2)
    fixes = {one.subject: one.fix for one in Finding.objects.all()}
    assert fixes == {
        f"neo-{tail}-port-1": "delete_port",
        f"neo-{run.tail}-disk-1": "delete_volume",
        "neo-0123456789ab-disk-1": "",
    }
    for found in Finding.objects.exclude(fix=""):
        findings.fix_finding(finding_id=found.pk, actor=an_operator())
    work()
    look(site)
    assert not list(network.ports())
    assert {one.name for one in disks.volumes()} == {"neo-0123456789ab-disk-1", "somebody"}
    assert Finding.objects.filter(status="fixed").count() == 2
