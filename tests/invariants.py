"""What must hold whatever fails: one place, asked by the fault matrix, the property test, the soak.

Each function answers the sentences that are wrong; none means that all is right.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from datetime import timedelta
from itertools import pairwise
from uuid import UUID

from django.db.models import Sum

from apps.core import clock
from apps.inventory.models import AddressLease, Allocation, Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NodeStatus
from apps.metering import selectors as metering
from apps.metering.selectors import Interval
from apps.orders import projections
from apps.orders.models import Fact, FactSource, QueueEntry, Service
from apps.orders.selectors import gpus_in_use, services_in_use
from apps.orders.states import ServiceState
from apps.provisioning import blueprints
from apps.provisioning.models import Run, RunEvent, RunStep
from apps.provisioning.states import MOVING, OPEN, RunStatus, StepStatus
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant

S = ServiceState
HOLDS = (S.PROVISIONING, S.ACTIVE, S.STOPPED, S.SUSPENDED)  # states in which a server is held
RUNS_THERE = (S.ACTIVE, S.STOPPED)  # a suspended one may have lost its server
OPEN_STATES = (*RUNS_THERE, S.SUSPENDED)
AT_WORK = ("active", "rescue")  # what the site says of a server somebody has
ENDED = (S.FAILED, S.TERMINATED)
PAYS = (S.ACTIVE, S.STOPPED)
SECOND = timedelta(seconds=1)
DEPLOYS = ("deploy", "reinstall")  # steps that put something on a node
OUT_OF_SALE = (NodeStatus.QUARANTINED, NodeStatus.MAINTENANCE, NodeStatus.RETIRED)
STEP_LINES = {
    StepStatus.DONE: ("done",),
    StepStatus.UNDONE: ("undone", "leak gone"),
    StepStatus.LEAKED: ("leaked",),
}
RUN_LINES = {
    RunStatus.SUCCEEDED: "succeeded",
    RunStatus.UNDONE: "ended",
    RunStatus.HELD: "held",
    RunStatus.UNDOING: "undo",
}


def broken(tenants: Iterable[Tenant]) -> list[str]:
    """What must hold at every instant, between any two transactions."""
    found: list[str] = []
    with platform_context():
        found += [*_nodes(), *_runs(), *_lines()]
    for tenant in tenants:
        with tenant_context(tenant):
            found += [f"{tenant.slug}: {text}" for text in _of_tenant(tenant)]
    return found


def broken_at_rest(
    tenants: Iterable[Tenant], seen: Iterable[ObservedNode], *, deploys: Mapping[UUID, int]
) -> list[str]:
    """What must hold besides once no run is open: the site agrees with us, nothing is left behind.

    `deploys` counts, for each node of the site, how often something was put on it.
    """
    found: list[str] = []
    tenants = list(tenants)
    with platform_context():
        found += _ended()
        found += _agreed({node.infra_id: node for node in seen}, _servers(tenants))
        found += _deployed(deploys)
    for tenant in tenants:
        with tenant_context(tenant):
            found += [f"{tenant.slug}: {text}" for text in _settled()]
    return found


# ---------------------------------------------------------------------- nodes and capacity
def _nodes() -> Iterator[str]:
    """A node is held by one service or by none, and its status says so."""
    held = Counter(
        Allocation.objects.filter(released_at=None, service__isnull=False).values_list(
            "node", flat=True
        )
    )
    for node in Node.objects.all():
        if held[node.pk] > 1:
            yield f"{node.name} is held {held[node.pk]} times"
        if node.status == NodeStatus.ALLOCATED and not held[node.pk]:
            yield f"{node.name} is allocated to nobody"
        if node.status in (NodeStatus.AVAILABLE, NodeStatus.CLEANING) and held[node.pk]:
            yield f"{node.name} is {node.status} and held"


def _runs() -> Iterator[str]:
    """A run that moves has a time at which it goes on; one that ended has none and no holder."""
    for run in Run.objects.all():
        if run.status in MOVING and run.next_try_at is None:
            yield f"{run} is stuck: {run.status} without a time to go on"
        if run.status == RunStatus.HELD and run.held_at is None:
            yield f"{run} is held since no time"
        if run.status not in OPEN and (run.ended_at is None or run.lease_until is not None):
            yield f"{run} ended at {run.ended_at}, leased until {run.lease_until}"


def _lines() -> Iterator[str]:
    """Each act of a run has its line in the journal."""
    told = set(RunEvent.objects.values_list("run_id", "step", "kind"))
    for step in RunStep.objects.select_related("run"):
        if step.started_at and (step.run_id, step.name, "started") not in told:
            yield f"{step.name} of {step.run} started without a line"
        lines = STEP_LINES.get(StepStatus(step.status), ())
        if lines and not any((step.run_id, step.name, line) in told for line in lines):
            yield f"{step.name} of {step.run} is {step.status} without a line"
    whole = {(run, kind) for run, _step, kind in told}
    for run in Run.objects.all():
        line = RUN_LINES.get(RunStatus(run.status))
        if (run.pk, "created") not in whole or (line and (run.pk, line) not in whole):
            yield f"{run} is {run.status} without a line"


# ---------------------------------------------------------------------- one tenant
def _of_tenant(tenant: Tenant) -> Iterator[str]:
    yield from projections.differences()
    held = Counter(
        Allocation.objects.filter(released_at=None, tenant=tenant.pk).values_list(
            "service", flat=True
        )
    )
    lost = _given_up()
    lost |= {
        service.pk
        for service in Service.objects.filter(state=S.SUSPENDED)
        if not held[service.pk]  # its host was lost, and no other found so far
    }
    for service in Service.objects.all():
        if held[service.pk] != (service.state in HOLDS and service.pk not in lost):
            yield f"{service} is {service.state} and holds {held[service.pk]} nodes"
        yield from _facts(service)
    yield from _quota(tenant, lost)


def _given_up() -> set[UUID]:
    """Services that are being undone for good: what they held has been given back already."""
    undoing = Run.objects.filter(status=RunStatus.UNDOING).exclude(outcome="replace")
    return {
        run.service for run in undoing if not blueprints.get(run.blueprint, run.version).keeps_node
    }


def _facts(service: Service) -> Iterator[str]:
    """Gapless, agreeing with the row; charged only from a proof on, and to the second."""
    facts = list(
        Fact.objects.filter(service=service, source=FactSource.LIVE).order_by("start_at", "id")
    )
    states = [fact.state for fact in facts]
    if not states or states[0] != S.PROVISIONING or states[-1] != service.state:
        yield f"{service} is {service.state}, its facts are {states}"
        return
    if any(fact.start_at.microsecond or fact.end_at for fact in facts):
        yield f"{service} has live facts with ends or parts of seconds"
    if (
        sum(state in (S.FAILED, S.DELETING) for state in states) > 1
        or states.count(S.TERMINATED) > 1
    ):
        yield f"{service} ended more than once: {states}"
    paid = [fact for fact in facts if fact.state in PAYS]
    if bool(paid) != (service.ready_at is not None):
        yield f"{service} is ready at {service.ready_at}, its facts are {states}"
    if paid:
        yield from _charge(service, facts, paid[0])


def _charge(service: Service, facts: list[Fact], first: Fact) -> Iterator[str]:
    if first.start_at != service.ready_at:
        yield f"{service} is charged from {first.start_at}, ready at {service.ready_at}"
    proofs = RunStep.objects.filter(
        run__service=service.pk, name="prove_ready", status=StepStatus.DONE
    )
    proven = [
        one.ended_at
        for one in proofs
        if one.ended_at and one.evidence and all(item["ok"] is not False for item in one.evidence)
    ]
    for before, fact in pairwise(facts):
        if fact.state != S.ACTIVE or before.state not in (S.PROVISIONING, S.SUSPENDED):
            continue
        if not any(before.start_at <= at < fact.start_at + SECOND for at in proven):
            yield f"{service} is active from {fact.start_at} without a proof that it was ready"
    until = clock.now().replace(microsecond=0)
    spans = metering.intervals(service=service.pk, until=until)
    yield from _gaps(service, spans)
    wanted = 0
    for fact, following in zip(facts, [*facts[1:], None], strict=True):
        end = following.start_at if following else until
        if fact.state in PAYS:
            wanted += max(0, int((end - fact.start_at).total_seconds()))
    got = sum(one.seconds for one in spans if one.state in PAYS)
    if got != wanted:
        yield f"{service} is charged {got} s instead of {wanted} s"


def _gaps(service: Service, spans: list[Interval]) -> Iterator[str]:
    for one, following in pairwise(spans):
        if one.end_at != following.start_at:
            yield f"{service} has a gap or an overlap at {one.end_at}"


def _quota(tenant: Tenant, lost: set[UUID]) -> Iterator[str]:
    """What the limits count is what the services are."""
    own = Service.objects.filter(state__in=HOLDS).exclude(pk__in=lost)
    held = own.aggregate(n=Sum("gpus"))["n"] or 0
    queued = QueueEntry.objects.filter(tenant=tenant.pk, left_at=None)
    waiting = queued.aggregate(n=Sum("gpus"))["n"] or 0
    used = gpus_in_use(tenant=tenant.pk)
    if used != held + waiting:
        yield f"the quota counts {used} GPUs, services and queue have {held} + {waiting}"
    if services_in_use(tenant=tenant.pk) < own.count():
        yield "the quota counts fewer services than there are"


# ---------------------------------------------------------------------- at rest
def _ended() -> Iterator[str]:
    for run in Run.objects.filter(status__in=OPEN):
        yield f"{run} is still {run.status} at {run.position}: {run.reason}"


def _servers(tenants: Iterable[Tenant]) -> dict[UUID, Service]:
    """Whose server each node is, by what we sold."""
    found: dict[UUID, Service] = {}
    for tenant in tenants:
        with tenant_context(tenant):
            for service in Service.objects.filter(state__in=RUNS_THERE):
                if service.node_id:
                    found[service.node_id] = service
    return found


def _agreed(seen: dict[UUID, ObservedNode], servers: dict[UUID, Service]) -> Iterator[str]:
    """No server without a service, no service without a server, nothing sold that is not clean."""
    for node in Node.objects.all():
        there, service = seen.get(node.infra_id), servers.get(node.pk)
        if service is not None:
            if there is None or there.provision_state not in AT_WORK:
                yield f"{service} has no server: {there and there.provision_state}"
            elif there.instance_id != service.pk:
                yield f"{service}'s node serves {there.instance_id}"
            continue
        if there is None or node.status in OUT_OF_SALE:
            continue  # a person looks after it
        if there.instance_id is not None or there.provision_state != "available":
            yield f"{node.name} is {node.status} and serves {there.instance_id}, an orphan"
        if node.status != NodeStatus.AVAILABLE:
            yield f"{node.name} is {node.status} with nobody at work on it"


def _deployed(deploys: Mapping[UUID, int]) -> Iterator[str]:
    """Nothing was put on a node more often than tries were made."""
    tries = RunStep.objects.filter(name__in=DEPLOYS, attempts__gt=0).count()
    tries += Run.objects.aggregate(n=Sum("replacements"))["n"] or 0
    done = sum(deploys.values())
    if done > tries:
        yield f"{done} deployments for {tries} tries"


def _settled() -> Iterator[str]:
    """Services rest in a state, their addresses are held as long as they are."""
    leases = Counter(
        AddressLease.objects.filter(released_at=None).values_list("service", flat=True)
    )
    for service in Service.objects.all():
        if service.state not in (*OPEN_STATES, *ENDED):
            yield f"{service} rests in {service.state} ({service.condition})"
        if service.state == S.SUSPENDED:
            continue
        if leases[service.pk] != (service.state in RUNS_THERE):
            yield f"{service} is {service.state} and holds {leases[service.pk]} addresses"
        if service.state in ENDED and service.condition:
            yield f"{service} has ended and still shows {service.condition}"
