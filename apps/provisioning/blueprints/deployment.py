"""Putting an operating system on a node and taking it off: image by checksum, config drive, lessee,
all of it read back.
"""

import json
import re
from ipaddress import ip_network
from typing import Any

from apps.catalog.models import Image
from apps.core.errors import NodeFault, Refused
from apps.core.secrets import new_token, token_hash
from apps.provisioning import evidence_words as words
from apps.provisioning.blueprints import node_moves
from apps.provisioning.blueprints.node_moves import CONDUCTOR_DIED, proof
from apps.provisioning.blueprints.outputs import Leased
from apps.provisioning.engine.steps import Done, Outcome, Wait, Work
from apps.provisioning.models import CallHome
from apps.provisioning.ports import Carried, Deployment
from apps.provisioning.probe import render_probe

ANY = "0.0.0.0"  # noqa: S104 - a default route, nothing is bound
DEPLOYING = ("deploying", "wait call-back", "deploy hold")
SHA = re.compile(r"(?:[0-9a-f]{64}|[0-9a-f]{128})", re.IGNORECASE)  # SHA-256 or SHA-512


def deploy(work: Work) -> Outcome:
    """The image and the config drive are on the node. Begins at most once for each node's try."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.provision_state == "active" and seen.instance_id == work.run.service:
        return _read_back(work)
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


def undeploy(work: Work) -> Outcome:
    """Nothing of ours is on the node any more, and it has been cleaned."""
    CallHome.objects.filter(run=work.run, node=work.server, revoked_at=None).update(
        revoked_at=work.now
    )
    return node_moves.remove_and_clean(work, since=work.step.started_at or work.run.created_at)


def _read_back(work: Work) -> Outcome:
    """What the site says it deployed is what was ordered; another image is a person's matter."""
    carried = work.compute.carried(work.server.infra_id)
    image = _image(work)
    evidence = [
        proof(words.IMAGE, image.source, carried.image_source),
        proof(words.CHECKSUM, image.checksum, carried.image_checksum),
        proof(words.LESSEE, str(work.run.tenant), carried.project_id or words.NONE),
        *_root_device(work, carried),
    ]
    wrong = [one for one in evidence if not one["ok"]]
    if wrong:
        work.keep_evidence(evidence)
        found = "; ".join(
            f"{one['item']}: {one['seen']} instead of {one['wanted']}" for one in wrong
        )
        raise Refused(f"the site deployed something else: {found}")
    return Done(evidence=evidence, detail="deployed")


def _root_device(work: Work, carried: Carried) -> list[dict[str, Any]]:
    hints = root_device_of(work)
    if not hints:
        return []
    return [proof(words.ROOT_DEVICE, json.dumps(hints), json.dumps(carried.root_device))]


def root_device_of(work: Work) -> dict[str, Any]:
    """The hints for the system disk, where the node's record has some."""
    hints = work.server.hardware.get("root_device")
    return dict(hints) if isinstance(hints, dict) else {}


def _image(work: Work) -> Image:
    """The image that was ordered. Raises Refused for one whose content nothing vouches for."""
    image = Image.objects.get(code=work.run.wanted["image"])
    if not SHA.fullmatch(image.checksum):
        raise Refused(
            f"image {image.code} has no SHA-256 or SHA-512 checksum; add one to the catalog"
        )
    return image


def _deployment(work: Work) -> Deployment:
    """What to deploy, with a new one-time token each time it is asked for.

    The tokens of earlier requests to this node stay valid until it is undeployed: one that seemed
    lost may be the one that was carried out.
    """
    image = _image(work)
    token = new_token("neo_home")
    CallHome.objects.create(
        run=work.run,
        tenant=work.run.tenant,
        node=work.server,
        token_hash=token_hash(token),
    )
    url = f"{work.site.call_home_url.rstrip('/')}/{work.run.pk}"
    login = work.run.wanted["login"]
    return Deployment(
        image_source=image.source,
        image_checksum=image.checksum,
        display_name=work.run.service_name,
        project_id=str(work.run.tenant),
        root_device=root_device_of(work),
        config_drive={
            "meta_data": {
                "uuid": str(work.run.service),
                "name": work.run.service_name,
                "hostname": hostname_of(work),
                "public_keys": {
                    f"key-{index}": key
                    for index, key in enumerate(work.run.wanted["ssh_keys"], start=1)
                },
            },
            "network_data": _network_data(work, work.output(Leased)),
            "vendor_data": {"cloud-init": _cloud_config(work, login)},
            "user_data": render_probe(call_home_url=url, token=token, login=login),
        },
    )


def hostname_of(work: Work) -> str:
    """The server's name on itself."""
    return work.run.service_name.lower()


def _cloud_config(work: Work, login: str) -> str:
    """The login with its keys, no password, no sign-in as root with one; JSON is YAML too."""
    config: dict[str, Any] = {
        "hostname": hostname_of(work),
        "ssh_pwauth": False,
        "disable_root": login != "root",
        "users": [
            {
                "name": login,
                "lock_passwd": True,
                "shell": "/bin/bash",
                "sudo": "ALL=(ALL) NOPASSWD:ALL",
                "ssh_authorized_keys": work.run.wanted["ssh_keys"],
            }
        ],
    }
    return "#cloud-config\n" + json.dumps(config)


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
