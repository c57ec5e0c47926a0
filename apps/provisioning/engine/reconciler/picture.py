"""Belief and reality of a site at one instant, side by side: what the rules look at."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import TypeVar
from uuid import UUID

from django.conf import settings
from django.db.models import CharField, Q
from django.db.models.functions import Cast, Right

from apps.core import clock
from apps.core.errors import OutsideError
from apps.inventory.models import AddressLease, Allocation, Node, Site
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NodeStatus
from apps.orders.models import ServiceProjection
from apps.orders.states import ServiceState
from apps.provisioning.models import Leak, Run, SiteCheck
from apps.provisioning.ports import Compute, Network, ObservedClaim, Port, Volume, Volumes
from apps.provisioning.states import OPEN

T = TypeVar("T")
OURS = re.compile(r"^neo-([0-9a-f]{12})-[a-z]+-\d+$")
LIVE = (
    ServiceState.PROVISIONING,
    ServiceState.ACTIVE,
    ServiceState.STOPPED,
    ServiceState.SUSPENDED,
    ServiceState.DELETING,
)


@dataclass(frozen=True)
class Reality:
    """What a site said in one look. None: it did not say, so nothing is known about these."""

    nodes: Mapping[UUID, ObservedNode]
    claims: Sequence[ObservedClaim] | None = None
    ports: Sequence[Port] | None = None
    volumes: Sequence[Volume] | None = None
    unsaid: tuple[str, ...] = ()


@dataclass(frozen=True)
class Picture:
    """Both sides of one site. `busy` are nodes somebody works on now: nothing is said of them."""

    site: Site
    now: datetime
    reality: Reality
    nodes: Sequence[Node]
    holders: Mapping[UUID, UUID] = field(default_factory=dict)  # node → the service on it
    services: Mapping[UUID, ServiceProjection] = field(default_factory=dict)
    busy: frozenset[UUID] = frozenset()
    working: frozenset[UUID] = frozenset()  # services with an open run
    runs: Mapping[str, Run] = field(default_factory=dict)  # of this site, by the tail in names
    grace: timedelta = timedelta(seconds=45)  # what ended so lately may not have settled there
    trials: frozenset[UUID] = frozenset()
    retired: frozenset[UUID] = frozenset()  # the site's ids of nodes we retired
    leases: Sequence[AddressLease] = ()

    @cached_property
    def by_infra_id(self) -> dict[UUID, Node]:
        """Our nodes by the site's id."""
        return {node.infra_id: node for node in self.nodes}

    @cached_property
    def claimed(self) -> set[UUID]:
        """What the site's claims stand for."""
        return {claim.id for claim in self.reality.claims or ()}

    @cached_property
    def by_service(self) -> dict[str, Run]:
        """The runs by the tail of their service: a port belongs to it, whichever run made it."""
        return {run.service.hex[-12:]: run for run in self.runs.values()}

    def service_on(self, node: Node) -> ServiceProjection | None:
        """The service that holds the node."""
        return self.services.get(self.holders.get(node.pk, node.pk))

    def is_live(self, service: UUID) -> bool:
        """Does the service still need what was made for it?"""
        found = self.services.get(service)
        return service in self.working or (found is not None and found.state in LIVE)

    def run_of_name(self, name: str) -> Run | None:
        """The run of ours that gave this name; None: nobody of us did."""
        match = OURS.match(name)
        if match is None:
            return None
        return self.runs.get(match[1]) or self.by_service.get(match[1])


def observe(compute: Compute, network: Network, volumes: Volumes | None) -> Reality:
    """One look at a site. Raises OutsideError when it does not list its nodes."""
    nodes = {one.infra_id: one for one in compute.list_nodes()}
    unsaid: list[str] = []
    return Reality(
        nodes=nodes,
        claims=_asked("claims", compute.list_claims, unsaid),
        ports=_asked("ports", network.ports, unsaid),
        volumes=_asked("volumes", volumes.volumes, unsaid) if volumes else None,
        unsaid=tuple(unsaid),
    )


def _asked(name: str, ask: Callable[[], Iterable[T]], unsaid: list[str]) -> list[T] | None:
    """What a site lists; a refusal is noted and nothing is concluded."""
    try:
        return list(ask())
    except OutsideError as error:
        unsaid.append(f"{name}: {error.detail}")
        return None


def picture_of(site: Site, reality: Reality) -> Picture:
    """Our belief beside it, read after the site was asked; for the platform's side."""
    now, grace = clock.now(), timedelta(seconds=settings.NEOCLOUD_GRACE_SECONDS)
    nodes = list(Node.objects.filter(site=site))
    held = Allocation.objects.filter(node__site=site, released_at=None, during__contains=now)
    holders = {one.node_id: one.service for one in held if one.service is not None}
    leases = list(
        AddressLease.objects.filter(pool__site=site, released_at=None).select_related("pool")
    )
    runs = _runs(site, reality, leases)
    at_work = Run.objects.filter(site=site).filter(Q(status__in=OPEN) | Q(ended_at__gt=now - grace))
    trials = SiteCheck.objects.filter(site=site).exclude(stage="")
    busy = {
        *at_work.exclude(node=None).values_list("node_id", flat=True),
        *Leak.objects.filter(site=site, gone_at=None, node__isnull=False).values_list(
            "node_id", flat=True
        ),
        *trials.exclude(node=None).values_list("node_id", flat=True),
    }
    wanted = {
        *holders.values(),
        *(lease.service for lease in leases),
        *(run.service for run in runs.values()),
    }
    return Picture(
        site=site,
        now=now,
        grace=grace,
        reality=reality,
        nodes=[node for node in nodes if node.status != NodeStatus.RETIRED],
        retired=frozenset(node.infra_id for node in nodes if node.status == NodeStatus.RETIRED),
        holders=holders,
        services={one.service: one for one in ServiceProjection.objects.filter(service__in=wanted)},
        busy=frozenset(busy),
        working=frozenset(at_work.values_list("service", flat=True)),
        runs=runs,
        trials=frozenset(trials.values_list("pk", flat=True)),
        leases=leases,
    )


def _runs(site: Site, reality: Reality, leases: Sequence[AddressLease]) -> dict[str, Run]:
    """The runs of this site that what was seen may belong to, by the last twelve hex digits."""
    claims = reality.claims or ()
    names = [
        *(claim.name for claim in claims),
        *(port.name for port in reality.ports or ()),
        *(volume.name for volume in reality.volumes or ()),
    ]
    tails = {match[1] for name in names if (match := OURS.match(name))}
    services = {
        *(node.instance_id for node in reality.nodes.values() if node.instance_id),
        *(claim.id for claim in claims),
    }
    found: Iterable[Run] = (
        Run.objects.filter(site=site)
        .annotate(
            own_tail=Right(Cast("id", CharField()), 12),
            service_tail=Right(Cast("service", CharField()), 12),
        )
        .filter(Q(own_tail__in=tails) | Q(service_tail__in=tails) | Q(service__in=services))
    )
    return {run.tail: run for run in found}
