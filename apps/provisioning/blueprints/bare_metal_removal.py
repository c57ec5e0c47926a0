"""Removing a bare metal server: access revoked, undeployed, cleaned with proof, node back in the
pool.
"""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from apps.core.errors import NodeFault
from apps.inventory import services as inventory
from apps.orders import services as orders
from apps.orders.states import ServiceState
from apps.provisioning import evidence_words as words
from apps.provisioning.blueprints import node_moves
from apps.provisioning.blueprints.node_moves import proof
from apps.provisioning.blueprints.server import release_address
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Blueprint, Claim, Done, Outcome, Step, Wait, Work
from apps.provisioning.models import CallHome, Run


def revoke(work: Work) -> Outcome:
    """No invitation of the service is valid any more. Charging stopped when the service was
    terminated.
    """
    CallHome.objects.filter(run__service=work.run.service, revoked_at=None).update(
        revoked_at=work.now
    )
    return Done()


def remove(work: Work) -> Outcome:
    """The server is undeployed and cleaned; a node that cannot be cleaned is quarantined, the
    customer is free.
    """
    try:
        outcome = node_moves.remove_and_clean(work, since=work.run.created_at)
    except NodeFault as fault:
        reason = fault.detail
        return Done(
            {"cleaning": {"result": "failed", "detail": reason}},
            detail=reason,
            then=lambda: quarantine_node(work.run, reason),
        )
    if isinstance(outcome, Wait):
        return outcome
    cleaning = outcome.stored.get("cleaning") or {}
    return Done(
        outcome.output,
        evidence=[
            node_moves.proof(
                words.CLEANED_SIMULATED if cleaning.get("simulated") else words.CLEANED,
                "success",
                cleaning.get("result", "none"),
                ok=cleaning.get("result") == "success",
            )
        ],
    )


def vouch_clean(run: Run, claim: Claim) -> Done:
    """Two people vouch that nothing of the customer is left; nothing of it was measured."""
    return Done(
        {"cleaning": node_moves.claimed_cleaning(claim)},
        evidence=[node_moves.vouched(words.CLEAN_CLAIMED, claim)],
    )


def power_off(work: Work) -> Outcome:
    """The node is off, where it can be told so."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.power_state != "power on" or seen.provision_state != "available":
        return Done()
    if not seen.is_reserved:
        work.compute.set_power(work.server.infra_id, on=False)
    return Wait("powering off", seconds=3)


def verify(work: Work) -> Outcome:
    """Read back that nothing of the customer is left and that the node can serve the next one; what
    is not as it must be takes the node out of the pool, the customer is free all the same.
    """
    seen = work.compute.get_node(work.server.infra_id)
    if seen.is_reserved:
        return Wait("the conductor is at work on the node", seconds=3)
    if seen.instance_id not in (None, work.run.service):
        return Done(detail=f"the node serves {seen.instance_id} by now")
    carried = work.compute.carried(work.server.infra_id)
    maintenance = words.ON if seen.maintenance else words.OFF
    evidence = [
        proof(words.AT_SITE, "available", seen.provision_state),
        proof(words.MAINTENANCE, words.OFF, maintenance),
        proof(words.INSTANCE, words.NONE, str(seen.instance_id or words.NONE)),
        proof(words.LESSEE, words.NONE, seen.lessee or words.NONE),
        proof(words.LEFT_BEHIND, words.NOTHING, carried.image_source or words.NOTHING),
    ]
    wrong = [f"{one['item']}: {one['seen']}" for one in evidence if not one["ok"]]
    if wrong:
        reason = f"not as it must be after removal: {'; '.join(wrong)}"
        return Done(
            evidence=evidence, detail=reason, then=lambda: quarantine_node(work.run, reason)
        )
    return Done(evidence=evidence)


def _end(run: Run) -> None:
    inventory.release_addresses(service=run.service)
    orders.finish_service(service_id=run.service, run=run.pk)
    node_moves.recycle_if_proven(run)


BARE_METAL_REMOVAL = Blueprint(
    name="bare_metal_removal",
    version=2,
    removes="bare_metal",
    wanted_in=(ServiceState.DELETING,),
    cleans="remove",
    on_success=_end,
    on_undone=_end,
    steps=(
        Step("revoke", _("Revoke access"), do=revoke, skippable=False),
        Step(
            "remove",
            _("Remove and clean"),
            do=remove,
            limit=timedelta(hours=6),
            skippable=False,
            claim=vouch_clean,
        ),
        Step("power_off", _("Switch off"), do=power_off),
        Step("verify", _("Check what is left"), do=verify, skippable=False),
        Step("release_address", _("Return the address"), do=release_address),
    ),
)
