"""What follows a failure is what the policy of the site and the offering says."""

from datetime import timedelta

import pytest

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import Invalid, Refused, SiteUnreachable, Transient, Unknown
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.orders.states import ServiceState
from apps.provisioning import selectors, services
from apps.provisioning.errors import DefaultStays
from apps.provisioning.models import FailurePolicy, Run, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
WHY = "agreed in the weekly"


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


def operator():
    return world.builders.a_person(role="operator")


def decide(site=None, sku="", **values):
    with platform_context():
        return services.set_policy(site=site, sku=sku, actor=operator(), reason=WHY, **values)


def run_of(service):
    return Run.objects.get(service=service.pk)


def test_the_narrowest_policy_applies_and_says_where_it_comes_from(site):
    decide(hold_hours=12)
    decide(site=site, hold_hours=8)
    decide(sku="bm.h200.8x", hold_hours=4)

    narrow = selectors.effective_policy(site=site.pk, sku="bm.h200.8x")
    wide = selectors.effective_policy(site=site.pk, sku="another")
    default = selectors.effective_policy(site=None, sku="")

    assert (narrow.policy.hold_hours, narrow.source.sku) == (4, "bm.h200.8x")
    assert (wide.policy.hold_hours, wide.source.site) == (8, site)
    assert default.policy.hold_hours == 12


def test_what_a_new_policy_does_not_say_stays_as_it_was_there(site):
    decide(undo_minutes=90)

    policy = decide(site=site, hold_hours=2)

    assert (policy.hold_hours, policy.undo_minutes) == (2, 90)


def test_a_policy_is_audited_with_what_changed(site):
    decide(hold_hours=12)
    decide(hold_hours=6)

    entry = AuditEntry.objects.filter(action="failure_policy.set").latest("id")

    assert (entry.before["hold_hours"], entry.after["hold_hours"]) == (12, 6)
    assert entry.reason == WHY


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"on_refused": "queue"}, "on_refused"),
        ({"on_node_fault": "as_ordered"}, "on_node_fault"),
        ({"on_no_capacity": "replace"}, "on_no_capacity"),
        ({"after_last_try": "nonsense"}, "after_last_try"),
        ({"hold_hours": 0}, "hold_hours"),
        ({"max_replacements": 0, "on_node_fault": "replace"}, "max_replacements"),
        ({"first_wait_seconds": 60, "longest_wait_seconds": 30}, "longest_wait_seconds"),
    ],
)
def test_what_makes_no_sense_is_refused_and_nothing_changes(site, values, field):
    with pytest.raises(Invalid) as refusal:
        decide(site=site, **values)

    assert field in {error.field for error in refusal.value.errors}
    assert not FailurePolicy.objects.filter(site=site).exists()


def test_the_default_is_never_removed_and_an_exception_is(site):
    default, exception = decide(hold_hours=12), decide(site=site, hold_hours=1)
    with platform_context():
        with pytest.raises(DefaultStays):
            services.remove_policy(policy_id=default.pk, actor=operator(), reason=WHY)
        services.remove_policy(policy_id=exception.pk, actor=operator(), reason=WHY)

    assert selectors.effective_policy(site=site.pk, sku="").policy.hold_hours == 12


def test_a_refusal_is_undone_at_once_where_the_policy_says_so(site, acme):
    decide(site=site, on_refused="undo")
    world.fake().fail("deploy", Refused("no such image"))

    failed = world.until_gone(world.the_service(world.an_accepted_order()))

    assert failed.state == ServiceState.FAILED
    assert "no such image" in run_of(failed).reason


def test_an_unknown_answer_takes_another_node_where_the_policy_says_so(site, acme):
    decide(on_unknown="replace")
    world.fake().fail("deploy", Unknown("a teapot"))
    order = world.an_accepted_order()
    first = world.the_service(order).node_id

    ready = world.until_ready(order)

    assert ready.node_id != first
    assert Node.objects.get(pk=first).status == "quarantined"


def test_a_node_fault_is_held_where_the_policy_says_so_and_its_node_stays(site, acme):
    decide(on_node_fault="hold")
    order = world.an_accepted_order()
    node = Node.objects.get(pk=world.the_service(order).node_id)
    world.fake().nodes[node.infra_id].deploy_error = "PXE timed out"
    for _round in range(5):
        world.step()

    assert run_of(world.the_service(order)).status == "held"
    assert Node.objects.get(pk=node.pk).status == "allocated"


def test_the_policy_says_how_many_other_nodes_are_tried(platform, acme):
    with platform_context():
        world.a_fake_site(nodes=3)
    decide(max_replacements=1)
    for node in world.fake().nodes.values():
        node.deploy_error = "PXE timed out"

    failed = world.until_gone(world.the_service(world.an_accepted_order()))

    assert failed.state == ServiceState.FAILED
    assert run_of(failed).replacements == 1
    assert Node.objects.filter(status="quarantined").count() == 2


def test_after_the_last_node_a_person_is_asked_where_the_policy_says_so(platform, acme):
    with platform_context():
        world.a_fake_site(nodes=3)
    decide(max_replacements=1, after_last_try="hold")
    for node in world.fake().nodes.values():
        node.deploy_error = "PXE timed out"
    order = world.an_accepted_order()
    for _round in range(12):
        world.step()

    run = run_of(world.the_service(order))

    assert run.status == "held"
    assert "the last of 2 nodes" in run.reason


def test_the_policy_says_how_long_a_run_is_held(site, acme):
    decide(hold_hours=3)
    world.fake().fail("deploy", Refused("no such image"))
    order = world.an_accepted_order()
    world.step()

    run = run_of(world.the_service(order))

    assert run.next_try_at - run.held_at == timedelta(hours=3)


def ago(run, minutes):
    """Let the run have begun to stand still that many minutes ago."""
    Run.objects.filter(pk=run.pk).update(stopped_at=clock.now() - timedelta(minutes=minutes))


def test_a_try_does_not_run_out_while_it_is_held(site, acme):
    world.fake().fail("deploy", Refused("no such image"))
    order = world.an_accepted_order()
    world.step()
    run = run_of(world.the_service(order))
    ago(run, 30)
    with platform_context():
        services.retry_step(run_id=run.pk, actor=operator(), reason="image uploaded")

    world.step()

    moved = run_of(world.the_service(order)).try_deadline - run.try_deadline
    assert timedelta(minutes=29) < moved < timedelta(minutes=31)


def test_neither_a_try_nor_its_step_runs_out_while_the_site_is_silent(site, acme):
    order = world.an_accepted_order()
    world.step(settle=False)
    before = run_of(world.the_service(order))
    step = RunStep.objects.get(run=before, name="deploy")
    world.fake().fail("list_nodes", SiteUnreachable("no route"))
    world.step(settle=False)
    ago(before, 30)

    world.step(settle=False)

    after = run_of(world.the_service(order))
    assert after.stopped_at is None
    assert after.try_deadline - before.try_deadline > timedelta(minutes=29)
    deadline = RunStep.objects.get(pk=step.pk).deadline
    assert deadline - step.deadline > timedelta(minutes=29)


def test_a_paused_site_stops_its_runs_and_their_deadlines(site, acme):
    order = world.an_accepted_order()
    world.step(settle=False)
    before = run_of(world.the_service(order))
    with platform_context():
        inventory.pause_site(site=site, actor=operator(), reason="power work")
    world.step(settle=False)
    assert world.the_service(order).condition == "delayed"
    ago(before, 30)
    with platform_context():
        inventory.resume_site(site=site, actor=operator(), reason="power is back")

    ready = world.until_ready(order)

    after = run_of(ready)
    assert after.try_deadline - before.try_deadline > timedelta(minutes=29)


def test_after_its_last_try_a_run_does_what_the_policy_says(site, acme):
    decide(after_last_try="hold")
    world.fake().fail("deploy", *[Transient("locked")] * 3)
    order = world.an_accepted_order()
    world.step()
    run = run_of(world.the_service(order))
    Run.objects.filter(pk=run.pk).update(try_deadline=clock.now() - timedelta(seconds=1))
    world.step()

    run = run_of(world.the_service(order))
    assert run.status == "held"
    with platform_context():
        services.retry_step(run_id=run.pk, actor=operator(), reason="the lock is gone")

    assert world.until_ready(order).state == ServiceState.ACTIVE
