"""The steps that every way of making a bare metal server shares: claimed, checked, addressed,
powered, proven.
"""

from dataclasses import replace
from datetime import timedelta
from ipaddress import ip_network

from django.utils.translation import gettext_lazy as _

from apps.core.errors import NodeFault, Refused
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.selectors import live_allocation
from apps.provisioning import adapters
from apps.provisioning import evidence_words as words
from apps.provisioning.blueprints.deployment import deploy, undeploy
from apps.provisioning.blueprints.node_moves import proof, vouched
from apps.provisioning.blueprints.outputs import Claimed, Leased, Proven
from apps.provisioning.blueprints.proving import prove_ready
from apps.provisioning.engine.steps import Claim, Done, Outcome, Step, Wait, Work
from apps.provisioning.models import Run


def claim_node(work: Work) -> Outcome:
    """Ironic and we agree on the node: its allocation carries the service's id, ours its node."""
    node = work.server
    ours = live_allocation(work.run.service)
    if ours is not None and ours.node_id != node.pk:
        raise Refused(f"we hold {ours.node.name} for the service, the run works on {node.name}")
    held = work.compute.reserve(node.infra_id, name=work.name("claim"), instance=work.run.service)
    if not held:
        return Wait("the claim is being decided", seconds=1)
    holder = work.compute.holder_of(work.run.service)
    if holder != node.infra_id:
        raise Refused(
            f"the site's allocation names {holder or 'no node'}, ours names {node.infra_id}"
            f" ({node.name}): they disagree"
        )
    return Done(
        Claimed(str(work.run.service)),
        evidence=[proof(words.ALLOCATION, str(node.infra_id), str(holder))],
        detail=node.name,
    )


def unclaim_node(work: Work) -> Outcome:
    """No allocation of ours is left in Ironic."""
    work.compute.unreserve(work.server.infra_id, name=work.name("claim"), instance=work.run.service)
    return Done()


def validate_node(work: Work) -> Outcome:
    """The node could be deployed, says its driver; nothing of a former customer is on it."""
    infra_id = work.server.infra_id
    seen = work.compute.get_node(infra_id)
    if seen.maintenance:
        raise NodeFault(f"in maintenance: {seen.fault or seen.last_error}")
    work.compute.validate(infra_id)
    evidence = [proof(words.INTERFACES, "power, deploy", "ok", ok=True)]
    if seen.lessee and seen.provision_state == "available":
        work.compute.clear_lessee(infra_id)
        left = work.compute.carried(infra_id).lessee
        evidence.append(proof(words.LESSEE, words.NONE, left or words.NONE, ok=not left))
        if left:
            raise NodeFault(f"still carries lessee {left}")
    known = work.compute.hardware(infra_id)
    return Done(
        evidence=evidence,
        then=lambda: inventory.note_hardware(node=work.server, reported=known),
    )


def lease_address(work: Work) -> Outcome:
    """An address of the site's pools is held for the service, and its port read back."""
    lease = inventory.lease_address(
        site=work.site, tenant=work.run.tenant, service=work.run.service
    )
    prefix = ip_network(lease.pool.prefix).prefixlen
    wanted = f"{lease.address}/{prefix}"
    port = adapters.network_of(work.site).ensure_port(
        name=port_name(work), node=work.server.infra_id, address=wanted, vlan=lease.vlan
    )
    seen = f"{port.address}, VLAN {port.vlan}"
    if port.is_verifiable:
        evidence = proof(words.NETWORK, f"{wanted}, VLAN {lease.vlan}", seen)
    else:
        evidence = proof(words.NETWORK, "", words.STATIC_NETWORK, ok=None)
    if evidence["ok"] is False:
        work.keep_evidence([evidence])
        raise Refused(f"port {port.id} has {seen} instead of {wanted}, VLAN {lease.vlan}")
    return Done(
        Leased(wanted, lease.pool.gateway, lease.pool.dns, lease.vlan, port.id),
        evidence=[evidence],
        detail=str(lease.address),
    )


def release_address(work: Work) -> Outcome:
    """No port and no address is held for the service any more."""
    adapters.network_of(work.site).delete_port(name=port_name(work))
    return Done(then=lambda: _release(work))


def drop_port(work: Work) -> Outcome:
    """No port is left; the address stays the service's own."""
    adapters.network_of(work.site).delete_port(name=port_name(work))
    return Done()


def port_name(work: Work) -> str:
    """A service has one port, whichever run made it."""
    return f"neo-{work.run.service.hex[-12:]}-port-1"


def _release(work: Work) -> None:
    inventory.release_addresses(service=work.run.service)


def power_on(work: Work) -> Outcome:
    """The node is on: a fake deploy leaves it off, a real one turns it on."""
    return powered(work, on=True)


def powered(work: Work, *, on: bool, soft: bool = False) -> Outcome:
    """The node is on, or off, and its conductor is done with it."""
    wanted = "power on" if on else "power off"
    seen = work.compute.get_node(work.server.infra_id)
    if seen.is_reserved:
        return Wait("the conductor is at work on the node", seconds=3)
    if seen.power_state == wanted:
        return Done(evidence=[proof(words.POWER, wanted, seen.power_state)], detail=wanted)
    work.compute.set_power(work.server.infra_id, on=on, soft=soft)
    return Wait("powering on" if on else "powering off", seconds=3)


def vouch_ready(run: Run, claim: Claim) -> Done:
    """Two people vouch for the server; nothing of it was measured."""
    return Done(Proven(), evidence=[vouched(words.READY_CLAIMED, claim)])


def _claim_left(run: Run, node: Node | None) -> str:
    return f"allocation {run.service} on {node.name if node else '?'}"


def _port_left(run: Run, node: Node | None) -> str:
    return f"port of {run.service} on {node.name if node else '?'}"


def _server_left(run: Run, node: Node | None) -> str:
    where = f"{node.name} ({node.infra_id})" if node else "?"
    return f"instance {run.service} on {where}"


def _readiness_limit(run: Run) -> timedelta:
    return timedelta(seconds=int(run.wanted["readiness_seconds"]))


CLAIM = Step(
    "claim_node",
    _("Claim a server"),
    do=claim_node,
    undo=unclaim_node,
    leaves=_claim_left,
)
VALIDATE = Step("validate_node", _("Check the hardware"), do=validate_node)
ADDRESS = Step(
    "lease_address",
    _("Assign an address"),
    do=lease_address,
    undo=release_address,
    skippable=False,  # what comes after cannot do without it
    leaves=_port_left,
)
SAME_ADDRESS = replace(ADDRESS, undo=drop_port)
DEPLOY = Step(
    "deploy",
    _("Install the operating system"),
    do=deploy,
    undo=undeploy,
    limit=timedelta(minutes=40),
    leaves=_server_left,
)
POWER_ON = Step("power_on", _("Start the server"), do=power_on)
PROVE = Step(
    "prove_ready",
    _("Prove that it is ready"),
    do=prove_ready,
    limit_of=_readiness_limit,
    late="the server did not call home in time",
    skippable=False,
    claim=vouch_ready,
)
