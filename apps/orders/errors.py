"""What can go wrong with orders and services."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Forbidden, Invalid, NotFound
from apps.inventory.errors import OutOfCapacity


class UnknownOffering(Invalid):
    """No such SKU, or not for this tenant: the same answer."""

    code = "unknown_offering"
    message = _("There is no offering {sku}. Choose one of the catalog: {known}.")


class UnknownSite(Invalid):
    """No such site, or it sells nothing now."""

    code = "unknown_site"
    message = _("Site {site} does not sell {sku}. Choose one of: {known}.")


class SiteSilent(Conflict):
    """The site has not answered for a while: what it last said of its servers may be wrong."""

    code = "site_silent"
    message = _(
        "Site {site} has not answered since {since}. Choose another site, or try again when it "
        "answers."
    )


class OthersWait(OutOfCapacity):
    """Servers may be free, but they belong to who has waited longer."""

    message = _(
        "Others already wait for {resource_class} servers in {site} ({waiting} in the queue), "
        "so none is free. "
        "Choose to wait in the queue, or choose another site."
    )


class WrongQuantity(Invalid):
    """Too few or too many servers."""

    code = "wrong_quantity"
    message = _("Quantity must be a whole number from 1 to {most}; you asked for {asked}.")


class WrongCurrency(Invalid):
    """The currency of a tenant is fixed by its contract with the operator."""

    code = "wrong_currency"
    message = _(
        "Your account is billed in {currency}; {asked} is not possible. "
        "Leave it out or send {currency}."
    )


class WrongName(Invalid):
    """A server's name becomes its host name."""

    code = "wrong_name"
    message = _(
        "The name must be 1 to 60 letters, digits and hyphens, beginning with a letter; "
        "“{asked}” is not."
    )


class WrongImage(Invalid):
    """The offering has other images."""

    code = "wrong_image"
    message = _("{sku} cannot be deployed with image {image}. Choose one of: {known}.")


class NoKeys(Invalid):
    """Without a key nobody could sign in to the server."""

    code = "no_ssh_key"
    message = _("Choose or paste at least one SSH public key; without one nobody can sign in.")


class UnknownKey(Invalid):
    """The key is not one of this person's tenant."""

    code = "unknown_ssh_key"
    message = _("SSH key {key} does not exist. Choose one of your keys or paste a public key.")


class UnknownProject(Invalid):
    """No such project here, or it is archived."""

    code = "unknown_project"
    message = _("Project {project} does not exist. Choose one of: {known}.")


class WrongChoice(Invalid):
    """One of few words was expected."""

    code = "wrong_choice"
    message = _("{name} must be one of {known}; you sent {asked}.")


class QuoteNotFound(NotFound):
    """No such quote in this tenant."""

    code = "quote_not_found"


class QuoteExpired(Conflict):
    """The terms were offered until an instant that has passed."""

    code = "quote_expired"
    message = _("The quote was valid until {until}. Ask for a new quote.")


class QuotaExceeded(Conflict):
    """The tenant's or the project's limit would be passed."""

    code = "quota_exceeded"
    message = _(
        "The limit of {whose} is {limit} GPUs and {used} are in use; {asked} more do not fit. "
        "End a service, or ask for a higher limit."
    )


class TooManyServices(Conflict):
    """The tenant's limit of services would be passed."""

    code = "too_many_services"
    message = _(
        "The limit is {limit} services and {used} exist; {asked} more do not fit. "
        "End a service, or ask for a higher limit."
    )


class NotCancellable(Conflict):
    """Servers of the order are in use already."""

    code = "not_cancellable"
    message = _("{number} has servers in use. Terminate the services instead.")


class Protected(Conflict):
    """Termination protection is on."""

    code = "termination_protected"
    message = _("{name} is protected against termination. Take the protection off first.")


class NameNotConfirmed(Invalid):
    """The name typed to confirm is another one."""

    code = "name_not_confirmed"
    message = _("To terminate it, type the name of the service: {name}.")


class LimitTooLow(Invalid):
    """A limit cannot lie below zero or above the platform's."""

    code = "limit_out_of_range"
    message = _("The limit must be a whole number from 0 to {most}; you sent {asked}.")


class WrongStart(Invalid):
    """A start lies ahead, and not too far."""

    code = "start_out_of_range"
    message = _("The start must lie between now and {latest}; you sent {asked}.")


class WrongEnd(Invalid):
    """An end comes after the start, and has not passed."""

    code = "end_out_of_range"
    message = _("The end must be later than {earliest}; you sent {asked}.")


class TooLong(Invalid):
    """The tenant's administrators limit how long a service may run."""

    code = "longest_duration"
    message = _(
        "Your organisation lets a service run for at most {limit} days; you asked for {asked}. "
        "Choose an end until {latest}."
    )


class EndNeeded(TooLong):
    """Without an end it would run longer than is allowed."""

    message = _(
        "Your organisation lets a service run for at most {limit} days, so it needs an end. "
        "Choose one until {latest}."
    )


class ApproverNeeded(Forbidden):
    """What needs approval is not lengthened past it."""

    code = "approval_needed"
    message = _(
        "{number} has {gpus} GPUs, and from {limit} on more time needs an approver. Ask one of: "
        "{holders}."
    )


class OwnApproval(Forbidden):
    """Nobody approves what they asked for themselves; an owner may."""

    code = "own_approval"
    message = _("You asked for this yourself. Ask one of: {holders}.")


class ReasonNeeded(Invalid):
    """Whoever asked wants to know why."""

    code = "reason_missing"
    message = _("Give a reason of 3 to {most} characters; who asked will read it.")


class WrongPolicy(Invalid):
    """A figure of the order policy is out of its range."""

    code = "policy_out_of_range"
    message = _("It must be a whole number from {least} to {most}; you sent {asked}.")


class NodeReserved(Conflict):
    """Somebody reserved the server for later."""

    code = "node_reserved"
    message = _(
        "The server of {name} is reserved for somebody else from {latest} on. Choose an end until "
        "then, or order another server."
    )


class ServiceOver(Conflict):
    """The service has ended, or is ending right now."""

    code = "service_over"
    message = _("{name} has ended at {ended_at}; order a new server.")


class HostLost(Conflict):
    """Its server is gone: an operator's word does not bring it back."""

    code = "host_lost"
    message = _("The server of {name} is lost; it goes on when another one is proven ready.")


class NotScheduled(Conflict):
    """Only what has not begun can be moved."""

    code = "not_scheduled"
    message = _("{number} is not scheduled (status “{status}”), so its start cannot be changed.")


class TooManyTags(Invalid):
    """Tags are for finding things, not for keeping data."""

    code = "too_many_tags"
    message = _("A service has at most {most} tags; you gave {given}.")


class BadTag(Invalid):
    """Names are short and plain, values one line."""

    code = "bad_tag"
    message = _(
        "“{tag}” is no tag: a name has 1 to 40 lower-case letters, digits, dots, hyphens or "
        "underscores, a value at most 80 characters on one line."
    )


class WrongPatience(Invalid):
    """An order waits between an hour and some months."""

    code = "wait_out_of_range"
    message = _("An order waits in the queue from 1 to {most} hours; you asked for {asked}.")


class ReservationBusy(Conflict):
    """Servers come from a reservation while it is active."""

    code = "reservation_not_active"
    message = _(
        "{number} is not active (status “{status}”), so no server can be taken from it now. "
        "Order on demand, or begin within its term."
    )


class UnknownReservation(Invalid):
    """No such reservation here, or it is over."""

    code = "unknown_reservation"
    message = _("There is no open reservation {asked}. Choose one of: {known}.")


class ReservationFull(Conflict):
    """The reservation holds fewer servers."""

    code = "reservation_full"
    message = _("{number} holds {most} servers; you asked for {asked}. Order the rest on demand.")


class WrongTerm(Invalid):
    """A reservation has a term the operator offers."""

    code = "term_out_of_range"
    message = _(
        "A reservation lasts from {shortest} to {longest} days and begins between now and "
        "{latest}; you asked for {asked} days from {starts_at}."
    )


class ReservationBegun(Conflict):
    """What has begun is paid to the end of its term."""

    code = "reservation_begun"
    message = _(
        "{number} is {status}: it can be cancelled only before it begins, and is charged to the "
        "end of its term."
    )


class NoRecall(Invalid):
    """A recall only makes sense for an order on demand."""

    code = "recall_not_possible"
    message = _("A server of a reservation is never called back. Leave accepts_recall out.")
