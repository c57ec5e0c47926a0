"""Making a bare metal server: claimed, validated, addressed, deployed, powered, proven, handed
over.
"""

from typing import Any

from django.utils.translation import gettext_lazy as _

from apps.inventory.models import AddressLease
from apps.orders import services as orders
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.provisioning.blueprints import node_moves, server
from apps.provisioning.blueprints.outputs import Leased, Proven
from apps.provisioning.engine.steps import Blueprint, Done, Outcome, Step, Wait, Work
from apps.provisioning.models import Run


def access_of(work: Work) -> dict[str, Any]:
    """The way into the server, as it was proven."""
    return {
        "address": work.output(Leased).ip,
        "login": work.run.wanted["login"],
        "host_keys": work.output(Proven).host_keys,
    }


def hand_over(work: Work) -> Outcome:
    """The service is active from this transaction on, and charged."""
    service = Service.objects.get(pk=work.run.service)
    if service.state not in (ServiceState.PROVISIONING, ServiceState.ACTIVE):
        return Wait("the service is wanted no more", seconds=2)
    access = access_of(work)
    return Done(then=lambda: _mark_ready(work, access), detail=f"ready at {access['address']}")


def _mark_ready(work: Work, access: dict[str, Any]) -> None:
    orders.mark_ready(service_id=work.run.service, run=work.run.pk, access=access)


def _nothing_more(run: Run) -> None:
    """Handing over has told everybody."""


def settle_undone(run: Run) -> None:
    """All is undone: the customer never pays; a cancelled service is finished, a failed
    one failed.
    """
    service = Service.objects.get(pk=run.service)
    if service.state == ServiceState.DELETING:
        orders.finish_service(service_id=run.service, run=run.pk)
    else:
        orders.fail_service(service_id=run.service, run=run.pk)
    AddressLease.objects.filter(service=run.service, released_at=None).update(
        released_at=run.ended_at
    )
    node_moves.recycle_if_proven(run)


BARE_METAL = Blueprint(
    name="bare_metal",
    version=1,
    makes="bare_metal",
    cleans="deploy",
    replaces_nodes=True,
    on_success=_nothing_more,
    on_undone=settle_undone,
    on_node_left=node_moves.recycle_if_proven,
    steps=(
        server.CLAIM,
        server.VALIDATE,
        server.ADDRESS,
        server.DEPLOY,
        server.POWER_ON,
        server.PROVE,
        Step("hand_over", _("Hand over"), do=hand_over, skippable=False),
    ),
)
