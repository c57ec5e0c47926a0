"""Readiness: what the server reports, what the site says and what is seen from outside, each item
kept as evidence of one of the seven points.
"""

from typing import Any

from apps.core.errors import NodeFault
from apps.inventory import services as inventory
from apps.provisioning import evidence_words as words
from apps.provisioning.adapters.outside import look_at
from apps.provisioning.blueprints.deployment import hostname_of
from apps.provisioning.blueprints.outputs import Leased, Proven
from apps.provisioning.engine.steps import Done, Outcome, Wait, Work
from apps.provisioning.models import CallHome
from apps.provisioning.readiness import compare, hardware_of, item


def prove_ready(work: Work) -> Outcome:
    """The server has called home and is what was bought; each item is kept as evidence."""
    invitation = (
        CallHome.objects.filter(
            run=work.run, node=work.server, revoked_at=None, received_at__isnull=False
        )
        .order_by("-received_at")
        .first()
    )
    if invitation is None:
        return Wait("waiting for the server to call home", seconds=30)
    report = invitation.report or {}
    wanted = {
        "disk_gb": 0,  # of work that began before disks were asked for
        **work.run.wanted,
        "address": work.output(Leased).address,
        "hostname": hostname_of(work),
    }
    evidence = [
        *_at_site(work),
        *compare(wanted=wanted, report=report),
        *_from_outside(work, report),
    ]
    wrong = [one for one in evidence if one["ok"] is False]
    if wrong:
        work.keep_evidence(evidence)
        found = "; ".join(
            f"{one['item']}: wanted {one['wanted']}, got {one['seen']}" for one in wrong
        )
        raise NodeFault(f"not what was bought: {found}")
    return Done(
        Proven([str(key) for key in report.get("ssh_host_keys", [])]),
        evidence=evidence,
        then=lambda: _note_hardware(work, report),
        detail=f"{len(evidence)} checks passed",
    )


def _at_site(work: Work) -> list[dict[str, Any]]:
    """The site shows the server, on and ours."""
    seen = work.compute.get_node(work.server.infra_id)
    ours = seen.instance_id == work.run.service
    state, power = seen.provision_state, seen.power_state
    return [
        item(words.RESOURCE, words.AT_SITE, "active", state or words.NONE, ok=state == "active"),
        item(
            words.RESOURCE,
            words.INSTANCE,
            words.OURS,
            words.OURS if ours else str(seen.instance_id or words.NONE),
            ok=ours,
        ),
        item(words.RESOURCE, words.POWER, "power on", power or words.NONE, ok=power == "power on"),
    ]


def _from_outside(work: Work, report: dict[str, Any]) -> list[dict[str, Any]]:
    """The SSH port answers with the host key the server reported, where a route exists."""
    if not work.site.is_routable:
        return [
            item(words.REACHABLE, words.PORT_OPEN, words.PRESENT, words.NO_ROUTE, ok=None),
            item(words.CREDENTIAL, words.HOST_KEY_SEEN, words.PRESENT, words.NO_ROUTE, ok=None),
        ]
    seen = look_at(work.output(Leased).ip)
    told = {str(key) for key in report.get("ssh_host_keys") or []}
    same = None if seen.host_keys is None else bool(seen.host_keys) and seen.host_keys <= told
    shown = words.NOT_TOLD if seen.host_keys is None else ", ".join(sorted(seen.host_keys))[:200]
    return [
        item(
            words.REACHABLE,
            words.PORT_OPEN,
            words.PRESENT,
            seen.banner or words.NONE,
            ok=bool(seen.banner),
        ),
        item(
            words.CREDENTIAL,
            words.HOST_KEY_SEEN,
            ", ".join(sorted(told))[:200],
            shown or words.NONE,
            ok=same,
        ),
    ]


def _note_hardware(work: Work, report: dict[str, Any]) -> None:
    inventory.note_gpus(node=work.server, reported=report["gpus"])
    inventory.note_hardware(node=work.server, reported=hardware_of(report))
