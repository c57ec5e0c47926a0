"""The rescue system: booted beside the server's own disks, with a password its customer chose, and
left again.
"""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from apps.core.errors import NodeFault
from apps.orders import services as orders
from apps.orders.models import Condition, Service
from apps.orders.states import ServiceState
from apps.provisioning.blueprints.node_moves import proof
from apps.provisioning.blueprints.operation import operation
from apps.provisioning.blueprints.power import ON
from apps.provisioning.engine.steps import Done, Outcome, Step, Wait, Work
from apps.provisioning.evidence_words import AT_SITE
from apps.provisioning.models import Run
from apps.provisioning.passwords import forget_password, password_for

FAILED = ("rescue failed", "unrescue failed")
UNDER_WAY = ("rescuing", "rescue wait", "unrescuing")
LIMIT = timedelta(minutes=30)


def begin_rescue(work: Work) -> Outcome:
    """The rescue system runs."""
    return _reach(work, "rescue")


def end_rescue(work: Work) -> Outcome:
    """The server's own system runs; makes sure of it when a rescue has failed, too."""
    return _reach(work, "active")


def _reach(work: Work, wanted: str) -> Outcome:
    """A failed state is left once by asking again; failing again is the node's fault."""
    seen = work.compute.get_node(work.server.infra_id)
    state = seen.provision_state
    if state in UNDER_WAY or seen.is_reserved:
        return Wait(state, seconds=5)
    if state == wanted:
        evidence = [proof(AT_SITE, wanted, state)]
        return Done(evidence=evidence, then=lambda: forget_password(work.run))
    if state not in ("active", "rescue", *FAILED) or (state in FAILED and work.step.attempts > 3):
        raise NodeFault(f"{state}: {seen.last_error or 'no reason given'}")
    if wanted == "rescue":
        work.compute.rescue(work.server.infra_id, password=password_for(work.run))
    else:
        work.compute.unrescue(work.server.infra_id)
    return Wait("asked", seconds=5)


def _show_rescue(run: Run) -> None:
    """The rescue system is what the customer has now, charged as before."""
    orders.end_operation(service_id=run.service)
    if Service.objects.get(pk=run.service).state == ServiceState.ACTIVE:
        orders.show_condition(service_id=run.service, condition=Condition.RESCUE)


RESCUE = operation(
    "rescue",
    Step(
        "begin_rescue",
        _("Boot the rescue system"),
        do=begin_rescue,
        undo=end_rescue,
        limit=LIMIT,
    ),
    shows=Condition.RESCUING,
    on_success=_show_rescue,
)
UNRESCUE = operation(
    "unrescue",
    Step("end_rescue", _("Boot the server's own system"), do=end_rescue, limit=LIMIT),
    ON,
    shows=Condition.RESCUING,
)
