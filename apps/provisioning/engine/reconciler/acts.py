"""What fixes do. Each looks again just before it acts and refuses when the thing is not as found.

Nothing is deleted that a run of ours did not make.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.core.errors import Refused
from apps.inventory import services as inventory
from apps.inventory.models import Allocation, Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NodeStatus
from apps.orders.models import ServiceProjection
from apps.orders.states import ServiceState
from apps.provisioning import adapters
from apps.provisioning.engine.reconciler.picture import LIVE
from apps.provisioning.models import Finding, Run
from apps.provisioning.ports import Compute, Port, Volume
from apps.provisioning.states import OPEN


@dataclass(frozen=True)
class Work:
    """What a fix is given; `actor` None: by policy."""

    finding: Finding
    compute: Compute
    actor: User | None

    @property
    def node(self) -> Node:
        """The node as we know it now. Raises Refused when the finding is about none."""
        if self.finding.node_id is None:
            raise Refused("the finding names no node")
        return Node.objects.select_related("site").get(pk=self.finding.node_id)

    @property
    def why(self) -> str:
        """The reason kept in the node's history."""
        return f"{self.finding.get_kind_display()}: {self.finding.seen}"[:300]


@dataclass(frozen=True)
class Again:
    """Begun; look again after a while."""

    detail: str
    seconds: float = 10.0


# ---------------------------------------------------------------------- looking once more
def seen_now(work: Work) -> ObservedNode:
    return work.compute.get_node(work.node.infra_id)


def refuse_working(work: Work) -> None:
    """A run works on the node by now: what it does counts."""
    if Run.objects.filter(node=work.finding.node_id, status__in=OPEN).exists():
        raise Refused("a run works on the node now")


def must_not_live(service: UUID | None) -> UUID:
    """What is removed was made by a run of ours, for a service that has ended."""
    if service is None or not Run.objects.filter(service=service).exists():
        raise Refused("nothing proves that it is ours")
    if Run.objects.filter(service=service, status__in=OPEN).exists():
        raise Refused("a run works for its service")
    if ServiceProjection.objects.filter(service=service, state__in=LIVE).exists():
        raise Refused("its service lives")
    return service


# ---------------------------------------------------------------------- acts
def _power(work: Work, *, on: bool) -> str | Again:
    wanted = ServiceState.ACTIVE if on else ServiceState.STOPPED
    service = work.finding.service
    if service is None:
        raise Refused("the finding names no service")
    held = Allocation.objects.filter(node=work.node, service=service, released_at=None)
    is_so = ServiceProjection.objects.filter(service=service, state=wanted).exists()
    if not is_so or not held.exists():
        raise Refused("the service is not in that state any more")
    refuse_working(work)
    seen = seen_now(work)
    target = "power on" if on else "power off"
    if seen.power_state == target:
        return target
    if seen.provision_state != "active":
        raise Refused(f"the node is {seen.provision_state}")
    if not seen.is_reserved:
        work.compute.set_power(work.node.infra_id, on=on)
    return Again(f"asked for {target}", seconds=3)


def power_on(work: Work) -> str | Again:
    return _power(work, on=True)


def power_off(work: Work) -> str | Again:
    return _power(work, on=False)


def release_address(work: Work) -> str:
    service = work.finding.service
    if (
        service is None
        or ServiceProjection.objects.filter(service=service, state__in=LIVE).exists()
    ):
        raise Refused("its service lives")
    if Run.objects.filter(service=service, status__in=OPEN).exists():
        raise Refused("a run works for its service")
    return f"{inventory.release_addresses(service=service)} released"


def clear_lessee(work: Work) -> str:
    if inventory.last_lease(work.node)[0]:
        raise Refused("the node is held")
    work.compute.clear_lessee(work.node.infra_id)
    return "lessee cleared"


def delete_claim(work: Work) -> str:
    must_not_live(work.finding.service)
    claim = next(
        (one for one in work.compute.list_claims() if one.id == work.finding.service), None
    )
    if claim is None:
        return "the claim was gone"
    run = Run.objects.filter(service=claim.id).order_by("created_at").first()
    if run is None or not claim.name.startswith("neo-"):
        raise Refused("nothing proves that it is ours")
    work.compute.delete_claim(claim.id)
    return f"{claim.name} deleted"


def delete_port(work: Work) -> str:
    network = adapters.network_of(work.finding.site)
    return _delete_thing(work, network.ports(), network.delete_port)


def delete_volume(work: Work) -> str:
    volumes = adapters.volumes_of(work.finding.site)
    if volumes is None:
        raise Refused("the site has no volumes")
    return _delete_thing(work, volumes.volumes(), volumes.delete_volume)


def _delete_thing(work: Work, there: Iterable[Port | Volume], delete: Callable[..., None]) -> str:
    service = must_not_live(work.finding.service)
    name = work.finding.subject
    if name not in {one.name for one in there}:
        return "it was gone"
    tails = {run.tail for run in Run.objects.filter(service=service)} | {service.hex[-12:]}
    if not any(name.startswith(f"neo-{tail}-") for tail in tails):
        raise Refused("nothing proves that it is ours")
    delete(name=name)
    return f"{name} deleted"


def quarantine(work: Work) -> str:
    with transaction.atomic():
        inventory.quarantine(node=work.node, reason=work.why, actor=work.actor)
    return "kept out of the pool, with a ticket"


def take_out(work: Work) -> str:
    node = work.node
    if node.status != NodeStatus.MAINTENANCE:
        inventory.service_node(node=node, actor=work.actor, reason=work.why)
    return "taken out of the pool"


def end_maintenance(work: Work) -> str | Again:
    seen = seen_now(work)
    if not seen.maintenance:
        return "not in maintenance"
    if seen.fault:
        raise Refused(f"the site calls it broken: {seen.fault}")
    work.compute.end_maintenance(work.node.infra_id)
    return "maintenance ended at the site"


def import_node(work: Work) -> str:
    wanted = work.finding.subject
    observed = [one for one in work.compute.discover() if str(one.infra_id) == wanted]
    if not observed:
        return "the site no longer lists it"
    report = inventory.import_nodes(site=work.finding.site, observed=observed, actor=work.actor)
    refused = [error.message for row in report.rows for error in row.errors]
    if refused:
        raise Refused("; ".join(str(one) for one in refused))
    return f"imported as {observed[0].name}"
