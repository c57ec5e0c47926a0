"""Belief and reality of a site at one instant, side by side: what the rules look at."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any
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
from apps.provisioning.ports import Compute, ObservedClaim, ObservedThing
from apps.provisioning.states import OPEN

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
    ports: Sequence[ObservedThing] | None = None
    volumes: Sequence[ObservedThing] | None = None
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
        return self.runs.get(match[1]) if match else None


def observe(compute: Compute) -> Reality:
    """One look at a site. Raises OutsideError when it does not list its nodes."""
    nodes = {one.infra_id: one for one in compute.list_nodes()}
    unsaid: list[str] = []
    return Reality(
        nodes=nodes,
        claims=_asked(compute, "list_claims", unsaid),
        ports=_asked(compute, "list_ports", unsaid),
        volumes=_asked(compute, "list_volumes", unsaid),
        unsaid=tuple(unsaid),
    )


def _asked(source: Any, name: str, unsaid: list[str]) -> list[Any] | None:
    """What a site lists, where its driver can; a refusal is noted and nothing is concluded."""
    ask = getattr(source, name, None)
    if ask is None:
        return None
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
        *(thing.name for thing in (*(reality.ports or ()), *(reality.volumes or ()))),
    ]
    tails = {match[1] for name in names if (match := OURS.match(name))}
    services = {
        *(node.instance_id for node in reality.nodes.values() if node.instance_id),
        *(claim.id for claim in claims),
    }
    found: Iterable[Run] = (
        Run.objects.filter(site=site)
        .annotate(own_tail=Right(Cast("id", CharField()), 12))
        .filter(Q(own_tail__in=tails) | Q(service__in=services))
    )
    return {run.tail: run for run in found}
