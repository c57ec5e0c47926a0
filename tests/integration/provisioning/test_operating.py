"""A running service: power, reinstallation, rescue; one work at a time, each failure told."""

from dataclasses import replace

import pytest

from apps.accounts.models import User
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.core.errors import NodeFault, Refused
from apps.core.models import Secret
from apps.inventory.models import Allocation, Node, Ticket
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.errors import BadTag, TooManyTags, WrongName
from apps.orders.models import Fact, Service
from apps.orders.states import ServiceState
from apps.provisioning import services as provisioning
from apps.provisioning.errors import (
    BadPassword,
    NoConsole,
    NotNow,
    NotWhileInRescue,
    WorkUnderWay,
)
from apps.provisioning.models import Run, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


@pytest.fixture
def service(site, acme):
    return world.until_ready(world.an_accepted_order())


def node_of(service):
    service.refresh_from_db()
    return world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id]


def ask(service, verb, **choices):
    return provisioning.operate(
        service_id=service.pk, verb=verb, actor=User.objects.first(), **choices
    )


def until_over(run, *, rounds=20):
    """Move the world on until the work has ended; a server that was installed calls home."""
    service = Service.objects.get(pk=run.service)
    for _round in range(rounds):
        world.step()
        run.refresh_from_db()
        if run.ended_at is not None:
            service.refresh_from_db()
            return service
        if run.steps.filter(name="prove_ready", status="waiting").exists():
            world.call_home(service, run=run)
    raise AssertionError(f"{run.blueprint} at {run.position}: {run.status} {run.reason}")


def states_of(service):
    return list(
        Fact.objects.filter(service=service).order_by("recorded_at").values_list("state", flat=True)
    )


# ---------------------------------------------------------------------- power
def test_a_server_that_is_off_is_stopped_and_on_again_is_active(service):
    off = until_over(ask(service, "power_off"))

    assert (off.state, off.condition) == (ServiceState.STOPPED, "")
    assert node_of(service).seen.power_state == "power off"

    on = until_over(ask(off, "power_on"))

    assert on.state == ServiceState.ACTIVE
    assert node_of(service).seen.power_state == "power on"
    assert states_of(service) == ["provisioning", "active", "stopped", "active"]


def test_it_is_stopped_only_once_it_is_really_off(service):
    node_of(service).power_is_stuck = True
    run = ask(service, "power_off")
    for _round in range(3):
        world.step()
    service.refresh_from_db()

    assert (service.state, service.condition) == (ServiceState.ACTIVE, "powering")
    with platform_context():
        RunStep.objects.filter(run=run, name="switch_off").update(deadline=clock.now())

    after = until_over(run)

    assert run.status == "undone"
    assert (after.state, after.condition) == (ServiceState.ACTIVE, "")
    assert states_of(service) == ["provisioning", "active"]
    assert Node.objects.get(pk=service.node_id).status == "allocated"
    assert Allocation.objects.filter(service=service.pk, released_at=None).exists()
    assert Notice.objects.filter(kind="service.operation_failed").count() == 1
    assert Ticket.objects.filter(category="operation", closed_at=None).count() == 1
    assert AuditEntry.objects.filter(action="service.power_off_failed").exists()


@pytest.mark.parametrize("verb", ["reboot", "power_cycle"])
def test_a_reboot_ends_with_the_power_on_and_is_charged(service, verb):
    after = until_over(ask(service, verb))

    asked = [call for call, _node in world.fake().calls if call == "set_power"]
    assert after.state == ServiceState.ACTIVE
    assert node_of(service).seen.power_state == "power on"
    assert len(asked) == 3  # on when it was made, off, on
    assert states_of(service) == ["provisioning", "active"]


def test_what_the_site_refuses_is_taken_back_and_held_for_nobody(service):
    world.fake().fail("set_power", Refused("no power interface"))

    run = ask(service, "power_off")
    after = until_over(run)

    assert run.status == "undone"
    assert "no power interface" in run.reason
    assert after.state == ServiceState.ACTIVE


# ---------------------------------------------------------------------- refusals
def test_one_work_at_a_time(service):
    ask(service, "reboot")

    with pytest.raises(WorkUnderWay) as refusal:
        ask(service, "power_off")

    assert "Reboot" in refusal.value.detail
    assert Run.objects.filter(service=service.pk, ended_at=None).count() == 1


def test_a_verb_that_does_not_fit_the_state_is_refused_and_changes_nothing(service):
    with pytest.raises(NotNow) as refusal:
        ask(service, "power_on")

    assert "Active" in refusal.value.detail
    assert Run.objects.filter(service=service.pk).count() == 1


def test_the_page_offers_what_is_possible(service):
    assert provisioning.possible_verbs(service, is_idle=True) == [
        "power_off", "reboot", "power_cycle", "reinstall", "rescue",
    ]  # fmt: skip
    assert provisioning.possible_verbs(service, is_idle=False) == []


def test_every_act_is_in_the_audit_trail_with_who_and_why(service):
    ask(service, "reboot", reason="hangs")

    entry = AuditEntry.objects.get(action="service.reboot")
    assert (entry.actor_id, entry.reason) == (User.objects.first().pk, "hangs")


# ---------------------------------------------------------------------- terminated meanwhile
def test_a_service_ended_while_it_is_worked_on_is_removed_afterwards(service):
    ask(service, "reboot")
    world.step(settle=False)

    orders.terminate_service(service_id=service.pk, actor=User.objects.first())
    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "available"
    assert not Allocation.objects.filter(released_at=None).exists()


# ---------------------------------------------------------------------- reinstallation
def test_a_reinstalled_server_is_the_same_service_proven_anew(service):
    address, node_id = service.address, service.node_id
    run = ask(service, "reinstall")
    world.step()
    service.refresh_from_db()
    assert (service.state, service.condition) == (ServiceState.ACTIVE, "reinstalling")

    after = until_over(run)

    assert run.status == "succeeded"
    assert (after.state, after.condition) == (ServiceState.ACTIVE, "")
    assert (after.address, after.node_id) == (address, node_id)
    assert node_of(service).deploys == 2
    assert states_of(service) == ["provisioning", "active"]
    assert len(node_of(service).cleanings) == 1
    assert Run.objects.get(pk=after.run_id) == run


def test_the_next_installation_has_the_image_and_keys_of_the_last(service):
    other = world.KEY.replace("JdD7", "AAA7")
    until_over(ask(service, "reinstall", ssh_public_keys=[other]))

    run = ask(service, "reinstall")

    assert [key.split()[1] for key in run.wanted["ssh_keys"]] == [other.split()[1]]


def test_a_reinstallation_that_fails_takes_another_host(service):
    old = service.node_id
    node_of(service).clean_error = "bios: step failed"

    run = ask(service, "reinstall")
    until_over(run)
    assert run.status == "undone"
    world.step()
    service.refresh_from_db()
    assert service.state == ServiceState.SUSPENDED
    after = until_over(Run.objects.filter(service=service.pk).latest("created_at"))

    assert after.state == ServiceState.ACTIVE
    assert after.node_id != old
    assert Node.objects.get(pk=old).status == "quarantined"
    assert states_of(service) == ["provisioning", "active", "suspended", "active"]


# ---------------------------------------------------------------------- rescue
PASSWORD = "correct horse battery"


def test_the_rescue_system_runs_until_it_is_left(service):
    in_rescue = until_over(ask(service, "rescue", password=PASSWORD))

    assert (in_rescue.state, in_rescue.condition) == (ServiceState.ACTIVE, "rescue")
    assert node_of(service).seen.provision_state == "rescue"
    assert not Secret.objects.filter(name__startswith="rescue").exists()
    with pytest.raises(NotWhileInRescue):
        ask(in_rescue, "reboot")
    world.step()
    assert Service.objects.get(pk=service.pk).condition == "rescue"

    out = until_over(ask(in_rescue, "unrescue"))

    assert out.condition == ""
    assert node_of(service).seen.provision_state == "active"


def test_the_password_is_kept_sealed_until_the_site_has_it_and_shows_nowhere(service):
    run = ask(service, "rescue", password=PASSWORD)

    secret = Secret.objects.get(name=f"rescue {run.pk}")
    assert PASSWORD.encode() not in bytes(secret.sealed)
    assert PASSWORD not in str(run.wanted)
    assert PASSWORD not in str(list(AuditEntry.objects.values()))


@pytest.mark.parametrize("password", ["short", "x" * 73, "with\x00zero-byte"])
def test_a_password_that_cannot_be_typed_is_refused(service, password):
    with pytest.raises(BadPassword):
        ask(service, "rescue", password=password)
    assert Run.objects.filter(service=service.pk).count() == 1


# ---------------------------------------------------------------------- console, name, tags
def test_a_console_is_the_sites_own_and_each_look_is_recorded(service, site):
    node_of(service).console_url = "http://127.0.0.1:9/console"

    found = provisioning.open_console(service_id=service.pk, actor=User.objects.first())

    assert found.url == "http://127.0.0.1:9/console"
    assert AuditEntry.objects.filter(action="service.console_opened").count() == 1


def test_a_sites_template_names_the_node(service, site):
    with platform_context():
        type(site).objects.update(console_url="https://consoles.test/{node}")

    found = provisioning.open_console(service_id=service.pk, actor=User.objects.first())

    assert found.url == f"https://consoles.test/{Service.objects.get(pk=service.pk).node_name}"


def test_without_a_console_it_is_said(service):
    with pytest.raises(NoConsole):
        provisioning.open_console(service_id=service.pk, actor=User.objects.first())


def test_a_service_is_renamed_and_tagged(service):
    person = User.objects.first()
    orders.rename_service(service_id=service.pk, name="trainer-2", actor=person)
    orders.tag_service(service_id=service.pk, tags={"team": "vision", "env": ""}, actor=person)

    service.refresh_from_db()
    assert (service.name, service.tags) == ("trainer-2", {"env": "", "team": "vision"})
    assert AuditEntry.objects.filter(action__in=["service.renamed", "service.tagged"]).count() == 2
    with pytest.raises(WrongName):
        orders.rename_service(service_id=service.pk, name="-bad-", actor=person)
    for tags in ({"Bad Name": "x"}, {"a": "two\nlines"}, {"a": "x" * 81}, {"": "x"}):
        with pytest.raises(BadTag):
            orders.tag_service(service_id=service.pk, tags=tags, actor=person)
    with pytest.raises(TooManyTags):
        orders.tag_service(
            service_id=service.pk, tags={f"t{n}": "" for n in range(21)}, actor=person
        )


# ---------------------------------------------------------------------- the site is asked as often
def test_a_node_fault_under_a_reboot_does_not_take_the_server_away(service):
    world.fake().fail("set_power", NodeFault("bmc: no answer"))

    run = ask(service, "reboot")
    after = until_over(run)

    assert run.status == "undone"
    assert Node.objects.get(pk=service.node_id).status == "allocated"
    assert after.state == ServiceState.ACTIVE


def test_power_that_went_off_shows_as_degraded_and_back_on_as_well(service):
    node = node_of(service)
    node.seen = replace(node.seen, power_state="power off")
    world.step()
    service.refresh_from_db()
    assert service.condition == "degraded"

    until_over(ask(service, "power_cycle"))
    world.step()

    service.refresh_from_db()
    assert (service.condition, service.degraded_at) == ("", None)
