"""What can go wrong with sites, nodes, capacity and addresses."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Invalid


class OutOfCapacity(Conflict):
    """Fewer nodes are free than were asked for."""

    code = "out_of_capacity"
    message = _(
        "Only {free} free {resource_class} servers in {site}; you asked for {wanted}. Choose to "
        "wait in "
        "the queue, order fewer, or choose another site."
    )


class AddressesExhausted(Conflict):
    """No pool of the site has an address left."""

    code = "addresses_exhausted"
    message = _(
        "No free address in the {pools} address pools of {site}. Release servers there, or let an "
        "operator widen a pool."
    )


class NotProvenClean(Conflict):
    """A node may not go back into the pool on this evidence."""

    code = "not_proven_clean"
    message = _(
        "{node} stays out of the pool: {problem}. Let the site clean it, then give that cleaning "
        "as proof."
    )


class HeldLater(Conflict):
    """Somebody reserved the node for later."""

    code = "node_reserved"
    message = _("The server is reserved for somebody else. Choose an end until {latest}.")


class NodeHeld(Conflict):
    """Somebody still holds the node."""

    code = "node_held"
    message = _("{node} is still allocated. End or move the service on it first.")


class NothingAllocated(Conflict):
    """The service never held a node."""

    code = "nothing_allocated"
    message = _("The service holds no server, so there is none to replace.")


class DuplicateHardware(Invalid):
    """Two nodes claim one identity."""

    code = "duplicate_hardware"
    message = _(
        "{what} {value} already belongs to node {other}. Correct one of the two at the site, then "
        "import again."
    )


class MalformedMac(Invalid):
    """Not a MAC address."""

    code = "malformed_mac"
    message = _(
        "“{value}” is not a MAC address. Write 12 hexadecimal digits, such as 52:54:00:ab:00:01."
    )


class MissingValue(Invalid):
    """A value the product cannot do without."""

    code = "missing_value"
    message = _("{what} is empty. Set it on the node at the site, then import again.")


class UnknownGPU(Invalid):
    """A GPU the catalogue does not know."""

    code = "unknown_gpu"
    message = _("No GPU model “{value}” in the catalogue. Add it there first; known: {known}.")


class BadQuantity(Invalid):
    """A number that cannot be."""

    code = "bad_quantity"
    message = _("{what} is {value}; it must be a whole number from {minimum} to {maximum}.")


class BadAddress(Invalid):
    """Not an address, or one outside its pool."""

    code = "bad_address"
    message = _("“{value}” is not an address inside {prefix}. Give one of that network.")


class BadUrl(Invalid):
    """Not an address of a service."""

    code = "bad_url"
    message = _("“{value}” is not a web address. Write it as https://host:port/path.")


class TicketClosed(Conflict):
    """The work is over."""

    code = "ticket_closed"
    message = _("The ticket “{title}” is closed. Open a new one for new work.")


class MaintenanceEnded(Conflict):
    """The planned work is over or was cancelled."""

    code = "maintenance_ended"
    message = _("“{title}” is over. Plan new work instead.")


class UnknownDriver(Invalid):
    """Nothing installed speaks to such an infrastructure."""

    code = "unknown_driver"
    message = _("There is no driver “{driver}”. Choose one of: {known}; packages can add more.")
