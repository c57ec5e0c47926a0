"""What can go wrong with the catalogue and its prices."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Invalid, NotFound


class NoPrice(Conflict):
    """Nothing is sold without a price."""

    code = "no_price"
    message = _(
        "No {currency} price for {sku} ({unit}) is in force at {at}. Add a price version that "
        "covers it."
    )


class UnknownSku(NotFound):
    """No such offering, or it is not for this customer."""

    code = "unknown_offering"
    message = _("There is no offering {sku}. Choose one of the catalogue.")


class UnknownCode(Invalid):
    """A reference to something the catalogue lacks."""

    code = "unknown_code"
    message = _("{what} “{value}” does not exist. Known: {known}.")


class UnknownField(Invalid):
    """A field nobody reads is a mistake somebody made."""

    code = "unknown_field"
    message = _("“{value}” is not a field here. Remove it, or use one of: {known}.")


class MissingField(Invalid):
    """A field that has to be there."""

    code = "missing_field"
    message = _("{what} is missing. Add it.")


class BadValue(Invalid):
    """A value that breaks the field's rule."""

    code = "bad_value"
    message = _("“{value}” does not fit {what}: {rule}.")


class BadDocument(Invalid):
    """Not a document of the expected form."""

    code = "bad_document"
    message = _("The file cannot be read: {problem}. Correct it and import it again.")


class DuplicateRow(Invalid):
    """One thing stands twice in a document."""

    code = "duplicate_row"
    message = _("{value} stands twice, here and at {other}. Remove one of the two.")


class PriceExists(Invalid):
    """A version is never edited."""

    code = "price_exists"
    message = _(
        "A price of {sku} from {effective_from} exists already with {amount}. A version is never "
        "changed: "
        "add one with a later start."
    )


class PriceOverlap(Invalid):
    """Two prices for one instant."""

    code = "price_overlap"
    message = _(
        "Two prices of {sku} would both hold at {at}. End the earlier one there, or start the "
        "later one "
        "when the earlier one ends."
    )


class PriceInThePast(Invalid):
    """Time already charged keeps its price."""

    code = "price_in_the_past"
    message = _(
        "{value} lies in the past, where use of {sku} may already be charged. Choose an instant "
        "from now on."
    )


class PriceNeedsNotice(Invalid):
    """A list price customers rely on rises after the published notice only."""

    code = "price_needs_notice"
    message = _(
        "The list price of {sku} is {before} and may rise to {amount} no sooner than {earliest}: "
        "a rise is published {days} days before. Choose that instant or a later one; a lower "
        "price may begin at once."
    )


class PriceGap(Invalid):
    """Time without a price between two versions."""

    code = "price_gap"
    message = _(
        "No price of {sku} from {start} to {end}. End the earlier version later, or start the "
        "later one sooner."
    )


class ContractNotFound(NotFound):
    """No contract of that code."""

    code = "contract_not_found"
    message = _("There is no contract {contract}.")


class ContractExists(Conflict):
    """A code names one contract."""

    code = "contract_exists"
    message = _("Contract {contract} exists already. Change it, or choose another code.")


class ContractOverlap(Conflict):
    """A tenant has one contract at a time in a currency."""

    code = "contract_overlap"
    message = _(
        "Contract {contract} is in force for a part of that time. End it first, or choose other "
        "times."
    )


class ContractOver(Conflict):
    """No version is in force then, so none can be changed or ended."""

    code = "contract_over"
    message = _(
        "No version of contract {contract} is in force at {at}. Choose an instant inside it."
    )


class TermsInThePast(Invalid):
    """Time that may be charged already keeps its terms."""

    code = "terms_in_the_past"
    message = _(
        "{value} lies in the past, which may be invoiced already. Choose an instant from now on; a "
        "new contract may begin in the running billing month."
    )
