"""The bare metal blueprint: what is agreed with the site is read back, what disagrees is named."""

from dataclasses import replace
from uuid import uuid4

import pytest

from apps.catalog.models import Image
from apps.inventory.models import Node
from apps.orders import services as orders
from apps.orders.states import ServiceState
from apps.provisioning import evidence_words as words
from apps.provisioning.adapters.fake_parts import FakeNetwork
from apps.provisioning.models import FailurePolicy, Run, RunEvent, RunStep
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2)


def node_of(service):
    return world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id]


def run_of(service):
    return Run.objects.filter(service=service.pk).latest("created_at")


def until_held(order):
    for _round in range(8):
        world.step()
        run = run_of(world.the_service(order))
        if run.status == "held":
            return run
    raise AssertionError(run.status)


def a_removal(service):
    orders.terminate_service(service_id=service.pk, actor=world.User.objects.first())


def test_a_site_whose_allocation_names_another_node_is_not_believed(site, acme, monkeypatch):
    elsewhere = uuid4()
    monkeypatch.setattr(world.fake(), "holder_of", lambda _instance: elsewhere)

    run = until_held(world.an_accepted_order())

    assert str(elsewhere) in run.reason
    assert "they disagree" in run.reason


def test_an_image_nothing_vouches_for_is_not_deployed(site, acme):
    with platform_context():
        Image.objects.update(checksum="")

    run = until_held(world.an_accepted_order())

    assert "checksum" in run.reason
    assert not any(node.deploys for node in world.fake().nodes.values())


def test_another_image_than_ordered_is_a_persons_matter(site, acme):
    order = world.an_accepted_order()
    for _round in range(3):
        world.step(settle=False)
    node = node_of(world.the_service(order))
    node.deployment = replace(node.deployment, image_checksum="f" * 64)
    world.fake().settle()

    run = until_held(order)

    assert "f" * 64 in run.reason
    evidence = RunStep.objects.get(run=run, name="deploy").evidence
    assert [one["ok"] for one in evidence if one["item"] == words.CHECKSUM] == [False]


def test_the_config_drive_makes_the_login_with_its_keys_and_no_password(site, acme):
    service = world.until_ready(world.an_accepted_order())

    drive = node_of(service).deployment.config_drive

    config = drive["vendor_data"]["cloud-init"]
    assert config.startswith("#cloud-config\n")
    assert world.KEY in config
    assert '"lock_passwd": true' in config
    assert node_of(service).deployment.project_id == str(run_of(service).tenant)


def test_the_root_disk_is_the_one_the_nodes_record_names(site, acme):
    with platform_context():
        Node.objects.update(hardware={"root_device": {"serial": "S3"}})

    service = world.until_ready(world.an_accepted_order())

    assert node_of(service).deployment.root_device == {"serial": "S3"}
    evidence = RunStep.objects.get(run__service=service.pk, name="deploy").evidence
    assert {one["item"]: one["ok"] for one in evidence}[words.ROOT_DEVICE] is True


def test_what_the_server_tells_of_its_make_is_kept_with_the_node(site, acme):
    service = world.until_ready(world.an_accepted_order())

    hardware = Node.objects.get(pk=service.node_id).hardware

    assert hardware == {
        "server": "Lab H200",
        "bios": "2.7.1",
        "gpu": "NVIDIA H200",
        "driver": "580.95",
        "cuda": "13.0",
    }


def test_the_port_is_read_back_and_gone_with_the_server(site, acme):
    service = world.until_ready(world.an_accepted_order())
    (port,) = FakeNetwork.of(world.SITE).ports()
    assert port.address.startswith(service.address)

    a_removal(service)
    world.until_gone(service)

    assert not list(FakeNetwork.of(world.SITE).ports())


def test_a_former_lessee_is_taken_off_before_the_next_customer(site, acme):
    for node in world.fake().nodes.values():
        node.seen = replace(node.seen, lessee="somebody-before")

    service = world.until_ready(world.an_accepted_order())

    assert node_of(service).seen.lessee == str(run_of(service).tenant)


def test_nothing_of_a_customer_is_left_and_it_is_read_back(site, acme):
    service = world.until_ready(world.an_accepted_order())
    node_of(service).seen = replace(node_of(service).seen, lessee="set-by-hand")

    a_removal(service)
    world.until_gone(service)

    assert node_of(service).seen.lessee == ""
    step = RunStep.objects.get(run=run_of(service), name="verify")
    assert all(one["ok"] for one in step.evidence)
    assert {one["item"] for one in step.evidence} >= {words.INSTANCE, words.LESSEE}


def test_a_node_in_maintenance_after_its_removal_is_not_sold(site, acme):
    service = world.until_ready(world.an_accepted_order())
    node_of(service).seen = replace(node_of(service).seen, maintenance=True)

    a_removal(service)
    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    node = Node.objects.get(pk=service.node_id)
    assert node.status == "quarantined"
    assert "maintenance" in node.status_reason


def test_a_cleaning_whose_conductor_died_is_begun_again(site, acme):
    service = world.until_ready(world.an_accepted_order())
    a_removal(service)
    while node_of(service).seen.provision_state != "cleaning":
        world.step()
    world.fake().crash()

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    node = Node.objects.get(pk=service.node_id)
    assert node.status == "available"
    assert node.clean_proof["result"] == "success"
    assert RunEvent.objects.filter(run=run_of(service), kind="cleaned again").count() == 1


def test_cleanings_are_begun_again_only_as_often_as_the_policy_says(site, acme):
    FailurePolicy.objects.create(recleanings=1)
    service = world.until_ready(world.an_accepted_order())
    a_removal(service)
    for _round in range(20):
        world.step(settle=False)
        if node_of(service).seen.provision_state == "cleaning":
            world.fake().crash()
        else:
            world.fake().settle()
        service.refresh_from_db()
        if service.state == ServiceState.TERMINATED:
            break

    assert service.state == ServiceState.TERMINATED
    assert Node.objects.get(pk=service.node_id).status == "quarantined"
    assert RunEvent.objects.filter(run=run_of(service), kind="cleaned again").count() == 1


def test_a_failed_cleaning_takes_the_node_out_of_the_pool(site, acme):
    """Case S07: the customer is free, the node is on no offer, its error is kept."""
    service = world.until_ready(world.an_accepted_order())
    node_of(service).clean_error = "bios: step failed"
    a_removal(service)

    gone = world.until_gone(service)

    assert gone.state == ServiceState.TERMINATED
    node = Node.objects.get(pk=service.node_id)
    assert node.status == "quarantined"
    assert "bios: step failed" in node.status_reason
    world.fake().make_manageable(node.infra_id)
    world.step()
    node.refresh_from_db()
    assert (node.status, node.seen_provision_state) == ("quarantined", "manageable")
