"""Taking a run's node out of the pool."""

from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.provisioning.models import Run


def quarantine_node(run: Run, reason: str) -> None:
    """Quarantine the run's node and open a ticket; inside the caller's transaction,
    safe to repeat.
    """
    if run.node_id is None:
        return
    node = Node.objects.get(pk=run.node_id)
    if node.status in (NodeStatus.QUARANTINED, NodeStatus.RETIRED):
        return
    inventory.quarantine(
        node=node, reason=reason[:400], ticket_title=f"{node.name}: {reason}"[:200]
    )
