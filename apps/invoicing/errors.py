"""What can go wrong with invoices."""

from uuid import UUID

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Invalid, NotFound


class DocumentNotFound(NotFound):
    """No such invoice or credit note in this tenant."""

    code = "document_not_found"


class RunNotFound(NotFound):
    """No such invoice run."""

    code = "invoice_run_not_found"


class LineNotFound(NotFound):
    """No such line in this tenant."""

    code = "line_not_found"


class NoPrice(Conflict):
    """A charged second has no price: the run stops and nothing is issued."""

    code = "no_price"
    message = _(
        "{sku} has no price in {currency} at {at}, and {service} was in use then. "
        "Add a price that is valid from {at}, then try again."
    )


class PriceConflict(Conflict):
    """Two prices of one kind and SKU begin at the same instant: the run stops."""

    code = "price_conflict"
    message = _("{sku} has two {kind} prices from {at}: {ids}. Remove one of them.")


class PeriodNotOver(Conflict):
    """An invoice is made when its month has ended."""

    code = "period_not_over"
    message = _(
        "{period} ends on {ends}. Make the invoice after that, or a final invoice once "
        "every service has ended."
    )


class ServicesOpen(Conflict):
    """A final invoice before the end of its month needs all services ended."""

    code = "services_open"
    message = _(
        "{count} services are still open, among them {names}. Terminate them before the "
        "final invoice."
    )


class ReservationsOpen(Conflict):
    """A final invoice before the end of its month needs all reservations ended."""

    code = "reservations_open"
    message = _(
        "{count} reservations are still paid for, among them {names}. Make the invoice when the "
        "month is over, or end them before the final invoice."
    )


class AlreadyInvoiced(Conflict):
    """The month has its invoice; what turns up later goes on the next one."""

    code = "already_invoiced"
    message = _(
        "{period} was invoiced with {number}. Usage that turned up since then goes on "
        "the next invoice."
    )

    def __init__(self, document_id: UUID, /, *, period: str, number: str | None) -> None:
        super().__init__(field="period", period=period, number=number)
        self.document_id = document_id


class DraftIsStale(Conflict):
    """The facts or prices under a draft have changed since somebody looked at it."""

    code = "draft_is_stale"
    message = _(
        "The draft no longer matches the records: its total was {before}, it is now {after}. "
        "Make the draft again, look at it, then issue it."
    )


class NothingToInvoice(Conflict):
    """The records under the draft have gone."""

    code = "nothing_to_invoice"
    message = _("Nothing is charged in {period} any more. The draft needs no issuing.")


class NotIssued(Conflict):
    """Only an issued invoice can be credited; a draft is simply made again."""

    code = "not_issued"
    message = _(
        "{document} is not an issued invoice. Only lines of issued invoices can be credited."
    )


class NothingToCredit(Invalid):
    """Credit needs at least one line of the invoice."""

    code = "nothing_to_credit"
    message = _("Choose at least one line of {number} to credit.")


class AlreadyCredited(Conflict):
    """A line is given back once."""

    code = "already_credited"
    message = _("Line {position} ({line}) was credited with {number} already.")


class CreditTooLarge(Invalid):
    """Never more is given back than was charged."""

    code = "credit_too_large"
    message = _(
        "Of line {position} {left} {currency} before tax can still be credited. Choose an amount "
        "above zero and up to that."
    )


class ReasonMissing(Invalid):
    """A credit says why, because the customer reads it."""

    code = "reason_missing"
    message = _("Say why the lines are credited, in 1 to 300 characters.")


class MalformedCase(Invalid):
    """A billing case file does not follow its format."""

    code = "malformed_case"
    message = _("{where} of the billing case: {problem}")
