"""The fixes by name: what the button says, whether it is safe without a person, what is done."""

from collections.abc import Callable
from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.provisioning.engine.reconciler import acts, clean_acts
from apps.provisioning.engine.reconciler.acts import Again, Work


@dataclass(frozen=True)
class Fix:
    """A fix: what its button says, what follows, whether policy may do it by default."""

    label: Promise
    text: Promise
    act: Callable[[Work], str | Again]
    is_safe: bool = False


FIXES: dict[str, Fix] = {
    "power_on": Fix(
        _("Switch it on"),
        _("The site is asked to switch the server on; its service is active and charged."),
        acts.power_on,
        is_safe=True,
    ),
    "power_off": Fix(
        _("Switch it off"),
        _("The site is asked to switch the server off; its customer had stopped it."),
        acts.power_off,
    ),
    "release_address": Fix(
        _("Release the address"),
        _("The address goes back to its pool; its service has ended."),
        acts.release_address,
        is_safe=True,
    ),
    "clear_lessee": Fix(
        _("Clear the former customer"),
        _("The customer's name is taken off the node at the site."),
        acts.clear_lessee,
        is_safe=True,
    ),
    "delete_claim": Fix(
        _("Delete the claim"),
        _("Our own claim at the site is deleted; the run that made it has ended."),
        acts.delete_claim,
        is_safe=True,
    ),
    "delete_port": Fix(
        _("Delete the port"),
        _("A port that a run of ours made and left is deleted."),
        acts.delete_port,
    ),
    "delete_volume": Fix(
        _("Delete the volume"),
        _("A volume that a run of ours made and left is deleted with what is on it."),
        acts.delete_volume,
    ),
    "quarantine": Fix(
        _("Quarantine the node"),
        _("The node is given to nobody new and gets a ticket; who holds it keeps it."),
        acts.quarantine,
    ),
    "take_out": Fix(
        _("Take the node out"),
        _("The node is in maintenance with us as well, until somebody restores it."),
        acts.take_out,
    ),
    "end_maintenance": Fix(
        _("End the maintenance at the site"),
        _("The site takes the node for healthy again."),
        acts.end_maintenance,
    ),
    "import_node": Fix(
        _("Import the node"),
        _("The node becomes one of ours, as the site describes it."),
        acts.import_node,
    ),
    "remove_server": Fix(
        _("Remove the server"),
        _("The server is undeployed and its disks are cleaned. What is on it is lost."),
        clean_acts.remove_server,
    ),
    "clean_node": Fix(
        _("Clean the node"),
        _("The site cleans the node; with the proof of it, it goes back into the pool."),
        clean_acts.clean_node,
    ),
    "settle_node": Fix(
        _("Settle the node"),
        _("Back into the pool if the site's history proves a cleaning, else into quarantine."),
        clean_acts.settle_node,
    ),
}
