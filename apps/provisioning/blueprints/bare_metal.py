"""Making a bare metal server: claimed, validated, addressed, deployed, powered, proven, handed
over.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from ipaddress import ip_network
from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.catalog.models import Image
from apps.core.errors import NodeFault
from apps.core.secrets import new_token, token_hash
from apps.inventory import services as inventory
from apps.inventory.models import AddressLease
from apps.orders import services as orders
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.provisioning import evidence_words
from apps.provisioning.blueprints import node_moves
from apps.provisioning.engine.steps import Blueprint, Done, Outcome, Output, Step, Wait, Work
from apps.provisioning.models import CallHome, Run
from apps.provisioning.ports import Deployment
from apps.provisioning.probe import render_probe
from apps.provisioning.readiness import compare

ANY = "0.0.0.0"  # noqa: S104 - a default route, nothing is bound
# What Ironic says of a deployment its conductor did not live to end; the node is not to blame.
CONDUCTOR_DIED = "can't be resumed by conductor"
DEPLOYING = ("deploying", "wait call-back", "deploy hold")


@dataclass(frozen=True)
class Claimed(Output, step="claim_node"):
    """The instance Ironic's allocation names."""

    instance: str


@dataclass(frozen=True)
class Leased(Output, step="lease_address"):
    """How the server is reached: its address with the prefix, its way out, its names."""

    address: str
    gateway: str
    dns: list[str]
    vlan: int | None

    @property
    def ip(self) -> str:
        """The address without the prefix."""
        return self.address.partition("/")[0]


@dataclass(frozen=True)
class Proven(Output, step="prove_ready"):
    """What the server said of itself that its customer needs."""

    host_keys: list[str] = field(default_factory=list)


def claim_node(work: Work) -> Outcome:
    """Ironic agrees that the node is ours: its allocation carries the service's id."""
    held = work.compute.reserve(
        work.server.infra_id, name=work.name("claim"), instance=work.run.service
    )
    if not held:
        return Wait("the claim is being decided", seconds=1)
    return Done(Claimed(str(work.run.service)), detail=work.server.name)


def unclaim_node(work: Work) -> Outcome:
    """No allocation of ours is left in Ironic."""
    work.compute.unreserve(work.server.infra_id, name=work.name("claim"), instance=work.run.service)
    return Done()


def validate_node(work: Work) -> Outcome:
    """The node could be deployed, says its driver."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.maintenance:
        raise NodeFault(f"in maintenance: {seen.fault or seen.last_error}")
    work.compute.validate(work.server.infra_id)
    return Done(
        evidence=[node_moves.proof(evidence_words.INTERFACES, "power, deploy", "ok", ok=True)]
    )


def lease_address(work: Work) -> Outcome:
    """An address of the site's pools is held for the service."""
    lease = inventory.lease_address(
        site=work.site, tenant=work.run.tenant, service=work.run.service
    )
    prefix = ip_network(lease.pool.prefix).prefixlen
    return Done(
        Leased(f"{lease.address}/{prefix}", lease.pool.gateway, lease.pool.dns, lease.vlan),
        evidence=[
            node_moves.proof(evidence_words.NETWORK, "", evidence_words.STATIC_NETWORK, ok=None)
        ],
        detail=str(lease.address),
    )


def release_address(work: Work) -> Outcome:
    """No address is held for the service any more."""
    return Done(then=lambda: _release(work))


def _release(work: Work) -> None:
    inventory.release_addresses(service=work.run.service)


def deploy(work: Work) -> Outcome:
    """The image and the config drive are on the node. Begins at most once for each node's try."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.provision_state == "active" and seen.instance_id == work.run.service:
        return Done(detail="deployed")
    if seen.provision_state in DEPLOYING:
        return Wait("deploying")
    if seen.provision_state in ("deploy failed", "error"):
        if seen.is_reserved:
            return Wait("the conductor still holds the failed node", seconds=5)
        if seen.provision_state == "deploy failed" and CONDUCTOR_DIED in seen.last_error:
            work.compute.deploy(work.server.infra_id, _deployment(work))
            return Wait("deploying again: the site's conductor had died", seconds=30)
        raise NodeFault(f"{seen.provision_state}: {seen.last_error or 'no reason given'}")
    if seen.provision_state != "available" or seen.instance_id != work.run.service:
        raise NodeFault(
            f"expected an available node claimed by us, found {seen.provision_state}"
            f" of {seen.instance_id}"
        )
    work.compute.deploy(work.server.infra_id, _deployment(work))
    return Wait("deploying", seconds=30)


def _deployment(work: Work) -> Deployment:
    """What to deploy, with a new one-time token each time it is asked for.

    The tokens of earlier requests to this node stay valid until it is undeployed: one that seemed
    lost may be the one that was carried out.
    """
    token = new_token("neo_home")
    CallHome.objects.create(
        run=work.run,
        tenant=work.run.tenant,
        node=work.server,
        token_hash=token_hash(token),
    )
    image = Image.objects.get(code=work.run.wanted["image"])
    network = work.output(Leased)
    url = f"{work.site.call_home_url.rstrip('/')}/{work.run.pk}"
    return Deployment(
        image_source=image.source,
        image_checksum=image.checksum,
        display_name=work.run.service_name,
        config_drive={
            "meta_data": {
                "uuid": str(work.run.service),
                "name": work.run.service_name,
                "hostname": work.run.service_name.lower(),
                "public_keys": {
                    f"key-{index}": key
                    for index, key in enumerate(work.run.wanted["ssh_keys"], start=1)
                },
            },
            "network_data": _network_data(work, network),
            "user_data": render_probe(call_home_url=url, token=token),
        },
    )


def _network_data(work: Work, network: Leased) -> dict[str, Any]:
    """OpenStack's network_data.json: one link, one static address, a default route.

    Format: https://docs.openstack.org/nova/latest/user/metadata.html
    """
    nic = work.server.nics.order_by("mac").first()
    prefix = network.address.partition("/")[2]
    return {
        "links": [
            {
                "id": "link0",
                "type": "phy",
                "ethernet_mac_address": nic.mac if nic else "",
                "mtu": 9000,
            }
        ],
        "networks": [
            {
                "id": "network0",
                "link": "link0",
                "type": "ipv4",
                "ip_address": network.ip,
                "netmask": str(ip_network(f"0.0.0.0/{prefix}").netmask),
                "routes": [{"network": ANY, "netmask": ANY, "gateway": network.gateway}],
            }
        ],
        "services": [{"type": "dns", "address": one} for one in network.dns],
    }


def undeploy(work: Work) -> Outcome:
    """Nothing of ours is on the node any more, and it has been cleaned."""
    CallHome.objects.filter(run=work.run, revoked_at=None).update(revoked_at=work.now)
    return node_moves.remove_and_clean(work, since=work.step.started_at or work.run.created_at)


def power_on(work: Work) -> Outcome:
    """The node is on: a fake deploy leaves it off, a real one turns it on."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.power_state == "power on":
        return Done()
    if not seen.is_reserved:
        work.compute.set_power(work.server.infra_id, on=True)
    return Wait("powering on", seconds=3)


def prove_ready(work: Work) -> Outcome:
    """The server has called home and is what was bought; each item is kept as evidence."""
    invitation = (
        CallHome.objects.filter(run=work.run, revoked_at=None, received_at__isnull=False)
        .order_by("-received_at")
        .first()
    )
    if invitation is None:
        return Wait("waiting for the server to call home", seconds=30)
    evidence = compare(
        wanted={**work.run.wanted, "address": work.output(Leased).address},
        report=invitation.report or {},
    )
    wrong = [item for item in evidence if item["ok"] is False]
    if wrong:
        _keep_evidence(work, evidence)
        found = "; ".join(
            f"{one['item']}: wanted {one['wanted']}, got {one['seen']}" for one in wrong
        )
        raise NodeFault(f"not what was bought: {found}")
    report = invitation.report or {}
    return Done(
        Proven([str(key) for key in report.get("ssh_host_keys", [])]),
        evidence=evidence,
        then=lambda: _note_gpus(work, report),
        detail=f"{len(evidence)} checks passed",
    )


def _keep_evidence(work: Work, evidence: list[dict[str, Any]]) -> None:
    """The evidence of a refusal is kept too."""
    work.step.evidence = evidence
    work.step.save(update_fields=["evidence"])


def _note_gpus(work: Work, report: dict[str, Any]) -> None:
    inventory.note_gpus(node=work.server, reported=report["gpus"])


def hand_over(work: Work) -> Outcome:
    """The service is active from this transaction on, and charged."""
    service = Service.objects.get(pk=work.run.service)
    if service.state not in (ServiceState.PROVISIONING, ServiceState.ACTIVE):
        return Wait("the service is wanted no more", seconds=2)
    access = {
        "address": work.output(Leased).ip,
        "login": work.run.wanted["login"],
        "host_keys": work.output(Proven).host_keys,
    }
    return Done(then=lambda: _mark_ready(work, access), detail=f"ready at {access['address']}")


def _mark_ready(work: Work, access: dict[str, Any]) -> None:
    orders.mark_ready(service_id=work.run.service, run=work.run.pk, access=access)


def _readiness_limit(run: Run) -> timedelta:
    return timedelta(seconds=int(run.wanted["readiness_seconds"]))


def _nothing_more(run: Run) -> None:
    """Handing over has told everybody."""


def _settle_undone(run: Run) -> None:
    """All is undone: the customer never pays; a cancelled service is finished, a failed
    one failed.
    """
    service = Service.objects.get(pk=run.service)
    if service.state == ServiceState.DELETING:
        orders.finish_service(service_id=run.service, run=run.pk)
    else:
        orders.fail_service(service_id=run.service, run=run.pk, reason=run.reason)
    AddressLease.objects.filter(service=run.service, released_at=None).update(
        released_at=run.ended_at
    )
    node_moves.recycle_if_proven(run)


BARE_METAL = Blueprint(
    name="bare_metal",
    version=1,
    makes="bare_metal",
    replaces_nodes=True,
    on_success=_nothing_more,
    on_undone=_settle_undone,
    steps=(
        Step("claim_node", _("Claim a server"), do=claim_node, undo=unclaim_node),
        Step("validate_node", _("Check the hardware"), do=validate_node),
        Step("lease_address", _("Assign an address"), do=lease_address, undo=release_address),
        Step(
            "deploy",
            _("Install the operating system"),
            do=deploy,
            undo=undeploy,
            limit=timedelta(minutes=40),
        ),
        Step("power_on", _("Start the server"), do=power_on),
        Step(
            "prove_ready",
            _("Prove that it is ready"),
            do=prove_ready,
            limit_of=_readiness_limit,
            late="the server did not call home in time",
            skippable=False,
        ),
        Step("hand_over", _("Hand over"), do=hand_over, skippable=False),
    ),
)
