"""The fault matrix: every step of every blueprint, each way, against every fault, on the fake site.

A new blueprint joins by itself; it needs a line in STARTS that says how its work begins.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import transaction

from apps.accounts.models import User
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.orders import services as orders
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.provisioning import blueprints, services
from apps.provisioning.models import Run
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import builders, invariants
from tests.integration.provisioning import world
from tests.integration.provisioning.clockwork import Clockwork
from tests.integration.provisioning.strikes import FAULTS, Fault, Place, Strike, listening

NODES = 4


@dataclass(frozen=True)
class Start:
    """How the work of a blueprint begins, and the state in which its service then rests."""

    begin: Callable[[Clockwork], None]
    rests_in: str


def _order(_works: Clockwork) -> None:
    world.an_accepted_order()


def _cancel_late(works: Clockwork) -> None:
    """Cancelled while the finished server is awaited: every step has something to undo."""
    works.calls_home = lambda _service: False
    world.an_accepted_order()
    works.until(lambda: _is_at("prove_ready"))
    orders.terminate_service(service_id=Service.objects.get().pk, actor=_customer())


def _is_at(step: str) -> bool:
    run = Run.objects.first()
    return bool(run and run.steps.filter(name=step, attempts__gt=0).exists())


def _terminate(works: Clockwork) -> None:
    _make(works)
    orders.terminate_service(service_id=Service.objects.get().pk, actor=_customer())


def _make(works: Clockwork) -> None:
    world.an_accepted_order()
    works.rest()
    assert Service.objects.get().state == ServiceState.ACTIVE


def _customer() -> User:
    return User.objects.get()


STARTS: dict[tuple[str, bool], Start] = {  # (blueprint, undoing)
    ("bare_metal", False): Start(_order, ServiceState.ACTIVE),
    ("bare_metal", True): Start(_cancel_late, ServiceState.TERMINATED),
    ("bare_metal_removal", False): Start(_terminate, ServiceState.TERMINATED),
}


@dataclass(frozen=True)
class Case:
    """One fault at one place."""

    place: Place
    fault: Fault

    def __str__(self) -> str:
        return f"{self.place} × {self.fault.name}"


def start_of(name: str, *, undoing: bool) -> Start:
    """How to begin. Raises LookupError that says what is missing."""
    found = STARTS.get((name, undoing))
    if found is None:
        way = "undoing of blueprint" if undoing else "blueprint"
        raise LookupError(
            f"the fault matrix does not know how the {way} {name!r} begins: add it to STARTS in"
            f" {__name__.replace('.', '/')}.py"
        )
    return found


def cases(tenant: Tenant) -> list[Case]:
    """Every case there is, found by walking through each blueprint once without a fault."""
    found = []
    for (name, version), blueprint in blueprints.ALL.items():
        ways = [False] + [True] * any(step.undo for step in blueprint.steps)
        for undoing in ways:
            for place in _places(tenant, name, version, undoing=undoing):
                found += [Case(place, fault) for fault in FAULTS if _applies(place, fault)]
    return found


def _applies(place: Place, fault: Fault) -> bool:
    """Kills between calls belong to the step, faults of calls to each call, where there are any."""
    return not fault.point or not place.call


def _places(tenant: Tenant, name: str, version: int, *, undoing: bool) -> list[Place]:
    start = start_of(name, undoing=undoing)
    with a_world(tenant) as works, listening(name, version) as heard:
        start.begin(works)
        works.rest()
        assert works.problems == [], f"{name} without any fault: {works.problems}"
    heard = [place for place in heard if place.undoing == undoing]
    reached = {place.step for place in heard}
    for step in blueprints.get(name, version).steps:
        if step.name not in reached and (step.undo or not undoing):
            raise LookupError(f"the start of {name} (undoing: {undoing}) never gets to {step.name}")
    return heard


@contextmanager
def a_world(tenant: Tenant) -> Iterator[Clockwork]:
    """A fake site that sells, gone at the end; inside the tenant."""
    with platform_context(), transaction.atomic():
        world.a_fake_site(nodes=NODES)
        operator = builders.a_person(role="operator")
        works = Clockwork([tenant])
        works.decide = lambda run: _try_again(run, operator)
        with tenant_context(tenant):
            builders.a_person()
            builders.a_project()
            yield works
        transaction.set_rollback(True)


def _try_again(run: Run, operator: User) -> None:
    services.retry_step(run_id=run.pk, actor=operator, reason="looked at")


def problems(case: Case, tenant: Tenant) -> list[str]:
    """What is wrong after a case; none when it went right."""
    start = start_of(case.place.blueprint, undoing=case.place.undoing)
    strike = Strike(case.place, case.fault)
    with a_world(tenant) as works:
        person, works.decide = works.decide, works.decide if case.fault.is_decided else None
        with strike.armed():
            start.begin(works)
            works.rest()
        works.decide = person  # comes late, and the fault is over
        works.rest()
        found = works.problems + _at_rest(tenant)
        if not strike.struck:
            found.append("the fault never struck")
        if case.fault.is_harmless:
            found += _cost_only_time(start)
        found += _put_away(works, tenant)
    return found


def _at_rest(tenant: Tenant) -> list[str]:
    nodes = world.fake().nodes
    return invariants.broken_at_rest(
        [tenant],
        [node.seen for node in nodes.values()],
        deploys={infra: node.deploys for infra, node in nodes.items()},
    )


def _cost_only_time(start: Start) -> list[str]:
    """After one passing fault the service is where it was to come, and no node was blamed."""
    found = []
    for service in Service.objects.exclude(state=start.rests_in):
        found.append(f"{service} is {service.state}, not {start.rests_in}")
    for node in Node.objects.filter(status=NodeStatus.QUARANTINED):
        found.append(f"{node.name} was blamed: {node.status_reason}")
    return found


def _put_away(works: Clockwork, tenant: Tenant) -> list[str]:
    """The customer ends what is left, and all is clean again."""
    works.problems.clear()
    for service in Service.objects.filter(state__in=invariants.RUNS_THERE):
        orders.terminate_service(service_id=service.pk, actor=_customer())
    works.rest()
    return [f"after its end: {text}" for text in works.problems + _at_rest(tenant)]


def sample(every: list[Case]) -> list[Case]:
    """A fixed part of the cases: each place once, each time with a fault rarely used so far."""
    places: dict[Place, list[Case]] = {}
    for case in every:
        places.setdefault(case.place, []).append(case)
    used: Counter[str] = Counter()
    chosen = []
    for found in places.values():
        rarest = min(found, key=lambda case: used[case.fault.name])
        used[rarest.fault.name] += 1
        chosen.append(rarest)
    return chosen
