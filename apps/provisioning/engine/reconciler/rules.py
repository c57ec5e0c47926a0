"""The rules: what of a picture is not as it should be. Pure functions; nothing is asked here."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from uuid import UUID

from apps.inventory.models import Node
from apps.inventory.observations import ObservedNode
from apps.inventory.states import NODE, NodeStatus
from apps.orders.models import ServiceProjection
from apps.orders.states import ServiceState
from apps.provisioning.engine.reconciler.picture import Picture
from apps.provisioning.models import Run
from apps.provisioning.ports import ObservedClaim, Port, Volume
from apps.provisioning.states import FindingKind as K

RUNS = (
    "active", "rescue", "rescue wait", "rescuing", "unrescuing", "rescue failed",
    "unrescue failed", "servicing", "service wait", "service hold", "service failed",
)  # fmt: skip
# How long a node may take in a state when no run of ours keeps the time.
LONGEST: dict[str, timedelta] = {
    **dict.fromkeys(("deploying", "wait call-back", "deploy hold"), timedelta(hours=1)),
    **dict.fromkeys(("cleaning", "clean wait", "clean hold"), timedelta(hours=8)),
    **dict.fromkeys(("deleting", "verifying", "adopting"), timedelta(minutes=30)),
    **dict.fromkeys(("inspecting", "inspect wait"), timedelta(hours=1)),
    **dict.fromkeys(("rescuing", "rescue wait", "unrescuing"), timedelta(hours=1)),
    **dict.fromkeys(("servicing", "service wait", "service hold"), timedelta(hours=8)),
}
SETTLES = timedelta(minutes=30)  # a node between two customers, with no run working on it
IN_USE = (ServiceState.ACTIVE, ServiceState.STOPPED, ServiceState.SUSPENDED)
POWER: dict[str, str] = {
    ServiceState.ACTIVE: "power on",
    ServiceState.STOPPED: "power off",
}
IDLE_STATES = ("manageable", "enroll")
FAULTS = ("clean failed", "deploy failed", "error", "inspect failed", "adopt failed")
NOTHING = "–"


@dataclass(frozen=True)
class Difference:
    """One thing that is not as it should be. `at_once`: no second look is waited for."""

    kind: K
    subject: str
    believed: str
    seen: str
    fix: str = ""
    node: Node | None = None
    tenant: UUID | None = None
    service: UUID | None = None
    at_once: bool = False


def differences(picture: Picture) -> Iterator[Difference]:
    """All of them."""
    for node in picture.nodes:
        seen = picture.reality.nodes.get(node.infra_id)
        if seen is None:
            yield Difference(K.NODE_GONE, node.name, node.status, "not listed", node=node)
        elif node.pk not in picture.busy:
            yield from _of_node(picture, node, seen)
    yield from _of_strangers(picture)
    for claim in picture.reality.claims or ():
        yield from _of_claim(picture, claim)
    for port in picture.reality.ports or ():
        yield from _of_thing(picture, K.ORPHAN_PORT, port, "delete_port")
    for volume in picture.reality.volumes or ():
        yield from _of_thing(picture, K.ORPHAN_VOLUME, volume, "delete_volume")
    yield from _of_addresses(picture)


def looked_at(picture: Picture) -> set[str]:
    """The kinds this look could have seen: others are not gone, only not asked about."""
    kinds = {str(kind) for kind in K}
    for kind, said in (
        (K.ORPHAN_CLAIM, picture.reality.claims),
        (K.ORPHAN_PORT, picture.reality.ports),
        (K.ORPHAN_VOLUME, picture.reality.volumes),
    ):
        if said is None:
            kinds.discard(str(kind))
    return kinds


# ---------------------------------------------------------------------- nodes
def _of_node(picture: Picture, node: Node, seen: ObservedNode) -> Iterator[Difference]:
    service = picture.service_on(node)
    if service is not None and service.state not in IN_USE:
        return  # being made or removed: its run will say
    if service is None:
        yield from _idle(picture, node, seen)
    else:
        yield from _in_use(node, seen, service)
    yield from _maintenance(node, seen, service)
    limit = LONGEST.get(seen.provision_state)
    if limit and seen.changed_at and picture.now - seen.changed_at > limit:
        yield _about(K.STUCK, node, node.status, _words(seen), service=service)


def _in_use(node: Node, seen: ObservedNode, service: ServiceProjection) -> Iterator[Difference]:
    """A node with a service on it: the service's server runs there, as powered as it should be."""
    believed = f"{service.name} {service.state}"
    if seen.provision_state not in RUNS:
        yield _about(K.LOST_SERVER, node, believed, _words(seen), "quarantine", service)
    elif seen.instance_id != service.service:
        yield _about(
            K.WRONG_INSTANCE,
            node,
            f"{believed} {service.service}",
            f"{_words(seen)} {seen.instance_id or NOTHING}",
            "quarantine",
            service,
        )
    elif seen.provision_state == "active" and not seen.maintenance:
        wanted = POWER.get(service.state)
        if wanted and seen.power_state in POWER.values() and seen.power_state != wanted:
            fix = wanted.replace(" ", "_")
            yield _about(K.POWER, node, f"{believed}: {wanted}", seen.power_state, fix, service)


def _idle(picture: Picture, node: Node, seen: ObservedNode) -> Iterator[Difference]:
    """A node without a service: nothing runs on it, nobody's name is on it."""
    if seen.instance_id is not None and picture.is_live(seen.instance_id):
        return  # being removed: its run is about to begin
    if seen.provision_state in RUNS:
        run = _maker(picture, seen.instance_id)
        yield Difference(
            K.ORPHAN_SERVER,
            node.name,
            node.status,
            f"{_words(seen)} {seen.instance_id or NOTHING}",
            fix="remove_server" if run is not None else _out(node),
            node=node,
            tenant=run.tenant if run else None,
            service=run.service if run else None,
        )
        return
    if seen.lessee:
        yield _about(K.LESSEE, node, NOTHING, seen.lessee, "clear_lessee")
    yield from _at_rest(picture, node, seen)
    held = seen.provision_state == "available" and seen.instance_id is not None
    if held and seen.instance_id not in picture.claimed:
        words = f"{_words(seen)} {seen.instance_id}"
        yield _about(K.ORPHAN_CLAIM, node, NOTHING, words, _out(node))


def _at_rest(picture: Picture, node: Node, seen: ObservedNode) -> Iterator[Difference]:
    """A node without a service that stands in a state nothing will lead it out of."""
    if seen.provision_state in FAULTS and node.status != NodeStatus.MAINTENANCE:
        ours = _maker(picture, seen.instance_id)
        is_free = seen.instance_id is None
        fix = "remove_server" if ours else "clean_node" if is_free else _out(node)
        yield _about(K.STUCK, node, node.status, _words(seen), fix)
    elif seen.provision_state in IDLE_STATES and node.status in (
        NodeStatus.AVAILABLE,
        NodeStatus.CLEANING,
    ):
        yield _about(K.STUCK, node, node.status, _words(seen), "clean_node")
    elif node.status == NodeStatus.CLEANING and seen.provision_state == "available":
        is_late = seen.changed_at is None or picture.now - seen.changed_at > SETTLES
        if is_late:
            yield _about(K.STUCK, node, node.status, _words(seen), "settle_node")


def _maintenance(
    node: Node, seen: ObservedNode, service: ServiceProjection | None
) -> Iterator[Difference]:
    """The site took the node for broken, or somebody there works on it."""
    if not seen.maintenance or node.status in (NodeStatus.MAINTENANCE, NodeStatus.QUARANTINED):
        return
    fix = "end_maintenance" if service is not None else _out(node) or "quarantine"
    if seen.fault:
        fix = "quarantine"
    said = f"maintenance {seen.fault}".strip()
    yield _about(K.MAINTENANCE, node, node.status, said, fix, service)


def _out(node: Node) -> str:
    """Taking the node out of our pool as well, where it is in none already."""
    return "take_out" if NODE.can(node.status, "service") else ""


def _maker(picture: Picture, instance: UUID | None) -> Run | None:
    """The run of ours whose server this is, if the server is wanted no more."""
    if instance is None or picture.is_live(instance):
        return None
    return next((run for run in picture.runs.values() if run.service == instance), None)


def _of_strangers(picture: Picture) -> Iterator[Difference]:
    for seen in picture.reality.nodes.values():
        if seen.infra_id not in picture.by_infra_id and seen.infra_id not in picture.retired:
            yield Difference(
                K.NODE_UNKNOWN,
                str(seen.infra_id),
                NOTHING,
                f"{seen.name} {_words(seen)}",
                fix="import_node",
            )


# ---------------------------------------------------------------------- claims and things
def _of_claim(picture: Picture, claim: ObservedClaim) -> Iterator[Difference]:
    node = picture.by_infra_id.get(claim.node) if claim.node else None
    if claim.id in picture.trials or (node is not None and node.pk in picture.busy):
        return
    on_it = picture.reality.nodes.get(claim.node) if claim.node else None
    if on_it is not None and on_it.provision_state in RUNS:
        return  # told as a server without a service
    run = picture.run_of_name(claim.name)
    is_ours = run is not None and run.service == claim.id
    if is_ours and (picture.is_live(claim.id) or _just_ended(picture, run)):
        return
    if not is_ours and node is None and not claim.name.startswith("neo-"):
        return  # somebody else's claim on somebody else's node
    yield Difference(
        K.ORPHAN_CLAIM,
        str(claim.id),
        NOTHING,
        f"{claim.name or NOTHING} {claim.state} {node.name if node else NOTHING}",
        fix="delete_claim" if is_ours else _out(node) if node else "",
        node=node,
        tenant=run.tenant if is_ours and run else None,
        service=claim.id if is_ours else None,
    )


def _of_thing(picture: Picture, kind: K, thing: Port | Volume, fix: str) -> Iterator[Difference]:
    if not thing.name.startswith("neo-"):
        return  # not ours to judge
    run = picture.run_of_name(thing.name)
    if run is not None and (picture.is_live(run.service) or _just_ended(picture, run)):
        return
    yield Difference(
        kind,
        thing.name,
        NOTHING,
        thing.name,
        fix=fix if run is not None else "",
        tenant=run.tenant if run else None,
        service=run.service if run else None,
    )


def _of_addresses(picture: Picture) -> Iterator[Difference]:
    for lease in picture.leases:
        service = picture.services.get(lease.service)
        if service is None or picture.is_live(lease.service):
            continue
        if service.ended_at is None or picture.now - service.ended_at < picture.grace:
            continue
        yield Difference(
            K.ORPHAN_ADDRESS,
            str(lease.address),
            f"{service.name} {service.state}",
            f"{lease.pool.name} {lease.address}",
            fix="release_address",
            tenant=lease.tenant,
            service=lease.service,
        )


def _just_ended(picture: Picture, run: Run | None) -> bool:
    return (
        run is not None and run.ended_at is not None and picture.now - run.ended_at < picture.grace
    )


def _about(
    kind: K,
    node: Node,
    believed: str,
    seen: str,
    fix: str = "",
    service: ServiceProjection | None = None,
) -> Difference:
    return Difference(
        kind,
        node.name,
        str(believed),
        seen,
        fix=fix,
        node=node,
        tenant=service.tenant if service else None,
        service=service.service if service else None,
    )


def _words(seen: ObservedNode) -> str:
    """What the site says of a node, in its own words."""
    words = [seen.provision_state]
    if seen.target_provision_state:
        words.append(f"→ {seen.target_provision_state}")
    if seen.last_error and seen.provision_state in FAULTS:
        words.append(f"({seen.last_error[:160]})")
    return " ".join(words)
