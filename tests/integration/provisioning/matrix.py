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
from apps.provisioning.adapters.fake import FakeNode
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
    lost_nodes: int = 0  # taken out of the pool by what the case is about


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


def _ask(verb: str, *, first: str = "", **choices: str) -> Callable[[Clockwork], None]:
    """A server that runs, perhaps after other work, and then this work."""

    def begin(works: Clockwork) -> None:
        _make(works)
        if first:
            _operate(first, **(RESCUE if first == "rescue" else {}))
            works.rest()
        _operate(verb, **choices)

    return begin


def _operate(verb: str, **choices: str) -> None:
    services.operate(service_id=Service.objects.get().pk, verb=verb, actor=_customer(), **choices)


def _ask_and_undo(
    verb: str, step: str, *, first: str = "", **choices: str
) -> Callable[[Clockwork], None]:
    """Work that gets stuck at a step, until an operator has it undone."""

    def begin(works: Clockwork) -> None:
        _make(works)
        if first:
            _operate(first)
            works.rest()
        node = _server()
        node.power_is_stuck = True
        works.calls_home = lambda run: run.blueprint != f"bare_metal_{verb}"
        if verb == "replace_host":
            _lose_host()
        else:
            _operate(verb, **choices)
        _undo_at(works, step)
        node.power_is_stuck = False

    return begin


def _undo_at(works: Clockwork, step: str) -> None:
    works.until(lambda: _is_at_last(step))
    with platform_context():
        run = Run.objects.latest("created_at")
        operator = User.objects.get()
        services.undo_run(run_id=run.pk, actor=operator, reason="a drill")


def _is_at_last(step: str) -> bool:
    run = Run.objects.latest("created_at")
    return run.steps.filter(name=step, attempts__gt=0).exists()


def _server() -> FakeNode:
    node = Node.objects.get(pk=Service.objects.get().node_id)
    return world.fake().nodes[node.infra_id]


def _replace_host(works: Clockwork) -> None:
    _make(works)
    _lose_host()


def _lose_host() -> None:
    world.fake().break_down(_server().seen.infra_id)
    services.replace_host(
        service_id=Service.objects.get().pk, actor=_customer(), reason="no answer"
    )


S = ServiceState
RESCUE = {"password": "a-long-enough-secret"}
STARTS: dict[tuple[str, bool], Start] = {  # (blueprint, undoing)
    ("bare_metal", False): Start(_order, S.ACTIVE),
    ("bare_metal", True): Start(_cancel_late, S.TERMINATED),
    ("bare_metal_removal", False): Start(_terminate, S.TERMINATED),
    ("bare_metal_power_off", False): Start(_ask("power_off"), S.STOPPED),
    ("bare_metal_power_off", True): Start(_ask_and_undo("power_off", "switch_off"), S.ACTIVE),
    ("bare_metal_power_on", False): Start(_ask("power_on", first="power_off"), S.ACTIVE),
    ("bare_metal_power_on", True): Start(
        _ask_and_undo("power_on", "switch_on", first="power_off"), S.STOPPED
    ),
    ("bare_metal_reboot", False): Start(_ask("reboot"), S.ACTIVE),
    ("bare_metal_reboot", True): Start(_ask_and_undo("reboot", "switch_off"), S.ACTIVE),
    ("bare_metal_power_cycle", False): Start(_ask("power_cycle"), S.ACTIVE),
    ("bare_metal_power_cycle", True): Start(_ask_and_undo("power_cycle", "cut_power"), S.ACTIVE),
    ("bare_metal_reinstall", False): Start(_ask("reinstall"), S.ACTIVE),
    ("bare_metal_reinstall", True): Start(
        _ask_and_undo("reinstall", "prove_ready"), S.ACTIVE, lost_nodes=1
    ),
    ("bare_metal_rescue", False): Start(_ask("rescue", **RESCUE), S.ACTIVE),
    ("bare_metal_rescue", True): Start(_ask_and_undo("rescue", "begin_rescue", **RESCUE), S.ACTIVE),
    ("bare_metal_unrescue", False): Start(_ask("unrescue", first="rescue"), S.ACTIVE),
    ("bare_metal_replace_host", False): Start(_replace_host, S.ACTIVE, lost_nodes=1),
    ("bare_metal_replace_host", True): Start(
        _ask_and_undo("replace_host", "prove_ready"), S.SUSPENDED, lost_nodes=1
    ),
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
        if case.fault.is_harmless and not _gives_up(case):
            found += _cost_only_time(start)
        found += _put_away(works, tenant)
    return found


def _gives_up(case: Case) -> bool:
    """Where nobody is asked, an answer nobody foresaw ends the work, not the server."""
    made = blueprints.get(case.place.blueprint, case.place.version)
    return case.fault.name == "wrong answer" and not made.risks_node


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
    out = Node.objects.filter(status=NodeStatus.QUARANTINED)
    if out.count() != start.lost_nodes:
        found += [f"{node.name} was blamed: {node.status_reason}" for node in out]
    return found


def _put_away(works: Clockwork, tenant: Tenant) -> list[str]:
    """The customer ends what is left, and all is clean again."""
    works.problems.clear()
    for service in Service.objects.filter(state__in=invariants.OPEN_STATES):
        orders.terminate_service(service_id=service.pk, actor=_customer())
    works.rest()
    return [f"after its end: {text}" for text in works.problems + _at_rest(tenant)]


def sample(every: list[Case]) -> list[Case]:
    """A fixed part of the cases: each step once in each direction, with a fault rarely used so far,
    at whichever of its calls.
    """
    steps: dict[tuple[str, str, bool], list[Case]] = {}
    for case in every:
        place = case.place
        steps.setdefault((place.blueprint, place.step, place.undoing), []).append(case)
    used: Counter[str] = Counter()
    chosen = []
    for found in steps.values():
        fault = min((case.fault.name for case in found), key=lambda name: used[name])
        hits = [case for case in found if case.fault.name == fault]
        chosen.append(hits[used[fault] % len(hits)])
        used[fault] += 1
    return chosen
