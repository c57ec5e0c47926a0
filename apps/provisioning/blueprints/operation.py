"""What every work on a running service shares: how it ends well, and how it ends badly."""

from collections.abc import Callable

from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.orders import services as orders
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.orders.verbs import LABELS
from apps.provisioning.engine.steps import Blueprint, Step
from apps.provisioning.models import Run


def operation(
    verb: str,
    *steps: Step,
    shows: str,
    wanted_in: tuple[str, ...] = (ServiceState.ACTIVE,),
    risks_node: bool = False,
    on_success: Callable[[Run], None] | None = None,
    on_undone: Callable[[Run], None] | None = None,
) -> Blueprint:
    """A blueprint for one verb of a bare metal service. Its node stays the service's own."""
    return Blueprint(
        name=f"bare_metal_{verb}",
        version=1,
        verb=verb,
        serves="bare_metal",
        steps=steps,
        shows=shows,
        wanted_in=wanted_in,
        keeps_node=True,
        risks_node=risks_node,
        on_success=on_success or over,
        on_undone=on_undone or failed,
    )


def over(run: Run) -> None:
    """It is done: the service shows its own state again."""
    orders.end_operation(service_id=run.service)


def failed(run: Run) -> None:
    """It could not be done and was taken back: the customer is told, the node gets a ticket."""
    verb = verb_of(run)
    if run.node_id is not None and Service.objects.get(pk=run.service).state in ALIVE:
        node = Node.objects.get(pk=run.node_id)
        title = f"{node.name}: {LABELS[verb]} failed"
        inventory.ensure_ticket(node=node, title=title, detail=run.reason, category="operation")
    orders.end_operation(service_id=run.service, failed=verb, run=run.pk)


ALIVE = (ServiceState.ACTIVE, ServiceState.STOPPED)


def verb_of(run: Run) -> str:
    """The verb a run of such a blueprint carries out."""
    return run.blueprint.removeprefix("bare_metal_")
