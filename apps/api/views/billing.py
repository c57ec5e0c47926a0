"""What the organisation pays: cost so far, invoices, their lines and where those come from."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet
from django.utils.translation import get_language

from apps.api.operations import (
    Asked,
    CSVFile,
    Endpoint,
    PDFFile,
    gathers,
    lists,
    prints,
    shows,
    streams,
)
from apps.api.selectors import line_of
from apps.api.serializers import invoicing as shapes
from apps.invoicing import exports, selectors
from apps.invoicing.models import Document, DocumentLine
from apps.invoicing.pdf import document_pdf


class Usage(Endpoint):
    """The running month."""

    @shows("showUsage", "usage.view", shapes.CostSerializer)
    def get(self, asked: Asked) -> Any:
        """Show what this month costs up to now, by the same calculation as its invoice."""
        return selectors.cost_so_far()


class Invoices(Endpoint):
    """Invoices and credit notes."""

    @lists("listInvoices", "invoice.view", shapes.DocumentSerializer, query=shapes.DocumentFilters)
    def get(self, asked: Asked) -> QuerySet[Document]:
        """List the organisation's invoices and credit notes, newest first."""
        return selectors.documents().filter(**asked.query)


class InvoiceItem(Endpoint):
    """One invoice or credit note."""

    @shows("showInvoice", "invoice.view", shapes.DocumentSerializer)
    def get(self, asked: Asked, invoice: UUID) -> Document:
        """Show an invoice or a credit note."""
        return selectors.document_detail(invoice)


class InvoiceLines(Endpoint):
    """The lines of one invoice."""

    @gathers("listInvoiceLines", "invoice.view", shapes.DocumentLineSerializer)
    def get(self, asked: Asked, invoice: UUID) -> QuerySet[DocumentLine]:
        """List the lines of an invoice or a credit note."""
        return selectors.document_detail(invoice).lines.select_related("document")


class LineExplanation(Endpoint):
    """Where an amount comes from."""

    @shows("explainInvoiceLine", "invoice.view", shapes.ExplanationSerializer)
    def get(self, asked: Asked, invoice: UUID, line: UUID) -> Any:
        """Explain a line: the intervals and prices it is made of."""
        return line_of(invoice, line)


class InvoiceFile(Endpoint):
    """One invoice as a file."""

    @streams("downloadInvoice", "invoice.view")
    def get(self, asked: Asked, invoice: UUID) -> CSVFile:
        """Download the lines of an invoice as CSV that spreadsheets open rightly."""
        found = selectors.document_detail(invoice)
        return CSVFile(str(found.number), exports.lines_csv(document_id=invoice))


class InvoicePrint(Endpoint):
    """One invoice as it is sent to people."""

    @prints("downloadInvoicePDF", "invoice.view")
    def get(self, asked: Asked, invoice: UUID) -> PDFFile:
        """Download an invoice or a credit note as PDF, in the reader's language."""
        found = selectors.document_detail(invoice)
        made = document_pdf(found, language=get_language() or "en")
        return PDFFile(str(found.number), made)


class InvoicesFile(Endpoint):
    """Invoices as a file."""

    @streams("downloadInvoices", "invoice.view", query=shapes.ExportChoice)
    def get(self, asked: Asked) -> CSVFile:
        """Download issued invoices and credit notes as CSV, one row each."""
        return CSVFile("invoices", exports.invoices_csv(**asked.query))


class UsageFile(Endpoint):
    """Charged time as a file."""

    @streams("downloadUsage", "usage.view", query=shapes.ExportChoice)
    def get(self, asked: Asked) -> CSVFile:
        """Download the charged intervals behind issued invoices as CSV."""
        return CSVFile("usage", exports.usage_csv(**asked.query))
