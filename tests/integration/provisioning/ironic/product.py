"""The product's processes on a database of one test: web, worker, beat; and the lab as its site."""

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import redis

from apps.accounts.models import Project, User
from apps.catalog.services import import_catalog
from apps.core import clock
from apps.inventory import services as inventory
from apps.inventory.models import Node, Site
from apps.orders import services as orders
from apps.orders.models import Order, Service
from apps.provisioning import services as provisioning
from apps.provisioning.adapters.openstack import Ironic
from apps.provisioning.models import Run
from apps.provisioning.states import OPEN
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import builders, databases, needs
from tests.integration.provisioning.world import KEY

ROOT = Path(__file__).resolve().parents[4]
CATALOGUE = ROOT / "data" / "catalog.yaml"
SKU = "bm.h100.8x"
RESOURCE_CLASS = "gpu.h100.8x"
SITE = "lab-1"
LONGEST = 75.0


def until(what: str, ask: Callable[[], Any], *, seconds: float = LONGEST) -> Any:
    """Ask until there is an answer."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = ask()
        if found:
            return found
        time.sleep(0.2)  # another process is at work
    raise AssertionError(f"waited {seconds:.0f} s in vain: {what}")


def ironic() -> Ironic:
    """The lab, asked directly."""
    return Ironic(
        endpoint=os.environ["LAB_IRONIC_URL"],
        username=os.environ["LAB_IRONIC_USER"],
        password=os.environ["LAB_IRONIC_PASSWORD"],
    )


class Product:
    """Processes started by one test, on its database and its part of the broker."""

    def __init__(self, database: str, folder: Path, *, broker_database: int) -> None:
        self.folder = folder
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        broker = urlsplit(os.environ["BROKER_URL"])._replace(path=f"/{broker_database}").geturl()
        self.broker = redis.Redis.from_url(broker)
        self.broker.flushdb()
        self.environment = {
            **os.environ,
            "DATABASE_URL": databases.url_of("neo_app", database),
            "BROKER_URL": broker,
            "DJANGO_SETTINGS_MODULE": "neocloud.settings.test",
            "NEOCLOUD_PORT": str(self.port),
        }
        self.children: dict[str, subprocess.Popen[bytes]] = {}

    # ------------------------------------------------------------------ processes
    def start(self, name: str, *words: str, **extra: str) -> subprocess.Popen[bytes]:
        """A child in a session of its own, its words in a file."""
        with (self.folder / f"{name}.log").open("ab") as log:
            child = subprocess.Popen(
                [sys.executable, "-m", *words],
                cwd=ROOT,
                env=self.environment | extra,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        self.children[name] = child
        return child

    def start_web(self) -> None:
        """The server that machines call home to."""
        self.start(
            "web", "granian", "--interface", "wsgi", "--host", "127.0.0.1", "--port",
            str(self.port), "--workers", "1", "--blocking-threads", "4",
            "neocloud.wsgi:application", NEOCLOUD_DB_POOL="1",
        )  # fmt: skip
        until("the web server", self._is_healthy)

    def _is_healthy(self) -> bool:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/healthz", headers={"Host": "console.localhost"}
        )
        try:
            with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(
                request, timeout=2
            ) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def start_beat(self) -> None:
        """The scheduler."""
        schedule = str(self.folder / "beat")
        self.start("beat", "celery", "-A", "neocloud", "beat", "-s", schedule, "--pidfile=")

    def start_worker(self, *, dies_at: str = "") -> subprocess.Popen[bytes]:
        """A worker of one process; with `dies_at` it kills itself there, once."""
        extra = {}
        if dies_at:
            once = self.folder / dies_at.replace(":", "-")
            extra = {"NEOCLOUD_FAILPOINT": dies_at, "NEOCLOUD_FAILPOINT_ONCE": str(once)}
        return self.start(
            "worker", "celery", "-A", "neocloud", "worker", "-P", "solo", "-Q", "engine,default",
            "-l", "info", "--without-gossip", "--without-mingle", "--without-heartbeat", **extra,
        )  # fmt: skip

    def wait_for_death(self) -> None:
        """The worker reaches its failpoint; then let nobody wait for its lease to run out."""
        worker = self.children.pop("worker")
        code = until("the worker's death", lambda: worker.poll() is not None and worker.poll())
        assert code == -signal.SIGKILL
        with platform_context():
            held = Run.objects.filter(lease_until__gt=clock.now())
            assert held.exists(), "it died while it held the run"
            held.update(lease_until=clock.now())

    def stop(self) -> None:
        """End what was started here."""
        for child in self.children.values():
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()
        self.children.clear()
        self.broker.flushdb()
        self.broker.close()

    def said(self, name: str = "worker") -> str:
        """What a child has written."""
        return (self.folder / f"{name}.log").read_text(errors="replace")


@contextmanager
def product_on(
    database: str, folder: Path, worker_id: str, *, resource_class: str = RESOURCE_CLASS
) -> Iterator[Product]:
    """A product nothing of which runs yet; it alone has the lab's nodes until it ends."""
    number = 2 + int(worker_id.removeprefix("gw")) % 12 if worker_id.startswith("gw") else 2
    with psycopg.connect(databases.superuser_url(), autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(7303)")  # the lab's nodes are shared by all tests
        make_free(resource_class)
        made = Product(database, folder, broker_database=number)
        try:
            yield made
        finally:
            made.stop()
            make_free(resource_class)


@contextmanager
def ironic_for_itself() -> Iterator[None]:
    """Nobody else asks the lab's Ironic meanwhile (see `tests.conftest`), so it may be crashed."""
    with psycopg.connect(databases.superuser_url(), autocommit=True) as gate:
        gate.execute("SELECT pg_advisory_lock(%s)", [needs.IRONIC_ANSWERS])
        yield


# ---------------------------------------------------------------------- the world
def set_up_site(product: Product, *, catalogue: str | None = None, endpoint: str = "") -> Site:
    """The lab as a site nobody has asked yet, with addresses and a catalogue to sell from."""
    with platform_context():
        import_catalog(text=catalogue or CATALOGUE.read_text(), actor=None)
        site = inventory.save_site(
            code=SITE,
            name="Lab",
            endpoint=endpoint or os.environ["LAB_IRONIC_URL"],
            username=os.environ["LAB_IRONIC_USER"],
            password=os.environ["LAB_IRONIC_PASSWORD"],
            call_home_url=f"http://127.0.0.1:{product.port}/call-home",
            is_simulated=True,
            actor=None,
        )
        inventory.save_address_pool(
            site=site, name="servers", prefix="10.20.0.0/24", gateway="10.20.0.1",
            first_address="10.20.0.11", last_address="10.20.0.250", actor=None,
        )  # fmt: skip
    return site


def open_shop(product: Product, *, endpoint: str = "") -> Tenant:
    """A site that sells what it has, a tenant with a person and a project."""
    site = set_up_site(product, endpoint=endpoint)
    with platform_context():
        provisioning.validate_site(site=site, actor=None)
        provisioning.discover_site(site=site, actor=None)
        inventory.resume_site(site=Site.objects.get(), actor=None, reason="set up")
        tenant = Tenant.objects.get(slug="acme")
    with tenant_context(tenant):
        builders.a_person()
        builders.a_project()
    return tenant


def an_order(*, name: str = "train", quantity: int = 1) -> Order:
    """Quote and confirm; inside the tenant."""
    person = User.objects.get()
    quote = orders.make_quote(actor=person, offering_sku=SKU, site_code=SITE, quantity=quantity)
    return orders.place_order(
        actor=person,
        quote_id=quote.pk,
        project_id=Project.objects.get().pk,
        name=name,
        ssh_public_keys=[KEY],
    )


def until_state(service_id: UUID, *states: str) -> Service:
    """Wait until the service is in one of the states."""
    return until(
        f"{states}, is {Service.objects.get(pk=service_id).state}",
        lambda: Service.objects.filter(pk=service_id, state__in=states).first(),
    )


def until_quiet() -> None:
    """Wait until no run is open."""
    with platform_context():
        until("no open run", lambda: not Run.objects.filter(status__in=OPEN).exists())


def events_of(infra_id: UUID, since: str) -> list[str]:
    """What the lab's own history says of a node since an instant (ISO 8601, UTC)."""
    answer = ironic()._call("GET", f"/v1/nodes/{infra_id}/history?detail=true")
    return [
        str(entry["event_type"]) for entry in answer["history"] if str(entry["created_at"]) >= since
    ]


def infra_ids(resource_class: str = RESOURCE_CLASS) -> list[UUID]:
    """The lab's nodes that these tests use."""
    return [
        node.infra_id for node in ironic().list_nodes() if node.resource_class == resource_class
    ]


def make_free(resource_class: str = RESOURCE_CLASS) -> None:
    """Bring the nodes back to `available` and off, whatever a test left."""
    compute, mine = ironic(), infra_ids(resource_class)
    for infra_id in mine:
        seen = compute.get_node(infra_id)
        if seen.provision_state in ("active", "deploy failed", "error") and not seen.is_reserved:
            compute.undeploy(infra_id)
        elif seen.provision_state == "available" and seen.instance_id:
            compute.unreserve(infra_id, name="", instance=seen.instance_id)
    until(
        "free nodes",
        lambda: all(
            seen.provision_state == "available" and not seen.instance_id
            for seen in map(compute.get_node, mine)
        ),
    )
    for infra_id in mine:
        if compute.get_node(infra_id).power_state == "power on":
            compute.set_power(infra_id, on=False)
    until("nodes off", lambda: all(compute.get_node(i).power_state != "power on" for i in mine))


def nodes() -> list[Node]:
    """Our records of them; on the platform's side."""
    return list(Node.objects.filter(resource_class=RESOURCE_CLASS).order_by("name"))
