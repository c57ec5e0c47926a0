"""A small world for the engine: a fake site with nodes, an offering, a price, an order; and hands
to move it on.
"""

from typing import Any
from uuid import UUID

from apps.accounts.models import Project, User
from apps.catalog.models import Image, OfferingImage, PriceBook
from apps.core import clock
from apps.core.models import OutboxEvent
from apps.inventory.models import Node, Site
from apps.inventory.observations import ObservedNode
from apps.orders import services as orders
from apps.orders.models import Order, Service
from apps.orders.tasks import serve_queues
from apps.provisioning.adapters.fake import FakeCompute
from apps.provisioning.adapters.fake_parts import FakeNetwork
from apps.provisioning.engine import claims, runs, watcher
from apps.provisioning.models import CallHome, Run
from apps.provisioning.ports import Deployment
from apps.provisioning.services import receive_call_home
from apps.provisioning.states import MOVING
from apps.tenancy import relay
from apps.tenancy.context import platform_context
from tests import builders
from tests.integration.inventory.builders import a_node, a_pool, a_site, an_offering

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJdD7y3aLq454yWBdwLWbieU1ebz9/cu7/QEXn9OIeZJ test"
SITE = "fake-1"


def a_fake_site(*, nodes: int = 2, **offering: Any) -> Site:
    """A site that sells `nodes` fake servers; for the platform's side."""
    FakeCompute.forget_all()
    FakeNetwork.forget_all()
    site = a_site(SITE, driver="fake", is_simulated=True)
    a_pool(site, last_address="10.20.0.250")
    fake = FakeCompute.of(SITE)
    for _number in range(nodes):
        node = a_node(site)
        fake.add(_observed(node))
    made = an_offering(**offering)
    image = Image.objects.get_or_create(
        code="ubuntu-24.04",
        defaults={"name": "Ubuntu", "source": "http://127.0.0.1/image", "checksum": "0" * 64},
    )[0]
    OfferingImage.objects.get_or_create(offering=made, image=image)
    book = PriceBook.objects.get_or_create(
        code="list-krw", defaults={"name": "List", "currency": "KRW"}
    )[0]
    builders.a_price(book=book, sku=made.sku, amount=4000)
    return site


def _observed(node: Node) -> ObservedNode:
    return ObservedNode(infra_id=node.infra_id, name=node.name, resource_class=node.resource_class)


def another_node(site: Site) -> Node:
    """One more server in the fake site's pool."""
    node = a_node(site)
    FakeCompute.of(SITE).add(_observed(node))
    return node


def an_accepted_order(**choices: Any) -> Order:
    """Quote and place one server; inside a tenant."""
    person = choices.pop("person", None) or User.objects.first() or builders.a_person()
    project = Project.objects.first() or builders.a_project()
    quote = orders.make_quote(
        actor=person, offering_sku="bm.h200.8x", site_code=SITE,
        quantity=choices.pop("quantity", 1), starts_at=choices.pop("starts_at", None),
        ends_at=choices.pop("ends_at", None),
    )  # fmt: skip
    return orders.place_order(
        actor=person,
        quote_id=quote.pk,
        project_id=project.pk,
        name=choices.pop("name", "train"),
        ssh_public_keys=[KEY],
        **choices,
    )


def the_service(order: Order) -> Service:
    """The one service of an order."""
    return Service.objects.get(order=order)


def fake() -> FakeCompute:
    """The fake site."""
    return FakeCompute.of(SITE)


def deliver() -> None:
    """Deliver what waits in the outbox; in a test the transaction is still open, so ids decide."""
    with platform_context():
        OutboxEvent.objects.filter(delivered_at=None).update(xid=0)
        while relay.deliver_waiting():
            pass


def step(*, settle: bool = True) -> None:
    """Deliver events, let every run advance once as if its time had come, then finish what the site
    began.
    """
    deliver()
    with platform_context():
        for site in Site.objects.filter(code=SITE):
            Site.objects.filter(pk=site.pk).update(watch_due_at=clock.now(), watch_lease_until=None)
            watcher.look(site.pk)
        Run.objects.filter(status__in=MOVING).update(next_try_at=clock.now(), lease_until=None)
        for run_id in claims.due_runs():
            runs.advance(run_id)
        serve_queues()
    deliver()
    if settle:
        fake().settle()


def call_home(service: Service, *, run: Run | None = None, **said: Any) -> None:
    """The server reports; `said` overrides items of a healthy report."""
    with platform_context():
        run = run or Run.objects.filter(service=service.pk).latest("created_at")
        home = CallHome.objects.filter(run=run, revoked_at=None).latest("created_at")
        token = token_of(run.node_id)
        report = healthy(run) | said
        assert home.received_at is None
        receive_call_home(run_id=run.pk, token=token, report=report, remote="127.0.0.1")


def token_of(node_id: UUID | None) -> str:
    """The one-time token in the drive of a node."""
    node = Node.objects.get(pk=node_id)
    deployment = fake().nodes[node.infra_id].deployment
    assert deployment is not None
    return token_in(deployment)


def token_in(deployment: Deployment) -> str:
    """The one-time token in a drive."""
    text = str(deployment.config_drive["user_data"])
    return next(
        word
        for word in text.replace('"', " ").replace("'", " ").split()
        if word.startswith("neo_home")
    )


def healthy(run: Run) -> dict[str, Any]:
    """What a server says that is just what was bought."""
    wanted = run.wanted
    return {
        "hostname": run.service_name.lower(),
        "gpus": [
            {
                "index": number,
                "name": wanted["gpu_model"],
                "uuid": f"GPU-{run.node_id}-{number}",
                "serial": str(number),
                "memory_mib": wanted["gpu_memory_mib"],
            }
            for number in range(wanted["gpus"])
        ],
        "driver": "580.95",
        "cuda": "13.0",
        "disks": [{"name": "nvme1n1", "size_bytes": wanted["disk_gb"] * 1000**3, "model": "x"}],
        "gpu_health": [
            {"index": number, "ecc_uncorrected": 0, "needs_remapping": False}
            for number in range(wanted["gpus"])
        ],
        "xid_errors": [],
        "hardware": {"server": "Lab H200", "bios": "2.7.1"},
        "mounts": [{"target": "/", "source": "/dev/nvme0n1p1", "fstype": "ext4", "size_bytes": 1}],
        "authorized_keys": wanted["ssh_keys"],
        "addresses": [run.inputs["lease_address"]["address"]],
        "ssh_host_keys": ["ssh-ed25519 AAAA"],
    }


def until_ready(order: Order) -> Service:
    """Move the world on until the order's server is active."""
    for _round in range(12):
        step()
        service = the_service(order)
        if service.state == "active":
            return service
        with platform_context():
            homes = CallHome.objects.filter(run__service=service.pk, revoked_at=None)
            waits = homes.exists() and not homes.filter(received_at__isnull=False).exists()
        node = fake().nodes.get(_infra_of(service))
        if waits and node and node.seen.provision_state == "active":
            call_home(service)
    raise AssertionError(f"not ready: {the_service(order).state}")


def _infra_of(service: Service) -> UUID:
    return Node.objects.get(pk=service.node_id).infra_id


def until_gone(service: Service) -> Service:
    """Move the world on until the service has ended."""
    for _round in range(20):
        step()
        service.refresh_from_db()
        if service.state in ("terminated", "failed"):
            return service
    raise AssertionError(f"not gone: {service.state}")
