"""What follows from invoices and credit notes: the people who may see them are told."""

from django.utils.translation import gettext_lazy as _

from apps.accounts import selectors as accounts
from apps.core.models import OutboxEvent
from apps.core.money import Money
from apps.core.outbox import on
from apps.notices import services as notices


@on("invoice.issued", tells=True)
def tell_of_invoice(event: OutboxEvent) -> None:
    """Tell everyone who may see invoices that there is one."""
    _tell(
        event,
        subject=_("Invoice {number} for {period}"),
        body=_("Invoice {number} for {period} has been issued: {total} with tax."),
    )


@on("credit_note.issued", tells=True)
def tell_of_credit_note(event: OutboxEvent) -> None:
    """Tell everyone who may see invoices that something was given back."""
    _tell(
        event,
        subject=_("Credit note {number} for {period}"),
        body=_("Credit note {number} for {period} has been issued: {total} with tax."),
    )


def _tell(event: OutboxEvent, *, subject: object, body: object) -> None:
    for person in accounts.people_who_may("invoice.view"):
        notices.tell(
            to=accounts.recipient_of(person),
            kind=event.name,
            dedup_key=f"{event.name}:{event.subject}",
            subject=subject,
            body=body,
            link=f"/invoices/{event.subject}/",
            number=event.payload["number"],
            period=event.payload["period"],
            total=Money.of(event.payload["total"], event.payload["currency"]),
        )
