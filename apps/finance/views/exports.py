"""CSV for finance: streamed, so a million lines need no more memory than ten."""

from collections.abc import Callable, Iterator
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render

from apps.accounts.access import needs
from apps.core.csvsafe import CONTENT_TYPE
from apps.core.errors import NotFound
from apps.core.money import MINOR_UNITS, parse_currency
from apps.core.periods import billing_month
from apps.finance import selectors
from apps.invoicing import exports
from apps.invoicing.models import InvoiceProjection

FILES: dict[str, Callable[..., Iterator[bytes]]] = {
    "invoices": exports.invoices_csv,
    "lines": exports.lines_csv,
    "usage": exports.usage_csv,
}


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
            )
        ],
    }
    return render(request, "finance/exports.html", context)


@needs("export")
def download(request: HttpRequest, name: str) -> StreamingHttpResponse:
    """One file, narrowed by month, currency or document."""
    if name not in FILES:
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
    response = StreamingHttpResponse(rows, content_type=CONTENT_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{file_name}.csv"'
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
