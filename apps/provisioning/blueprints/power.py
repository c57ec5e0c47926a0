"""Power of a running server: off, on, reboot, power cycle. Each look asks for what is not yet so,
which makes a repeat harmless.
"""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from apps.orders import services as orders
from apps.orders.models import Condition
from apps.orders.states import ServiceState
from apps.provisioning.blueprints.operation import operation
from apps.provisioning.blueprints.server import powered
from apps.provisioning.engine.steps import Done, Outcome, Step, Work

GENTLE = timedelta(minutes=2)  # for the operating system to stop by itself
LIMIT = timedelta(minutes=10)


def switch_off(work: Work) -> Outcome:
    """The server is off: asked through its operating system at first, then without."""
    began = work.step.started_at or work.now
    return powered(work, on=False, soft=work.now - began < GENTLE)


def cut_power(work: Work) -> Outcome:
    """The server is off, whatever it was doing."""
    return powered(work, on=False)


def switch_on(work: Work) -> Outcome:
    """The server is on."""
    return powered(work, on=True)


def back_on(work: Work) -> Outcome:
    """As it was before: asked to be on, once; whether it is shows in the service."""
    work.compute.set_power(work.server.infra_id, on=True)
    return Done()


def back_off(work: Work) -> Outcome:
    """As it was before: asked to be off, once."""
    work.compute.set_power(work.server.infra_id, on=False)
    return Done()


def note_stopped(work: Work) -> Outcome:
    """Stopped from this transaction on: what runs is charged no more."""
    return Done(then=lambda: orders.stop_service(service_id=work.run.service, run=work.run.pk))


def note_started(work: Work) -> Outcome:
    """Active from this transaction on."""
    return Done(then=lambda: orders.start_service(service_id=work.run.service, run=work.run.pk))


OFF = Step("switch_off", _("Switch off"), do=switch_off, undo=back_on, limit=LIMIT)
CUT = Step("cut_power", _("Cut the power"), do=cut_power, undo=back_on, limit=LIMIT)
ON = Step("switch_on", _("Start the server"), do=switch_on, limit=LIMIT)
ON_FROM_OFF = Step("switch_on", _("Start the server"), do=switch_on, undo=back_off, limit=LIMIT)

POWER_OFF = operation(
    "power_off",
    OFF,
    Step("note_stopped", _("Stop charging what runs"), do=note_stopped, skippable=False),
    shows=Condition.POWERING,
)
POWER_ON = operation(
    "power_on",
    ON_FROM_OFF,
    Step("note_started", _("Active again"), do=note_started, skippable=False),
    shows=Condition.POWERING,
    wanted_in=(ServiceState.STOPPED,),
)
REBOOT = operation("reboot", OFF, ON, shows=Condition.REBOOTING)
POWER_CYCLE = operation("power_cycle", CUT, ON, shows=Condition.REBOOTING)
