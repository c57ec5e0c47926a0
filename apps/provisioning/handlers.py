"""Reactions of provisioning to what happens to orders and services."""

from uuid import UUID

from apps.core.models import OutboxEvent
from apps.core.outbox import on
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.provisioning import services, tasks
from apps.provisioning.engine import claims
from apps.provisioning.models import Run
from apps.provisioning.states import MOVING, RunStatus


@on("order.accepted")
def begin_making(event: OutboxEvent) -> None:
    """Start the work of each of the order's services; a repeat finds it begun."""
    for service in event.payload["services"]:
        run = services.start_run(service_id=UUID(service))
        if run is not None:
            tasks.wake_after_commit(run.pk)


@on("service.terminating")
def begin_removal(event: OutboxEvent) -> None:
    """Turn the making around, or start the removal."""
    services.end_work(service_id=event.subject)
    for run in Run.objects.filter(service=event.subject, status__in=MOVING):
        tasks.wake_after_commit(run.pk)


@on("service.node_given")
def go_on_with_node(event: OutboxEvent) -> None:
    """A service that waited in the queue has another node."""
    waiting = Run.objects.filter(service=event.subject, status__in=MOVING)
    ids = list(waiting.values_list("pk", flat=True))
    claims.wake(ids)
    for run_id in ids:
        tasks.wake_after_commit(run_id)


@on("service.work_ended")
def remove_after_work(event: OutboxEvent) -> None:
    """A service was ended while it was worked on: now its removal begins."""
    begin_removal(event)


@on("service.server_lost")
def replace_lost_server(event: OutboxEvent) -> None:
    """Its installation is gone and could not be made again on its own host."""
    services.replace_lost(service_id=event.subject, why=event.payload["why"])


@on("service.operation_begun")
def begin_operation(event: OutboxEvent) -> None:
    """Somebody asked something of a running service."""
    tasks.wake_after_commit(UUID(event.payload["run"]))


@on("service.ready")
def qualify_hardware(event: OutboxEvent) -> None:
    """The hardware of a server that was proven ready is qualified; once for each run."""
    run = Run.objects.filter(service=event.subject, status=RunStatus.SUCCEEDED).select_related(
        "node__site"
    )
    made = run.order_by("-ended_at").first()
    if made is not None and made.node is not None:
        inventory.note_proven(node=made.node, run=made.pk)


@on("node.available")
def qualify_cleaning(event: OutboxEvent) -> None:
    """So is hardware that was cleaned with proof; a node that was never deployed proves nothing."""
    node = Node.objects.select_related("site").filter(pk=event.subject).first()
    steps = [str(step) for step in (node.clean_proof or {}).get("steps", [])] if node else []
    if node is not None and steps and not any(step.startswith("never") for step in steps):
        inventory.note_cleaned(node=node)
