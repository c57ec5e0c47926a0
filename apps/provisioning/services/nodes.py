"""Putting a node back into the pool, with the site's own proof that it is clean."""

from datetime import datetime
from typing import Any

from apps.accounts.models import User
from apps.core.errors import OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.provisioning import adapters
from apps.provisioning.errors import SiteSilent
from apps.provisioning.services.hands import given


def return_node(*, node: Node, actor: User, reason: str) -> Node:
    """Put a quarantined or serviced node back into the pool; its site is asked when it was last
    cleaned.

    For the platform's side. Raises ReasonMissing, NotProvenClean, NodeHeld, WrongStatus, or
    SiteSilent.
    """
    reason = given(reason)
    _is_held, lease_ended = inventory.last_lease(node)
    proof = None
    if lease_ended is not None and (node.cleaned_at is None or node.cleaned_at < lease_ended):
        try:
            record = adapters.compute_of(node.site).cleaning_since(node.infra_id, lease_ended)
        except OutsideError as error:
            raise SiteSilent(site=node.site.shown_name, detail=error.detail) from error
        if record.result != "none":
            proof = {
                "steps": list(record.steps),
                "started_at": record.started_at,
                "ended_at": record.ended_at,
                "result": record.result,
                "simulated": node.site.is_simulated,
            }
    return inventory.restore_node(node=node, actor=actor, reason=reason, proof=_as_json(proof))


def _as_json(proof: dict[str, Any] | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in proof.items()
    }
