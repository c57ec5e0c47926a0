"""Removing a bare metal server: access revoked, undeployed, cleaned with proof, node back in the
pool.
"""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from apps.core.errors import NodeFault
from apps.inventory import services as inventory
from apps.orders import services as orders
from apps.provisioning import evidence_words
from apps.provisioning.blueprints import node_moves
from apps.provisioning.blueprints.bare_metal import release_address
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Blueprint, Done, Outcome, Step, Wait, Work
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
                evidence_words.CLEANED_SIMULATED
                if cleaning.get("simulated")
                else evidence_words.CLEANED,
                "success",
                cleaning.get("result", "none"),
                ok=cleaning.get("result") == "success",
            )
        ],
    )


def power_off(work: Work) -> Outcome:
    """The node is off, where it can be told so."""
    seen = work.compute.get_node(work.server.infra_id)
    if seen.power_state != "power on" or seen.provision_state != "available":
        return Done()
    if not seen.is_reserved:
        work.compute.set_power(work.server.infra_id, on=False)
    return Wait("powering off", seconds=3)


def _end(run: Run) -> None:
    inventory.release_addresses(service=run.service)
    orders.finish_service(service_id=run.service, run=run.pk)
    node_moves.recycle_if_proven(run)


BARE_METAL_REMOVAL = Blueprint(
    name="bare_metal_removal",
    version=1,
    removes="bare_metal",
    on_success=_end,
    on_undone=_end,
    steps=(
        Step("revoke", _("Revoke access"), do=revoke, skippable=False),
        Step("remove", _("Remove and clean"), do=remove, limit=timedelta(hours=6), skippable=False),
        Step("power_off", _("Switch off"), do=power_off),
        Step("release_address", _("Return the address"), do=release_address),
    ),
)
