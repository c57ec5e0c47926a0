"""What operators do to a run by hand: in their name, with a reason, and never what is unsafe."""

from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction

from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import Refused
from apps.inventory.models import Allocation, Node
from apps.orders import services as orders
from apps.orders.models import Fact
from apps.orders.states import ServiceState
from apps.provisioning import errors, selectors, services
from apps.provisioning.models import Override, Run, RunEvent, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
WHY = "seen at the console"
SEEN = "ran nvidia-smi and the SSH check by hand over the BMC: 8 GPUs, right keys"


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


@pytest.fixture
def kim(platform):
    with platform_context():
        return world.builders.a_person(role="operator", name="Kim")


@pytest.fixture
def lee(platform):
    with platform_context():
        return world.builders.a_person(role="operator", name="Lee")


def act(verb, run, actor, **more):
    with platform_context():
        if "evidence" not in more:
            more["reason"] = WHY
        return getattr(services, verb)(run_id=run.pk, actor=actor, **more)


def run_of(order):
    return Run.objects.filter(order=order.pk).latest("created_at")


def held_at_deploy():
    world.fake().fail("deploy", Refused("no such image"))
    order = world.an_accepted_order()
    world.step()
    assert run_of(order).status == "held"
    return order


def waiting_for_its_call():
    order = world.an_accepted_order()
    for _round in range(6):
        world.step()
    return order


def removal():
    service = world.until_ready(world.an_accepted_order())
    world.fake().fail("undeploy", Refused("policy says no"))
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())
    world.step()
    return service, run_of(service.order)


# ---------------------------------------------------------------------- skip
def test_a_step_is_skipped_with_a_reason_and_the_run_goes_on_behind_it(site, acme, kim):
    order = world.an_accepted_order()
    world.fake().fail("validate", Refused("no IPMI"))
    world.step()
    act("skip_step", run_of(order), kim)

    ready = world.until_ready(order)

    step = RunStep.objects.get(run__service=ready.pk, name="validate_node")
    assert (step.status, step.skip_reason) == ("skipped", WHY)
    event = RunEvent.objects.get(run=step.run, kind="skipped")
    assert (event.actor, event.detail) == (str(kim), WHY)
    with platform_context():
        assert AuditEntry.objects.get(action="run.step_skipped").reason == WHY


def test_the_last_step_of_a_removal_can_be_skipped_and_ends_it(site, acme, kim):
    service = world.until_ready(world.an_accepted_order())
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())
    world.fake().fail("set_power", *[Refused("no IPMI")] * 9)
    for _round in range(8):
        world.step()
    run = run_of(service.order)
    assert (run.status, run.position) == ("held", 2)
    act("skip_step", run, kim)

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "available"


def test_readiness_is_never_skipped(site, acme, kim):
    order = waiting_for_its_call()
    with pytest.raises(errors.NeverSkipped, match="Two operators"):
        act("skip_step", run_of(order), kim)

    assert world.the_service(order).state == ServiceState.PROVISIONING


@pytest.mark.parametrize("position", [0, 1])
def test_revoking_and_cleaning_are_never_skipped(site, acme, kim, position):
    _service, run = removal()
    Run.objects.filter(pk=run.pk).update(position=position)
    with pytest.raises(errors.NeverSkipped):
        act("skip_step", run, kim)


def test_no_blueprint_lets_the_four_be_skipped():
    from apps.provisioning.blueprints import TABLE

    never = {"prove_ready", "hand_over", "revoke", "remove"}
    for blueprint in TABLE:
        for step in blueprint.steps:
            assert step.name not in never or not step.skippable, step.name


# ---------------------------------------------------------------------- at work
def test_what_a_worker_works_at_is_neither_retried_nor_skipped(site, acme, kim):
    order = world.an_accepted_order()
    world.deliver()
    with platform_context():
        world.claims.claim(run_of(order).pk)
    for verb in ("retry_step", "skip_step"):
        with pytest.raises(errors.BeingWorkedAt):
            act(verb, run_of(order), kim)


def test_what_a_worker_brings_back_after_a_person_took_over_is_not_stored(site, acme, kim):
    order = world.an_accepted_order()
    world.deliver()
    with platform_context():
        claimed = world.claims.claim(run_of(order).pk)
        act("take_over", claimed, kim)
        with pytest.raises(world.claims.LostClaim):
            world.claims.locked(claimed)
        services.retry_step(run_id=claimed.pk, actor=kim, reason=WHY)
        with pytest.raises(world.claims.LostClaim):
            world.claims.locked(claimed)
        assert world.claims.claim(claimed.pk) is None  # the call of the first may be under way


# ---------------------------------------------------------------------- take over
def test_a_run_taken_over_is_held_without_a_timer_under_its_owner(site, acme, kim, lee):
    order = held_at_deploy()
    act("take_over", run_of(order), kim)

    run = run_of(order)
    assert (run.status, run.owner, run.next_try_at) == ("held", "Kim", None)
    with pytest.raises(errors.TakenOver, match="Kim"):
        act("retry_step", run, lee)
    act("take_over", run, lee)
    act("retry_step", run, lee)

    assert world.until_ready(order).state == ServiceState.ACTIVE
    assert Run.objects.get(pk=run.pk).owner == ""
    acts = RunEvent.objects.filter(run=run, kind="taken over").order_by("id")
    assert [event.actor for event in acts] == ["Kim", "Lee"]


def test_a_run_taken_over_while_undoing_goes_on_undoing_when_handed_back(site, acme, kim):
    order = waiting_for_its_call()
    orders.cancel_order(order_id=order.pk, actor=world.User.objects.first(), reason="no")
    world.deliver()
    run = run_of(order)
    assert run.status == "undoing"
    act("take_over", run, kim)
    world.step()
    assert run_of(order).status == "held"
    act("retry_step", run, kim)

    assert world.until_gone(world.the_service(order)).state == ServiceState.TERMINATED


# ---------------------------------------------------------------------- replace
def test_a_node_that_is_not_to_blame_is_cleaned_and_sold_again(site, acme, kim):
    order = held_at_deploy()
    first = world.the_service(order).node_id
    act("replace_node", run_of(order), kim, blames_node=False)

    ready = world.until_ready(order)

    assert ready.node_id != first
    assert Node.objects.get(pk=first).status == "available"
    assert Allocation.objects.get(service=ready.pk, released_at=None).node_id == ready.node_id


def test_a_used_node_that_is_not_to_blame_is_sold_again_after_its_cleaning(site, acme, kim):
    order = waiting_for_its_call()
    first = world.the_service(order).node_id
    act("replace_node", run_of(order), kim, blames_node=False)

    ready = world.until_ready(order)

    assert ready.node_id != first
    node = Node.objects.get(pk=first)
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"


def test_a_node_that_is_to_blame_is_quarantined_with_the_reason(site, acme, kim):
    order = held_at_deploy()
    first = world.the_service(order).node_id
    act("replace_node", run_of(order), kim, blames_node=True)

    assert world.until_ready(order).node_id != first
    node = Node.objects.get(pk=first)
    assert (node.status, node.status_reason) == ("quarantined", WHY)


def test_no_node_is_replaced_while_a_removal_runs_nor_while_undoing(site, acme, kim):
    order = held_at_deploy()
    act("undo_run", run_of(order), kim)
    with pytest.raises(errors.AlreadyGoingBack):
        act("replace_node", run_of(order), kim, blames_node=False)
    world.until_gone(world.the_service(order))
    _service, run = removal()
    with pytest.raises(errors.NothingToReplace):
        act("replace_node", run, kim, blames_node=False)


def test_a_removal_is_never_undone_and_waits_for_a_person_without_end(site, acme, kim):
    service, run = removal()
    assert (run.status, run.next_try_at) == ("held", None)
    with pytest.raises(errors.RemovalStays):
        act("undo_run", run, kim)
    act("retry_step", run, kim)

    assert world.until_gone(service).state == ServiceState.TERMINATED


def test_a_run_that_has_ended_is_left_alone(site, acme, kim):
    order = world.an_accepted_order()
    world.until_ready(order)
    for verb, more in (
        ("retry_step", {}),
        ("skip_step", {}),
        ("take_over", {}),
        ("undo_run", {}),
        ("replace_node", {"blames_node": False}),
    ):
        with pytest.raises(errors.RunEnded):
            act(verb, run_of(order), kim, **more)


# ---------------------------------------------------------------------- overrides
def vouch(run, actor):
    return act("ask_override", run, actor, evidence=SEEN)


def decide(verb, override, actor):
    with platform_context():
        return getattr(services, verb)(override_id=override.pk, actor=actor, reason=WHY)


def test_two_operators_vouch_for_readiness_and_it_never_looks_measured(site, acme, kim, lee):
    order = waiting_for_its_call()
    run = run_of(order)
    act("take_over", run, kim)
    override = vouch(run, kim)
    assert world.the_service(order).state == ServiceState.PROVISIONING
    decide("confirm_override", override, lee)
    world.step()

    service = world.the_service(order)
    assert service.state == ServiceState.ACTIVE
    assert Fact.objects.get(service=service, state="active").start_at == service.ready_at
    (proof,) = selectors.evidence_of(service.pk)
    assert proof["ok"] is None
    assert (proof["claimed_by"][:3], proof["confirmed_by"][:3]) == ("Kim", "Lee")
    assert proof["seen"] == SEEN
    kinds = set(RunEvent.objects.filter(run=run).values_list("kind", flat=True))
    assert {"override asked", "override confirmed"} <= kinds
    with platform_context():
        entry = AuditEntry.objects.get(action="run.override_confirmed")
        assert entry.after["asked_by"].startswith("Kim")
        assert entry.after["decided_by"].startswith("Lee")


def test_nobody_confirms_their_own_word(site, acme, kim):
    order = waiting_for_its_call()
    act("take_over", run_of(order), kim)
    override = vouch(run_of(order), kim)
    with pytest.raises(errors.OverrideByTwo):
        decide("confirm_override", override, kim)
    with pytest.raises(IntegrityError), transaction.atomic():
        Override.objects.filter(pk=override.pk).update(decided_by_id=kim.pk)


def test_a_refused_override_changes_nothing_and_is_kept(site, acme, kim, lee):
    order = waiting_for_its_call()
    act("take_over", run_of(order), kim)
    override = vouch(run_of(order), kim)
    decide("refuse_override", override, lee)

    assert run_of(order).status == "held"
    with pytest.raises(errors.OverrideDecided):
        decide("confirm_override", override, lee)
    kept = Override.objects.get(pk=override.pk)
    assert (kept.is_confirmed, kept.reason) == (False, WHY)


def test_an_override_nobody_decides_ends_after_a_day(site, acme, kim, lee):
    order = waiting_for_its_call()
    act("take_over", run_of(order), kim)
    override = vouch(run_of(order), kim)
    with pytest.raises(errors.OverrideOpen):
        vouch(run_of(order), lee)
    Override.objects.filter(pk=override.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    with pytest.raises(errors.OverrideDecided):
        decide("confirm_override", override, lee)
    with platform_context():
        services.expire_overrides()

    assert Override.objects.get(pk=override.pk).decided_at is not None
    assert vouch(run_of(order), lee).decided_at is None


def test_neither_billing_nor_revoking_nor_a_moving_run_can_be_vouched_for(site, acme, kim):
    order = waiting_for_its_call()
    with pytest.raises(errors.NothingToVouchFor):
        vouch(run_of(order), kim)
    world.call_home(world.the_service(order))
    world.step()
    _service, run = removal()
    Run.objects.filter(pk=run.pk).update(position=0)
    with pytest.raises(errors.NothingToVouchFor):
        vouch(run, kim)


def test_words_without_evidence_are_refused(site, acme, kim):
    order = waiting_for_its_call()
    act("take_over", run_of(order), kim)
    with pytest.raises(errors.EvidenceMissing):
        act("ask_override", run_of(order), kim, evidence="trust me")


def test_two_operators_vouch_for_a_node_that_could_not_be_cleaned(site, acme, kim, lee):
    service = world.until_ready(world.an_accepted_order())
    infra = Node.objects.get(pk=service.node_id).infra_id
    world.fake().nodes[infra].clean_error = "disk 3 did not answer"
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())
    world.until_gone(service)
    run = run_of(service.order)
    override = vouch(run, kim)
    assert Node.objects.get(pk=service.node_id).status == "quarantined"
    decide("confirm_override", override, lee)

    node = Node.objects.get(pk=service.node_id)
    assert node.status == "available"
    assert node.clean_proof["result"] == "claimed"
    assert node.clean_proof["claimed_by"].startswith("Kim")
    assert node.clean_proof["confirmed_by"].startswith("Lee")


def test_what_two_vouch_for_never_outweighs_what_the_site_shows(site, acme, kim, lee):
    """The cleaning counts as done, the customer is free; the server still runs there."""
    service, run = removal()
    decide("confirm_override", vouch(run, kim), lee)

    assert world.until_gone(service).state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "quarantined"
