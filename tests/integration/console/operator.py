"""An operator's world: a tenant with orders, runs in every condition, nodes in trouble."""

from dataclasses import dataclass, field
from datetime import timedelta

from django.db import transaction

from apps.core import clock, outbox
from apps.core.uuids import uuid7
from apps.inventory import services as inventory
from apps.inventory.models import GPU, NIC, Node
from apps.orders.models import Order, QueueEntry, Service
from apps.orders.services.limits import ensure_tenant_limit
from apps.provisioning.engine import journal
from apps.provisioning.models import Finding, Leak, Run, RunStep
from apps.provisioning.states import RunStatus, StepStatus
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests.integration.inventory.builders import a_gpu_model, a_node
from tests.integration.portal.shop import Shop, a_run_of, a_shop, an_order_of, make_ready


@dataclass
class World:
    """What the console looks at."""

    tenant: Tenant
    shop: Shop
    orders: list[Order] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)


def a_world(tenant: Tenant) -> World:
    """A tenant that buys from a site with three servers; nothing was ordered yet."""
    with tenant_context(tenant):
        shop = a_shop(nodes=3)
    return World(tenant, shop)


def fill(world: World) -> None:
    """One more of everything: a ready server, a held run, a leak, a queue, a broken node."""
    with platform_context():
        world.nodes += [a_whole_node(world) for _number in range(4)]
    with tenant_context(world.tenant):
        ensure_tenant_limit(tenant=world.tenant.pk)
        for number in range(3):
            world.orders.append(an_order_of(world.shop, name=f"train-{number}"))
        ready, held, leaked = (Service.objects.get(order=o) for o in world.orders[-3:])
        make_ready(ready)
        world.runs += [a_held_run(held), a_leaked_run(leaked)]
    with platform_context():
        for node in world.nodes[-2:]:
            a_finding(node)
        planned_work(world.nodes[-2:])
    with platform_context(), transaction.atomic():
        order = world.orders[-1]
        QueueEntry.objects.create(
            tenant=world.tenant.pk,
            order=uuid7(),
            site=world.shop.site.pk,
            offering=world.shop.offering.pk,
            resource_class="gpu.b200.8x",  # nobody has any
            gpus=8,
        )
        inventory.quarantine(node=world.nodes[-1], reason="fan 3 stands still")
        event = outbox.publish("test.happened", subject=order.pk)
        event.attempts = 2
        event.last_error = "the handler refused"
        event.save()


def a_whole_node(world: World) -> Node:
    """A free server with a port and GPUs, in a rack."""
    number = Node.objects.count() + 1
    node = a_node(
        world.shop.site,
        rack=f"R{number % 3}",
        unit=number,
        serial=f"SN{number:05d}",
        gpu_model=a_gpu_model(),
    )
    NIC.objects.create(node=node, mac=f"52:54:00:00:{number // 256:02x}:{number % 256:02x}")
    for position in range(8):
        GPU.objects.create(node=node, position=position, model=a_gpu_model())
    return node


def a_held_run(service: Service) -> Run:
    """A run that waits for a person: the site refused to deploy."""
    run = a_run_of(service, position=3)
    RunStep.objects.filter(run=run, position=3).update(
        status=StepStatus.FAILED, attempts=2, error_kind="refused", error="image not found"
    )
    Run.objects.filter(pk=run.pk).update(
        status=RunStatus.HELD, reason="image not found", next_try_at=None, held_at=run.created_at
    )
    journal.write(run, "held", step="deploy", detail="image not found")
    run.refresh_from_db()
    return run


def a_leaked_run(service: Service) -> Run:
    """A run whose deployment could not be taken back."""
    run = a_run_of(service, position=3)
    RunStep.objects.filter(run=run, position=3).update(
        status=StepStatus.LEAKED, ended_at=run.created_at, error="the node does not answer"
    )
    Run.objects.filter(pk=run.pk).update(status=RunStatus.UNDOING)
    Leak.objects.create(
        run=run,
        tenant=run.tenant,
        service=run.service,
        site=run.site,
        node=run.node,
        step="deploy",
        what=f"instance {run.service}",
        detail="the node does not answer",
        price_per_hour=32000,
        currency="KRW",
        since=run.created_at,
    )
    run.refresh_from_db()
    return run


def a_finding(node: Node) -> Finding:
    """A node the site took for broken, seen by two looks."""
    return Finding.objects.create(
        site=node.site,
        kind="maintenance",
        subject=node.name,
        node=node,
        believed=node.status,
        seen="maintenance power failure",
        fix="quarantine",
        looks=2,
    )


def planned_work(nodes: list[Node]) -> None:
    """Work on some nodes, tomorrow."""
    tomorrow = clock.now() + timedelta(days=1)
    inventory.plan_maintenance(
        site=nodes[0].site,
        nodes=nodes,
        title="New firmware",
        starts_at=tomorrow,
        ends_at=tomorrow + timedelta(hours=2),
        actor=None,
    )
