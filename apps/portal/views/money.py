"""Cost of the month, invoices, what a line follows from, downloads."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import get_language
from django.views.decorators.http import require_GET

from apps.accounts.access import needs
from apps.core.answers import pdf
from apps.core.paging import paginate
from apps.invoicing import exports, selectors
from apps.invoicing.pdf import document_pdf
from apps.portal import cells, costs


@require_GET
@needs("usage.view")
def month(request: HttpRequest) -> HttpResponse:
    """What this month would be invoiced with if it ended now."""
    known = costs.so_far()
    context: dict[str, Any] = {"known": known, "cost": known.cost, "problem": known.problem}
    if known.cost is not None:
        context["table"] = cells.cost_table(known.cost)
        context["by_project"] = cells.project_cost_table(known.cost)
    return render(request, "portal/costs.html", context)


@require_GET
@needs("invoice.view")
def invoice_list(request: HttpRequest) -> HttpResponse:
    """Issued invoices and credit notes, newest first."""
    page = paginate(
        selectors.documents(),
        keys=("-period", "-created_at", "-id"),
        cursor=request.GET.get("cursor", ""),
    )
    context = {"table": cells.document_table(page.items), "page": page}
    return render(request, "portal/invoice_list.html", context)


@require_GET
@needs("invoice.view")
def invoice_detail(request: HttpRequest, document_id: UUID) -> HttpResponse:
    """An issued document with its lines."""
    document = selectors.document_detail(document_id)
    context = {
        "document": document,
        "table": cells.line_table(document),
        "terms": cells.document_terms(document),
        "credit_notes": document.credit_notes.all(),
    }
    return render(request, "portal/invoice_detail.html", context)


@require_GET
@needs("invoice.view")
def invoice_line(request: HttpRequest, line_id: UUID) -> HttpResponse:
    """Everything a line follows from: each interval, its price, the rules."""
    explained = selectors.explain_line(line_id)
    context = {
        "explained": explained,
        "line": explained["line"],
        "document": explained["document"],
        "usage": cells.usage_table(explained["usage"]),
        "terms": cells.line_terms(explained),
        "arithmetic": explained["arithmetic"],
    }
    return render(request, "portal/invoice_line.html", context)


@require_GET
@needs("usage.view")
def usage_download(request: HttpRequest, document_id: UUID) -> StreamingHttpResponse:
    """The charged intervals behind a document's lines as CSV."""
    document = selectors.document_detail(document_id)
    return _csv(exports.usage_csv(document_id=document.pk), f"{document.number}-usage.csv")


@require_GET
@needs("invoice.view")
def invoice_file(request: HttpRequest, document_id: UUID) -> HttpResponse:
    """A document as PDF, in the reader's language."""
    document = selectors.document_detail(document_id)
    return pdf(document_pdf(document, language=get_language() or "en"), name=str(document.number))


@require_GET
@needs("invoice.view")
def invoice_download(request: HttpRequest, document_id: UUID) -> StreamingHttpResponse:
    """A document's lines as CSV."""
    document = selectors.document_detail(document_id)
    return _csv(exports.lines_csv(document_id=document.pk), f"{document.number}-lines.csv")


def _csv(rows: Iterator[bytes], name: str) -> StreamingHttpResponse:
    response = StreamingHttpResponse(rows, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["Cache-Control"] = "no-store"
    return response
