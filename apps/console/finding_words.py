"""What a kind of finding means and what to do about it; the long form is in docs/runbooks."""

from dataclasses import dataclass

from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.provisioning.states import FindingKind as K

RUNBOOK = "findings"  # the page of docs/runbooks


@dataclass(frozen=True)
class Guide:
    """Meaning and way out of one kind."""

    means: Promise
    todo: tuple[Promise, ...]


GUIDES: dict[str, Guide] = {
    K.ORPHAN_SERVER: Guide(
        _("Something runs on a node that no service of ours owns: power is used and nobody pays."),
        (
            _("Compare the instance with the services that have ended."),
            _("If it is ours, remove the server. If not, find out at the site who deployed it."),
        ),
    ),
    K.LOST_SERVER: Guide(
        _("A customer pays for a service whose server the site says is not running."),
        (
            _("Read the node's last error and the site's history."),
            _("Move the service to another server, then quarantine the node."),
        ),
    ),
    K.WRONG_INSTANCE: Guide(
        _("The site serves another instance on this node than the service we gave it to."),
        (
            _("Do not power the node off before it is clear whose data is on it."),
            _("Move the service to another server and quarantine the node."),
        ),
    ),
    K.POWER: Guide(
        _("The ledger says whether the customer is charged for a running server; power differs."),
        (_("Let the fix set the power. If it comes back, look at the BMC and the power supply."),),
    ),
    K.MAINTENANCE: Guide(
        _("The site took the node for broken, or a person there works on it."),
        (
            _("A fault heals by itself when the BMC answers again; otherwise open the server."),
            _("Maintenance set by a person: ask at the site before ending it."),
        ),
    ),
    K.NODE_GONE: Guide(
        _("The site no longer lists a node that we own, so it is not sold."),
        (
            _("Ask at the site whether it was removed or enrolled anew under another identity."),
            _("Retire the node here, or have it enrolled again and import it."),
        ),
    ),
    K.NODE_UNKNOWN: Guide(
        _("The site has a node that nobody imported."),
        (_("Import it to sell it, or accept the finding if it is not for sale."),),
    ),
    K.NOT_CLEANED: Guide(
        _("The node was used since it was last proven clean, and no cleaning followed."),
        (
            _("It is quarantined already. Clean it; with the proof it goes back into the pool."),
            _("Find out who used it: its disks may have held somebody's data."),
        ),
    ),
    K.STUCK: Guide(
        _("The node stands in a state that no work of ours will lead it out of."),
        (
            _("Read the node's last error. Clean it again, or take it out for repair."),
            _("A node that is locked for hours needs the site's conductor to be looked at."),
        ),
    ),
    K.LESSEE: Guide(
        _("The site still names a former customer on a node that nobody holds."),
        (_("Clear it, so that the next customer's node does not belong to the last one."),),
    ),
    K.ORPHAN_CLAIM: Guide(
        _("A claim keeps a node from being given to anybody, and no run of ours holds it."),
        (
            _("Ours are deleted by the fix. A foreign claim: ask at the site who made it."),
            _("Until then take the node out, so that nobody counts on it."),
        ),
    ),
    K.ORPHAN_PORT: Guide(
        _("A network port was left behind by a service that has ended."),
        (_("Delete it if a run of ours made it; otherwise ask who did."),),
    ),
    K.ORPHAN_VOLUME: Guide(
        _("A volume was left behind by a service that has ended: it costs, and holds data."),
        (_("Delete it if a run of ours made it and its customer no longer needs it."),),
    ),
    K.ORPHAN_ADDRESS: Guide(
        _("An address is held for a service that has ended, so nobody else gets it."),
        (_("Release it; no server answers there any more."),),
    ),
}
