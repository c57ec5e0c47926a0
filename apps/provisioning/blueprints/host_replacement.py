"""Another host for a service whose own is lost: the old one is fenced and left, the new one made
and proven, the same service goes on with its name, address, image and keys.
"""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.core.errors import NodeFault, OutsideError, SiteUnreachable, Transient
from apps.inventory import services as inventory
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Node
from apps.inventory.selectors import live_allocation
from apps.notices import services as notices
from apps.orders import services as orders
from apps.orders.models import Condition, Service
from apps.orders.services.running import SUSPENDED_AT_MOST
from apps.orders.states import ServiceState
from apps.provisioning import evidence_words as words
from apps.provisioning.blueprints import server
from apps.provisioning.blueprints.bare_metal import access_of, settle_undone
from apps.provisioning.blueprints.node_moves import MOVING, REMOVABLE, proof, recycle_if_proven
from apps.provisioning.engine import journal
from apps.provisioning.engine.steps import Blueprint, Done, Outcome, Step, Wait, Work
from apps.provisioning.models import Run
from apps.provisioning.ports import Compute

PATIENCE = timedelta(minutes=5)  # for a host that may still be well enough to be switched off


def leave_host(work: Work) -> Outcome:
    """The lost host is off as far as it can be told, and the site lets go of the instance.

    It is undeployed where it obeys, so that it is cleaned before anybody restores it; a host that
    obeys nobody is put into maintenance with the instance taken from it.
    """
    lost = Node.objects.get(pk=UUID(work.run.wanted["lost_node"]))
    waited = work.now - (work.step.started_at or work.now)
    try:
        return _leave(work, lost, is_patient=waited < PATIENCE)
    except (SiteUnreachable, Transient):
        raise
    except NodeFault as fault:
        return Done(detail=f"{lost.name}: {fault.detail}")


def _leave(work: Work, lost: Node, *, is_patient: bool) -> Outcome:
    compute, service = work.compute, work.run.service
    seen = compute.get_node(lost.infra_id)
    if seen.instance_id != service:
        return Done(evidence=[_fenced(seen.power_state)], detail=f"{lost.name} is left")
    obeys = not seen.maintenance and seen.power_state != ""
    if is_patient and (seen.is_reserved or seen.provision_state in MOVING):
        return Wait("the host is at work", seconds=10)
    if is_patient and obeys and seen.power_state == "power on":
        _ask_off(compute, lost)
        return Wait("switching the lost host off", seconds=5)
    if is_patient and obeys and seen.provision_state in REMOVABLE:
        compute.undeploy(lost.infra_id)
        return Wait("removing what is on the lost host", seconds=10)
    compute.evict(lost.infra_id, instance=service, reason="NeoCloud OS: host lost")
    return Wait("the site lets go of the lost host", seconds=1)


def _ask_off(compute: Compute, lost: Node) -> None:
    try:
        compute.set_power(lost.infra_id, on=False)
    except SiteUnreachable:
        raise
    except OutsideError:
        return  # it is asked again at the next look, while patience lasts


def _fenced(power_state: str) -> dict[str, object]:
    """A host that cannot be asked may still run: said, not assumed."""
    known = power_state == "power off"
    return proof(words.POWER, "power off", power_state or words.NOT_TOLD, ok=known or None)


def take_host(work: Work) -> Outcome:
    """A free node of the same kind is the service's own; without one it waits, free of charge."""
    held = live_allocation(work.run.service)
    if held is None or str(held.node_id) == work.run.wanted["lost_node"]:
        try:
            return _take(work)
        except OutOfCapacity as error:
            return Wait(error.detail, seconds=15, shows=Condition.IN_QUEUE)
    if work.run.node_id != held.node_id:
        _move_to(work, held.node)
    return Done(detail=held.node.name)


@transaction.atomic
def _take(work: Work) -> Outcome:
    if not orders.lock_wanted(service_id=work.run.service, states=(ServiceState.SUSPENDED,)):
        return Wait("the service is wanted no more", seconds=2)
    allocation = inventory.replace_allocation(
        service=work.run.service,
        resource_class=work.run.wanted["resource_class"],
        traits=work.run.wanted["traits"],
    )
    _move_to(work, allocation.node)
    return Wait(f"{allocation.node.name} is taken", seconds=0)


def _move_to(work: Work, node: Node) -> None:
    Run.objects.filter(pk=work.run.pk, fence=work.run.fence).update(node=node)
    orders.describe_service(service_id=work.run.service, node_id=node.pk, node_name=node.name)
    journal.write(work.run, "replaced", step=work.step.name, detail=node.name)


def resume(work: Work) -> Outcome:
    """Active again from this transaction on, and charged."""
    access = access_of(work)
    return Done(
        then=lambda: orders.resume_service(
            service_id=work.run.service, run=work.run.pk, access=access
        )
    )


def _resumed(run: Run) -> None:
    orders.end_operation(service_id=run.service)


def _without_host(run: Run) -> None:
    """No host could be made. A service that was ended meanwhile is finished; any other stays
    suspended, free of charge, until a person finds one or its time is over.
    """
    if Service.objects.get(pk=run.service).state != ServiceState.SUSPENDED:
        settle_undone(run)
        return
    inventory.release(service=run.service)
    recycle_if_proven(run)  # the host that was tried; the lost one is out of the pool
    notices.tell_operators(
        kind="service.without_host",
        dedup_key=f"service.without_host:{run.pk}",
        subject=_("{service} of {order} has no host"),
        body=_("No other host could be made for {service} of {order}: {reason}"),
        link=f"/runs/{run.pk}/",
        service=run.service_name,
        order=run.order_number,
        reason=run.reason,
    )


HOST_REPLACEMENT = Blueprint(
    name="bare_metal_replace_host",
    version=1,
    verb="replace_host",
    serves="bare_metal",
    wanted_in=(ServiceState.SUSPENDED,),
    shows=Condition.REPLACING,
    replaces_nodes=True,
    on_success=_resumed,
    on_undone=_without_host,
    on_node_left=recycle_if_proven,
    steps=(
        Step(
            "leave_host",
            _("Leave the lost server"),
            do=leave_host,
            limit=timedelta(hours=1),
            skippable=False,
        ),
        Step("take_host", _("Take another server"), do=take_host, limit=SUSPENDED_AT_MOST),
        server.CLAIM,
        server.VALIDATE,
        server.SAME_ADDRESS,
        server.DEPLOY,
        server.POWER_ON,
        server.PROVE,
        Step("resume", _("Active again"), do=resume, skippable=False),
    ),
)
