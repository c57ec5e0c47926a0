"""A drill on real services: orders live while Ironic, worker, web, broker and database die.

Run by `./dev bench drill`. Twelve orders for four nodes (real Ironic, simulated hardware), eight
of them waiting in the queue; each server is terminated as soon as it is active. Meanwhile an
accident every few seconds, one kind after the other. Ends by itself after ten minutes at most.
Prints what is wrong in the end: nothing, or the code is 1.
"""

import itertools
import os
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django

django.setup()

from django.conf import settings  # noqa: E402
from django.db import OperationalError, close_old_connections, connections  # noqa: E402

from apps.accounts.models import Project, User  # noqa: E402
from apps.audit.sealing import verify  # noqa: E402
from apps.orders import services as orders  # noqa: E402
from apps.orders.models import Fact, Order, Service, TenantLimit  # noqa: E402
from apps.provisioning.models import Run  # noqa: E402
from apps.tenancy.context import platform_context, tenant_context  # noqa: E402
from apps.tenancy.models import Tenant  # noqa: E402
from lab import control  # noqa: E402
from tests import databases, invariants  # noqa: E402
from tests.integration.provisioning.ironic import product as lab  # noqa: E402
from tests.integration.provisioning.world import KEY  # noqa: E402

SKU, CLASS = "bm.h200.8x", "gpu.h200.8x"
ORDERS = 12
EVERY = 9.0  # seconds between two accidents
LONGEST = 600.0
OVER = ("terminated", "failed")


def main() -> int:
    """The drill, on a database of its own."""
    name = databases.copy(f"drill_{os.getpid()}")
    entry = databases.entry(databases.url_of("neo_app", name))
    settings.DATABASES["default"].update(entry)
    connections["default"].settings_dict.update(entry)
    try:
        with tempfile.TemporaryDirectory() as folder:
            return drill(name, Path(folder))
    finally:
        connections["default"].close()
        databases.drop(name)


def drill(database: str, folder: Path) -> int:
    """Open a shop on the lab, let things happen, look at what is left."""
    with lab.product_on(database, folder, "gw11", resource_class=CLASS) as product:
        tenant = lab.open_shop(product)
        product.start_beat()
        product.start_web()
        product.start_worker()
        began = time.monotonic()
        place(tenant)
        done = rounds(product, tenant, began)
        wrong = [*left_behind(tenant), *([] if done else ["not over in time"])]
        say(tenant, wrong, time.monotonic() - began)
        return 1 if wrong else 0


def place(tenant: Tenant) -> None:
    """All orders at once; those without a server wait."""
    with tenant_context(tenant):
        orders.ensure_tenant_limit(tenant=tenant.pk)
        TenantLimit.objects.update(max_gpus=1000, max_services=1000)
        person, project = User.objects.get(), Project.objects.get().pk
        for number in range(1, ORDERS + 1):
            quote = orders.make_quote(
                actor=person, offering_sku=SKU, site_code=lab.SITE, quantity=1
            )
            orders.place_order(
                actor=person, quote_id=quote.pk, project_id=project, name=f"drill-{number}",
                ssh_public_keys=[KEY], if_unavailable="queue",
            )  # fmt: skip


def rounds(product: lab.Product, tenant: Tenant, began: float) -> bool:
    """An accident, then end what is ready, until every order is over; False when time runs out."""
    accidents = itertools.cycle(
        [crash_worker, crash_ironic, crash_worker, restart_database, crash_web, flush_broker]
    )
    while time.monotonic() - began < LONGEST:
        if patiently(lambda: end_what_is_ready(tenant)):
            return True
        time.sleep(EVERY)  # real machines need real time
        accident = next(accidents)
        print(f"{time.monotonic() - began:6.1f}  {accident.__name__.replace('_', ' ')}", flush=True)
        accident(product)
    return False


def end_what_is_ready(tenant: Tenant) -> bool:
    """Terminate every active service; True when all orders have run their course."""
    with tenant_context(tenant):
        for service in Service.objects.filter(state="active"):
            orders.terminate_service(service_id=service.pk, actor=User.objects.get())
        ended = Service.objects.filter(state__in=OVER).count()
    with platform_context():
        moving = Run.objects.filter(status__in=("forward", "undoing")).exists()
    return ended >= ORDERS and not moving


def patiently(act: Callable[[], bool]) -> bool:
    """Our own connection may have died with the database."""
    try:
        return act()
    except OperationalError:
        close_old_connections()
        connections["default"].close()
        return False


# ---------------------------------------------------------------------- accidents
def _control(verb: str) -> None:
    control.request(Path(os.environ["LAB_CONTROL"]), verb, seconds=120)


def crash_worker(product: lab.Product) -> None:
    """SIGKILL, wherever it is; a new one after a moment. Its lease has to run out."""
    _kill(product, "worker")
    product.start_worker()


def crash_web(product: lab.Product) -> None:
    """Guests that call home meanwhile find nobody and try again."""
    _kill(product, "web")
    product.start_web()


def crash_ironic(product: lab.Product) -> None:
    """The conductor forgets what it was doing."""
    _control(control.CRASH_IRONIC)
    _control(control.START_IRONIC)


def restart_database(product: lab.Product) -> None:
    """Every connection is lost, ours too."""
    connections["default"].close()
    _control(control.RESTART_DATABASE)


def flush_broker(product: lab.Product) -> None:
    """Every message is lost."""
    product.broker.flushdb()


def _kill(product: lab.Product, name: str) -> None:
    child = product.children.pop(name)
    os.killpg(child.pid, signal.SIGKILL)
    child.wait()


# ---------------------------------------------------------------------- what is left
def left_behind(tenant: Tenant) -> Iterator[str]:
    """Whatever should not be so, in sentences."""
    connections["default"].close()
    seen = [node for node in lab.ironic().list_nodes() if node.resource_class == CLASS]
    yield from invariants.broken([tenant])
    yield from invariants.broken_at_rest([tenant], seen, deploys={})
    for node in seen:
        if node.instance_id is not None:
            yield f"{node.name} still has instance {node.instance_id}"
    with platform_context():
        if (broken_at := verify().broken_at) is not None:
            yield f"the audit trail is broken at {broken_at}"


def say(tenant: Tenant, wrong: list[str], took: float) -> None:
    """The figures."""
    with tenant_context(tenant):
        states = Counter(Service.objects.values_list("state", flat=True))
        charged = Fact.objects.filter(state="active").count()
        print(f"orders {Order.objects.count()}, services {dict(states)}, ready {charged}")
    with platform_context():
        runs = Counter(Run.objects.values_list("status", flat=True))
    print(f"runs {dict(runs)}, {took:.0f} s")
    print(f"wrong: {len(wrong)}", *wrong, sep="\n  ")


if __name__ == "__main__":
    raise SystemExit(main())
