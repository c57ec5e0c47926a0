"""Case S05: a disk, a port, a public address; attaching the address fails again and again."""

from datetime import timedelta
from itertools import chain, repeat

import pytest

from apps.core import clock
from apps.core.errors import Refused, Transient
from apps.inventory.models import Allocation, Node
from apps.orders import services as orders
from apps.orders.models import Fact
from apps.orders.states import ServiceState
from apps.provisioning import blueprints
from apps.provisioning.adapters.fake_parts import FakeNetwork, FakeVolumes
from apps.provisioning.blueprints import node_moves
from apps.provisioning.engine.steps import Blueprint, Done, Outcome, Step, Work
from apps.provisioning.models import Leak, Run
from tests.integration.orders import ledger
from tests.integration.provisioning import world
from tests.integration.provisioning.clockwork import Clockwork, move_clock_by

pytestmark = pytest.mark.django_db


def shelf() -> FakeVolumes:
    return FakeVolumes.of(world.SITE)


def network() -> FakeNetwork:
    return FakeNetwork.of(world.SITE)


def make_volume(work: Work) -> Outcome:
    return Done({"id": shelf().ensure_volume(name=work.name("volume"), size_gb=100).id})


def delete_volume(work: Work) -> Outcome:
    shelf().delete_volume(name=work.name("volume"))
    return Done()


def make_port(work: Work) -> Outcome:
    made = network().ensure_port(
        name=work.name("port"), node=work.server.infra_id, address="10.20.0.9", vlan=None
    )
    return Done({"id": made.id})


def delete_port(work: Work) -> Outcome:
    network().delete_port(name=work.name("port"))
    return Done()


def take_address(work: Work) -> Outcome:
    return Done({"id": network().ensure_address(name=work.name("address")).id})


def release_address(work: Work) -> Outcome:
    network().release_address(name=work.name("address"))
    return Done()


def attach(work: Work) -> Outcome:
    network().attach_address(name=work.name("address"), port=work.output_of("make_port")["id"])
    return Done()


def the_address(run: Run, _node: Node | None) -> str:
    return str(run.inputs["take_address"]["id"])


def nothing_more(_run: Run) -> None:
    """Never reached."""


def give_back(run: Run) -> None:
    orders.fail_service(service_id=run.service, run=run.pk)
    node_moves.recycle_if_proven(run)


ATTACHED = Blueprint(
    name="attached",
    version=1,
    on_success=nothing_more,
    on_undone=give_back,
    replaces_nodes=True,
    steps=(
        Step("make_volume", "Make a disk", do=make_volume, undo=delete_volume),
        Step("make_port", "Make a port", do=make_port, undo=delete_port),
        Step(
            "take_address", "Take an address", do=take_address, undo=release_address,
            leaves=the_address,
        ),
        Step("attach", "Attach the address", do=attach),
    ),
)  # fmt: skip


@pytest.fixture
def works(platform, acme, monkeypatch):
    world.a_fake_site(nodes=2)
    FakeVolumes.forget_all()
    monkeypatch.setitem(blueprints.ALL, ("attached", 1), ATTACHED)
    monkeypatch.setitem(blueprints.WORK, ("make", "bare_metal"), ATTACHED)
    return Clockwork([acme])


def fail_attaching(works, tries):
    """An order whose attaching fails so often; how many addresses were held after each try."""
    network().fail("attach_address", *repeat(Transient("no route to the router"), 500))
    order = world.an_accepted_order()
    held = []
    for _try in range(tries):
        works.turn()
        held.append(len(list(network().addresses())))
    Run.objects.update(try_deadline=clock.now() - timedelta(seconds=1))
    return world.the_service(order), held


def left() -> list[str]:
    """What the provider still has."""
    return [one.id for one in chain(shelf().volumes(), network().ports(), network().addresses())]


def test_what_was_made_for_an_address_that_cannot_be_attached_is_given_back(works):
    service, held = fail_attaching(works, tries=5)
    assert max(held) == 1
    assert len(left()) == 3

    works.rest()

    service.refresh_from_db()
    assert works.problems == []
    assert left() == []
    assert service.state == ServiceState.FAILED
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert not Allocation.objects.filter(released_at=None).exists()
    assert set(Fact.objects.values_list("state", flat=True)) == {"provisioning", "failed"}


def test_what_cannot_be_given_back_either_is_listed_and_tried_until_it_is_gone(works):
    network().fail("release_address", *repeat(Refused("the router is away"), 3))
    service, _held = fail_attaching(works, tries=5)
    (address,) = [one.id for one in network().addresses()]
    works.rest()

    service.refresh_from_db()
    assert service.state == ServiceState.FAILED
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert left() == [address]
    leak = Leak.objects.get()
    assert leak.what == address
    assert leak.gone_at is None

    for _try in range(6):
        move_clock_by(timedelta(minutes=20))
        works.turn()

    leak.refresh_from_db()
    assert left() == []
    assert leak.gone_at is not None
    assert leak.attempts == 3
