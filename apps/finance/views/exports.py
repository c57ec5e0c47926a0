"""CSV for finance: streamed, so a million lines need no more memory than ten."""

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.core import workbooks
from apps.core.answers import changed
from apps.core.csvsafe import CONTENT_TYPE
from apps.core.errors import NotFound
from apps.core.money import MINOR_UNITS, parse_currency
from apps.core.periods import billing_month
from apps.finance import selectors
from apps.invoicing import exports, journal
from apps.invoicing.models import InvoiceProjection, JournalRole

FILES: dict[str, Callable[..., Iterator[bytes]]] = {
    "invoices": exports.invoices_csv,
    "lines": exports.lines_csv,
    "usage": exports.usage_csv,
    "journal": journal.journal_csv,
}
WORDS = {
    "invoices": (gettext_lazy("Invoices and credit notes"), gettext_lazy("One row each.")),
    "lines": (gettext_lazy("Lines"), gettext_lazy("One row for each amount of a document.")),
    "usage": (gettext_lazy("Usage"), gettext_lazy("The charged spans behind the lines.")),
    "journal": (
        gettext_lazy("Journal"),
        gettext_lazy("Double entry for the ledger: debits equal credits in each document."),
    ),
}
NUMBERS = {
    "position", "gpus", "gpu_seconds", "gpu_hours", "unit_price", "amount", "seconds", "subtotal",
    "tax", "total", "debit", "credit", "entry",
}  # fmt: skip


@needs("export")
def export_page(request: HttpRequest) -> HttpResponse:
    """Which files there are, and for which months and currencies."""
    context = {
        "periods": selectors.periods(),
        "currencies": list(MINOR_UNITS),
        "columns": [
            (name, ", ".join(columns))
            for name, columns in (
                ("invoices", exports.DOCUMENT_COLUMNS),
                ("lines", exports.LINE_COLUMNS),
                ("usage", exports.USAGE_COLUMNS),
                ("journal", journal.COLUMNS),
            )
        ],
        "accounts": _accounts(),
        "files": [
            {"name": name, "label": label, "hint": hint} for name, (label, hint) in WORDS.items()
        ],
        "may_choose": person(request).may("invoice.manage"),
    }
    return render(request, "finance/exports.html", context)


def _accounts() -> list[dict[str, Any]]:
    labels = dict(JournalRole.choices)
    return [
        {"role": role, "label": labels[role], "number": number, "name": name}
        for role, (number, name) in journal.accounts().items()
    ]


@require_POST
@needs("invoice.manage")
@transaction.atomic
def accounts(request: HttpRequest) -> HttpResponse:
    """Choose the ledger accounts of the journal."""
    for role in JournalRole.values:
        journal.choose_account(
            role=role,
            number=request.POST.get(role, ""),
            name=request.POST.get(f"{role}_name", ""),
            actor=person(request),
        )
    return changed(request, reverse("finance:exports"), _("The accounts are kept."))


@needs("export")
def download(request: HttpRequest, name: str, form: str) -> StreamingHttpResponse:
    """One file as `csv` or `xlsx`, narrowed by month, currency or document."""
    if name not in FILES or form not in ("csv", "xlsx"):
        raise NotFound()
    period, currency = request.GET.get("period", ""), request.GET.get("currency", "")
    if period:
        billing_month(period, settings.NEOCLOUD_TIMEZONE)
    if currency:
        parse_currency(currency)
    document = _document(request.GET.get("document", ""))
    rows = FILES[name](
        period=period, currency=currency, document_id=document.document if document else None
    )
    parts = [name, period, currency, document.number if document else ""]
    file_name = "-".join(part for part in parts if part)
    if form == "xlsx":
        rows = workbooks.workbook(rows, numbers=NUMBERS)
    kind = CONTENT_TYPE if form == "csv" else workbooks.CONTENT_TYPE
    response = StreamingHttpResponse(rows, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="{file_name}.{form}"'
    response["Cache-Control"] = "no-store"
    return response


def _document(value: str) -> InvoiceProjection | None:
    if not value:
        return None
    try:
        found = InvoiceProjection.objects.filter(document=UUID(value)).first()
    except ValueError:
        found = None
    if found is None:
        raise NotFound()
    return found
