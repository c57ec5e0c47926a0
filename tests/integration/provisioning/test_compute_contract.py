"""What provisioning may lean on at a site: one suite for the fake and for real Ironic."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import timedelta
from threading import Thread
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from apps.core import clock
from apps.core.errors import NodeFault, OutsideError, Refused, SiteUnreachable, Transient
from apps.inventory.observations import ObservedNode
from apps.provisioning.adapters import openstack
from apps.provisioning.adapters.fake import FakeCompute
from apps.provisioning.adapters.openstack import calls
from apps.provisioning.ports import Compute, Deployment
from tests import databases

LONGEST = 60.0
_BODY = (
    b'{"versions": [{"id": "v1", "status": "CURRENT", "version": "1.99", "min_version": "1.1", '
    b'"links": [{"rel": "self", "href": "/v1/"}]}]}'
)
VERSIONS = b"\r\n".join(
    (
        b"HTTP/1.1 200 OK",
        b"Connection: close",
        b"Content-Type: application/json",
        b"Content-Length: %d" % len(_BODY),
        b"",
        _BODY,
    )
)


@dataclass
class Lab:
    """A site and how to let its time pass."""

    compute: Compute
    node: UUID
    other: UUID
    pass_time: Callable[[], None]

    def until(self, state: str) -> ObservedNode:
        """Let time pass until the node is in the state and nobody holds it."""
        deadline = time.monotonic() + LONGEST
        while time.monotonic() < deadline:
            seen = self.compute.get_node(self.node)
            if seen.provision_state == state and not seen.is_reserved:
                return seen
            self.pass_time()
        raise AssertionError(f"not {state}: {self.compute.get_node(self.node)}")

    def claim(self, node: UUID, instance: UUID) -> None:
        """Reserve, until it is decided."""
        deadline = time.monotonic() + LONGEST
        while not self.compute.reserve(node, name=f"neo-{instance.hex[:12]}", instance=instance):
            assert time.monotonic() < deadline
            self.pass_time()


def a_deployment() -> Deployment:
    """An image nobody fetches: the fake hardware of either site takes any."""
    return Deployment(
        image_source="http://127.0.0.1:1/image.img",
        image_checksum="0" * 64,
        display_name="contract",
        project_id="tenant-1",
        root_device={"serial": "S3"},
        config_drive={"meta_data": {"name": "contract"}, "user_data": "#!/bin/sh\n"},
    )


@pytest.fixture
def _fake(db: None) -> Lab:
    FakeCompute.forget_all()
    site = FakeCompute.of("contract")
    nodes = [uuid4(), uuid4()]
    for number, node in enumerate(nodes):
        site.add(ObservedNode(infra_id=node, name=f"n{number}", resource_class="gpu.h200.8x"))
    return Lab(site, *nodes, pass_time=site.settle)


def an_ironic(**given: str) -> openstack.Ironic:
    """The lab's Ironic."""
    asked = {
        "endpoint": os.environ["LAB_IRONIC_URL"],
        "username": os.environ["LAB_IRONIC_USER"],
        "password": os.environ["LAB_IRONIC_PASSWORD"],
    }
    return openstack.Ironic(**(asked | given))


@pytest.fixture
def _ironic(db: None) -> Iterator[Lab]:
    compute = an_ironic()
    of_class = {node.resource_class: node.infra_id for node in compute.list_nodes()}
    lab = Lab(  # of classes that no other test deploys
        compute, of_class["gpu.l40s.4x"], of_class["gpu.h200.8x.faulty"], pass_time=_look_again
    )
    with psycopg.connect(databases.superuser_url(), autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(7305)")  # the same two nodes for every test
        yield lab
        _tidy(lab)


def _tidy(lab: Lab) -> None:
    """As it was found, whatever the test left."""
    compute = lab.compute
    seen = compute.get_node(lab.node)
    if seen.provision_state in ("active", "deploy failed"):
        compute.undeploy(lab.node)
        lab.until("available")
    if seen.maintenance:
        compute.end_maintenance(lab.node)


def _look_again() -> None:
    time.sleep(0.2)  # real hardware needs real time


@pytest.fixture(params=["fake", pytest.param("ironic", marks=pytest.mark.ironic)])
def lab(request: pytest.FixtureRequest) -> Lab:
    """Either site."""
    return request.getfixturevalue(f"_{request.param}")


def test_a_server_lives_and_is_cleaned(lab: Lab) -> None:
    """One long story, because each stage of a real one takes seconds."""
    compute, node, mine = lab.compute, lab.node, uuid4()
    began = clock.now()

    lab.claim(node, mine)
    assert compute.get_node(node).instance_id == mine
    lab.claim(node, mine)  # again: it is ours already
    with pytest.raises((NodeFault, Transient)):
        lab.claim(node, uuid4())
    assert compute.get_node(node).instance_id == mine
    assert compute.holder_of(mine) == node
    assert compute.holder_of(uuid4()) is None
    compute.validate(node)

    compute.deploy(node, a_deployment())
    with pytest.raises((Transient, Refused)):
        compute.deploy(node, a_deployment())
    assert compute.get_node(node).provision_state in ("deploying", "active")
    active = lab.until("active")
    assert active.instance_id == mine
    assert active.lessee == "tenant-1"
    carried = compute.carried(node)
    assert (carried.image_source, carried.image_checksum) == (
        "http://127.0.0.1:1/image.img",
        "0" * 64,
    )
    assert (carried.project_id, carried.root_device) == ("tenant-1", {"serial": "S3"})
    assert carried.instance_id == mine
    with pytest.raises((Transient, Refused)):
        compute.deploy(node, a_deployment())
    assert compute.cleaning_since(node, began).result == "none"
    assert compute.cleaning_since(node, began).was_deployed

    compute.set_power(node, on=True)
    compute.set_power(node, on=True)
    _until_power(lab, "power on")
    compute.set_power(node, on=False, soft=True)
    _until_power(lab, "power off")

    compute.rescue(node, password="a-password-of-a-person")
    lab.until("rescue")
    compute.unrescue(node)
    lab.until("active")
    assert compute.console(node) is None

    left = clock.now()
    compute.undeploy(node)
    with pytest.raises((Transient, Refused)):
        compute.undeploy(node)
    gone = lab.until("available")
    assert (gone.instance_id, gone.lessee) == (None, "")
    assert compute.carried(node).is_empty
    with pytest.raises(Refused):
        compute.undeploy(node)
    compute.unreserve(node, name="neo-x", instance=mine)  # fine if it is gone

    proof = compute.cleaning_since(node, left)
    assert proof.result == "success"
    assert proof.steps
    assert proof.started_at is not None
    assert proof.ended_at is not None
    assert left - timedelta(seconds=1) <= proof.started_at <= proof.ended_at
    later = compute.cleaning_since(node, clock.now() + timedelta(seconds=2))
    assert later.result == "none"
    assert not later.steps


def test_a_node_is_led_out_of_the_pool_and_cleaned_again(lab: Lab) -> None:
    began = clock.now()
    lab.compute.make_manageable(lab.node)
    lab.until("manageable")
    with pytest.raises(Refused):
        lab.compute.deploy(lab.node, a_deployment())

    lab.compute.provide(lab.node)
    lab.until("available")

    assert lab.compute.cleaning_since(lab.node, began).result == "success"
    with pytest.raises(Refused):
        lab.compute.provide(lab.node)


def test_an_instance_can_be_taken_from_a_node_that_is_lost(lab: Lab) -> None:
    mine = uuid4()
    lab.claim(lab.node, mine)
    lab.compute.deploy(lab.node, a_deployment())
    lab.until("active")

    for _repeat in range(2):
        lab.compute.evict(lab.node, instance=mine, reason="host lost")

    seen = lab.compute.get_node(lab.node)
    assert (seen.instance_id, seen.maintenance) == (None, True)
    assert lab.compute.holder_of(mine) is None
    lab.claim(lab.other, mine)  # the instance may live elsewhere now
    lab.compute.unreserve(lab.other, name="neo-x", instance=mine)


def test_a_lessee_can_be_cleared_twice(lab: Lab) -> None:
    lab.compute.clear_lessee(lab.other)
    lab.compute.clear_lessee(lab.other)
    assert lab.compute.get_node(lab.other).lessee == ""


def test_make_and_firmware_are_told_as_far_as_they_are_known(lab: Lab) -> None:
    told = lab.compute.hardware(lab.node)
    assert set(told) <= {"server", "bios", "bmc", "nic"}
    assert all(told.values())


def _until_power(lab: Lab, state: str) -> None:
    deadline = time.monotonic() + LONGEST
    while lab.compute.get_node(lab.node).power_state != state:
        assert time.monotonic() < deadline
        lab.pass_time()


def test_a_claim_can_be_given_back_twice(lab: Lab) -> None:
    mine, theirs = uuid4(), uuid4()
    lab.claim(lab.other, mine)

    lab.compute.unreserve(lab.other, name="neo-x", instance=mine)
    lab.compute.unreserve(lab.other, name="neo-x", instance=mine)

    assert lab.compute.get_node(lab.other).instance_id is None
    lab.claim(lab.other, theirs)
    assert lab.compute.get_node(lab.other).instance_id == theirs
    lab.compute.unreserve(lab.other, name="neo-x", instance=theirs)


def test_a_node_nobody_knows_is_the_nodes_fault(lab: Lab) -> None:
    with pytest.raises(NodeFault):
        lab.compute.get_node(uuid4())
    with pytest.raises(NodeFault):
        lab.compute.reserve(uuid4(), name="neo-x", instance=uuid4())


def test_the_site_says_what_it_is_and_lists_its_nodes(lab: Lab) -> None:
    report = lab.compute.describe()
    listed = {node.infra_id for node in lab.compute.list_nodes()}
    found = {node.infra_id: node for node in lab.compute.discover()}

    assert report.nodes == len(listed) == len(found)
    assert not report.cleaning_disabled_on
    assert lab.node in listed
    assert found[lab.node].resource_class


# ---------------------------------------------------------------------- a site that is not well
def silent(act: Callable[[], Any], *, within: float) -> None:
    """The act ends in time, as a site that does not answer."""
    began = time.monotonic()
    with pytest.raises(SiteUnreachable):
        act()
    assert time.monotonic() - began < within


def _closed_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _acts(compute: openstack.Ironic) -> list[Callable[[], Any]]:
    return [
        lambda: compute.get_node(uuid4()),
        lambda: list(compute.list_nodes()),
        lambda: compute.deploy(uuid4(), a_deployment()),
        lambda: compute.undeploy(uuid4()),
    ]


def test_a_closed_port_is_a_site_that_does_not_answer() -> None:
    compute = openstack.Ironic(
        endpoint=f"http://127.0.0.1:{_closed_port()}", username="a", password="b"
    )
    for act in _acts(compute):
        silent(act, within=3)


def test_a_server_that_never_answers_is_given_up_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "CALL_SECONDS", 1)
    with closing(socket.create_server(("127.0.0.1", 0), backlog=64)) as server:
        compute = openstack.Ironic(
            endpoint=f"http://127.0.0.1:{server.getsockname()[1]}", username="a", password="b"
        )
        for act in _acts(compute):
            silent(act, within=4)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n<p>\n", SiteUnreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n17", SiteUnreachable),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 400\r\n\r\n{", SiteUnreachable),
        (b"", SiteUnreachable),
        (b"nonsense\r\n\r\n", SiteUnreachable),
        (b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n", SiteUnreachable),
        (b"HTTP/1.1 502 Bad\r\nContent-Length: 3\r\n\r\n<p>", SiteUnreachable),
        (b"HTTP/1.1 401 Who\r\nContent-Length: 0\r\n\r\n", SiteUnreachable),
        (b"HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n", Refused),
        (b"HTTP/1.1 400 No\r\nContent-Length: 0\r\n\r\n", Refused),
        (b"HTTP/1.1 409 Locked\r\nContent-Length: 0\r\n\r\n", Transient),
        (b"HTTP/1.1 429 Slow\r\nContent-Length: 0\r\n\r\n", Transient),
        (b"HTTP/1.1 500 Oh\r\nContent-Length: 0\r\n\r\n", Transient),
    ],
)
def test_every_answer_is_one_of_our_kinds(answer: bytes, kind: type[OutsideError]) -> None:
    with closing(socket.create_server(("127.0.0.1", 0), backlog=16)) as server:

        def serve() -> None:
            while True:
                try:
                    client, _address = server.accept()
                except OSError:
                    return
                with client:
                    client.settimeout(5)
                    asked = client.recv(65536).split(b" ")[1:2]
                    client.sendall(answer if b"/nodes/" in b"".join(asked) else VERSIONS)

        thread = Thread(target=serve, daemon=True)
        thread.start()
        compute = openstack.Ironic(
            endpoint=f"http://127.0.0.1:{server.getsockname()[1]}", username="a", password="b"
        )
        with pytest.raises(kind):
            compute.validate(uuid4())
        server.shutdown(socket.SHUT_RDWR)
        thread.join(5)


@pytest.mark.ironic
def test_wrong_credentials_are_the_sites_trouble_and_said() -> None:
    compute = an_ironic(password="wrong")
    with pytest.raises(SiteUnreachable, match="refuses our credentials"):
        compute.describe()
