"""A document as PDF: the figures of its page, set by Typst in the reader's language."""

import json
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import typst
from django.conf import settings
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core.money import Money, format_money, gpu_hours_display
from apps.invoicing.models import Document, DocumentKind, DocumentLine, LineKind

TEMPLATE = Path(__file__).with_name("document.typ")
MOST_LINES = 2000  # a longer document prints so many and refers to the CSV, which has all
KINDS = {
    LineKind.USAGE: gettext_lazy("Usage"),
    LineKind.DISCOUNT: gettext_lazy("Discount"),
    LineKind.RESERVATION: gettext_lazy("Reservation"),
    LineKind.MINIMUM: gettext_lazy("Minimum"),
    LineKind.LATE_USAGE: gettext_lazy("Late usage"),
    LineKind.CORRECTION: gettext_lazy("Correction"),
}


def document_pdf(document: Document, *, language: str) -> bytes:
    """The document as it is sent to a customer; its text can be copied and searched.

    `language` is a code of settings.LANGUAGES. The same document gives the same figures for ever:
    all of it is read from the document, nothing from today's data.
    """
    with translation.override(language):
        data = _data(document, language)
    made = typst.compile(
        str(TEMPLATE),
        font_paths=[str(settings.NEOCLOUD_FONTS)],
        ignore_system_fonts=True,
        sys_inputs={"data": json.dumps(data, ensure_ascii=False)},
    )
    return bytes(made)


def _data(document: Document, language: str) -> dict[str, Any]:
    is_credit = document.kind == DocumentKind.CREDIT_NOTE
    kind = _("Credit note") if is_credit else _("Invoice")
    number = document.number or _("Draft")
    lines = list(document.lines.all()[: MOST_LINES + 1])
    return {
        "language": language,
        "title": f"{kind} {number}",
        "heading": kind,
        "number": number,
        "seller_label": _("From"),
        "seller": _party(document.seller),
        "customer_label": _("Billed to"),
        "customer": _party(document.customer),
        "terms": _terms(document),
        "columns": [_("What"), _("Project"), _("GPU-hours"), _("Unit price"), _("Amount")],
        "lines": [_line(line, document, language) for line in lines[:MOST_LINES]],
        "omitted": _omitted(document) if len(lines) > MOST_LINES else "",
        "sums": [
            [_("Subtotal"), _money(document.subtotal, document, language)],
            [
                _("VAT {rate}").format(rate=_percent(document.vat_rate)),
                _money(document.tax, document, language),
            ],
        ],
        "total_label": _("Total credited") if is_credit else _("Total"),
        "total": _money(document.total, document, language),
        "notes": _notes(document),
    }


def _party(who: dict[str, str]) -> dict[str, Any]:
    number, representative = who.get("registration_number"), who.get("representative")
    lines = [
        _("Registration number {number}").format(number=number) if number else "",
        _("Represented by {name}").format(name=representative) if representative else "",
        who.get("address") or who.get("billing_address") or "",
        " · ".join(filter(None, (who.get("business_type"), who.get("business_item")))),
        " · ".join(filter(None, (who.get("email") or who.get("billing_email"), who.get("phone")))),
    ]
    return {
        "name": who.get("legal_name") or who.get("name", ""),
        "lines": [line for line in lines if line],
    }


def _terms(document: Document) -> list[list[str]]:
    terms = [
        [_("Issued"), _day(document.issued_at, document) if document.issued_at else _("Draft")],
        [_("Month"), document.period],
        [_("Supplied until"), _day(document.supply_end, document)],
        [_("Time zone"), document.billing_timezone],
    ]
    if document.due_on is not None:
        terms.append([_("To be paid by"), document.due_on.isoformat()])
    if document.corrects is not None:
        terms.append([_("Corrects"), document.corrects.number or ""])
        terms.append([_("Reason"), document.reason])
    return terms


def _line(line: DocumentLine, document: Document, language: str) -> dict[str, str]:
    facts = [
        str(KINDS.get(LineKind(line.kind), line.kind)),
        line.order_number,
        f"{line.sku} × {line.quantity}" if line.sku else "",
        line.price_code,
    ]
    price = line.unit_price
    return {
        "what": line.service_name or line.description,
        "detail": " · ".join(fact for fact in facts if fact),
        "span": _span(line, document),
        "project": line.project_name,
        "hours": gpu_hours_display(line.gpu_seconds) if line.gpu_seconds else "",
        "price": "" if price is None else f"{price.normalize():,f}",
        "amount": _money(line.amount, document, language),
    }


def _span(line: DocumentLine, document: Document) -> str:
    if line.first_at is None or line.last_at is None:
        return ""
    zone = ZoneInfo(document.billing_timezone)
    return " – ".join(
        f"{at.astimezone(zone):%Y-%m-%d %H:%M:%S}" for at in (line.first_at, line.last_at)
    )


def _notes(document: Document) -> list[str]:
    account = document.seller.get("bank_account")
    notes = [
        _("Use is measured in seconds; each line is rounded once, half up, tax once per document."),
        _("Unit prices are in {currency} per GPU-hour.").format(currency=document.currency),
    ]
    return [*notes, _("To be paid to {account}").format(account=account)] if account else notes


def _omitted(document: Document) -> str:
    count = document.lines.count()
    return _(
        "The first {shown} of {count} lines; all of them are in the CSV of this document."
    ).format(shown=MOST_LINES, count=count)


def _money(amount: Decimal, document: Document, language: str) -> str:
    return format_money(Money.of(amount, document.currency), language)


def _percent(rate: Decimal) -> str:
    return f"{(rate * 100).normalize():f} %"


def _day(at: datetime, document: Document) -> str:
    return f"{at.astimezone(ZoneInfo(document.billing_timezone)):%Y-%m-%d}"
