"""Money of all tenants: months closed, invoices issued and explained, credit notes."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, CSVFile, Endpoint, acts, gathers, lists, shows, streams
from apps.api.selectors import line_of
from apps.api.serializers import invoicing as shapes
from apps.invoicing import exports, runs, selectors, services
from apps.invoicing.errors import DocumentNotFound, NothingToInvoice
from apps.invoicing.models import (
    Document,
    DocumentLine,
    InvoiceProjection,
    InvoiceRun,
    InvoiceRunTenant,
)
from apps.tenancy.context import tenant_context
from apps.tenancy.selectors import tenants

NEWEST = ("-created_at", "-document")


class InvoiceRuns(Endpoint):
    """Closings of months."""

    @lists(
        "listInvoiceRuns",
        "invoice.view",
        shapes.InvoiceRunSerializer,
        query=shapes.InvoiceRunFilters,
        order=("-started_at", "-id"),
    )
    def get(self, asked: Asked) -> QuerySet[InvoiceRun]:
        """List invoice runs, newest first."""
        return selectors.invoice_runs().filter(**asked.query)

    @acts(
        "startInvoiceRun",
        "invoice.manage",
        shapes.InvoiceRunSerializer,
        body=shapes.NewInvoiceRun,
        status=202,
    )
    def post(self, asked: Asked) -> InvoiceRun:
        """Draft a month's invoices of every tenant of a currency; the open run if there is one."""
        return runs.start_run(actor=asked.user, **asked.body)


class InvoiceRunItem(Endpoint):
    """One closing of a month."""

    @shows("showInvoiceRun", "invoice.view", shapes.InvoiceRunSerializer)
    def get(self, asked: Asked, invoice_run: UUID) -> InvoiceRun:
        """Show an invoice run."""
        return selectors.invoice_runs().get(pk=invoice_run)


class InvoiceRunTenants(Endpoint):
    """The tenants of a run."""

    @gathers("listInvoiceRunTenants", "invoice.view", shapes.InvoiceRunTenantSerializer)
    def get(self, asked: Asked, invoice_run: UUID) -> list[InvoiceRunTenant]:
        """List what became of each tenant: those that need somebody first."""
        found = selectors.invoice_runs().get(pk=invoice_run)
        return list(selectors.run_tenants(run_id=found.pk).select_related("run"))


class InvoiceRunIssue(Endpoint):
    """Issues reviewed drafts."""

    @acts(
        "issueInvoiceRun",
        "invoice.manage",
        shapes.RunTold,
        body=shapes.RunChoice,
        status=202,
    )
    def post(self, asked: Asked, invoice_run: UUID) -> dict[str, int]:
        """Issue the drafts of a run, all or those of some tenants."""
        return {"tenants": runs.approve(run_id=invoice_run, actor=asked.user, **asked.body)}


class InvoiceRunRedraft(Endpoint):
    """Rates again."""

    @acts(
        "redraftInvoiceRun",
        "invoice.manage",
        shapes.RunTold,
        body=shapes.RunChoice,
        status=202,
    )
    def post(self, asked: Asked, invoice_run: UUID) -> dict[str, int]:
        """Rate drafts, refusals and empty months of a run again, all or those of some tenants."""
        return {"tenants": runs.redraft(run_id=invoice_run, actor=asked.user, **asked.body)}


class InvoiceRunCancel(Endpoint):
    """Gives a run up."""

    @acts("cancelInvoiceRun", "invoice.manage", shapes.InvoiceRunSerializer)
    def post(self, asked: Asked, invoice_run: UUID) -> InvoiceRun:
        """Cancel a run; its drafts stay."""
        return runs.end_run(run_id=invoice_run, actor=asked.user, cancel=True)


class AllInvoices(Endpoint):
    """Invoices and credit notes of all tenants."""

    @lists(
        "listAllInvoices",
        "invoice.view",
        shapes.ProjectedInvoice,
        query=shapes.ProjectedInvoiceFilters,
        order=NEWEST,
    )
    def get(self, asked: Asked) -> QuerySet[InvoiceProjection]:
        """List invoices and credit notes of all tenants, newest first."""
        return selectors.projected_documents().filter(**asked.query)

    @acts(
        "draftInvoice",
        "invoice.manage",
        shapes.DocumentSerializer,
        body=shapes.NewDraft,
        status=201,
    )
    def post(self, asked: Asked) -> Document:
        """Rate a month of one tenant and keep the result as its draft."""
        tenant = tenants().get(pk=asked.body["tenant"])
        period, final = asked.body["period"], asked.body["final"]
        with tenant_context(tenant):
            draft = services.draft_invoice(
                tenant=tenant, period=period, final=final, actor=asked.user
            )
        if draft is None:
            raise NothingToInvoice(field="period", period=period)
        return draft


class AnyInvoice(Endpoint):
    """One invoice or credit note of any tenant."""

    @shows("showAnyInvoice", "invoice.view", shapes.DocumentSerializer)
    def get(self, asked: Asked, invoice: UUID) -> Document:
        """Show an invoice or a credit note."""
        with _tenant_of(invoice):
            return selectors.document_detail(invoice, with_drafts=True)


class InvoiceIssue(Endpoint):
    """Makes a draft an invoice."""

    @acts("issueInvoice", "invoice.manage", shapes.DocumentSerializer, is_keyed=False)
    def post(self, asked: Asked, invoice: UUID) -> Document:
        """Give a draft its number, for ever; issuing again changes nothing.

        A draft that no longer matches the records is rated again and refused: look at it first.
        """
        with _tenant_of(invoice):
            return services.issue_invoice(document_id=invoice, actor=asked.user)


class AnyInvoiceLines(Endpoint):
    """The lines of one invoice of any tenant."""

    @gathers("listAnyInvoiceLines", "invoice.view", shapes.DocumentLineSerializer)
    def get(self, asked: Asked, invoice: UUID) -> list[DocumentLine]:
        """List the lines of an invoice or a credit note."""
        with _tenant_of(invoice):
            return list(
                selectors.document_detail(invoice, with_drafts=True).lines.select_related(
                    "document"
                )
            )


class AnyLineExplanation(Endpoint):
    """Where an amount comes from."""

    @shows("explainAnyInvoiceLine", "invoice.view", shapes.ExplanationSerializer)
    def get(self, asked: Asked, invoice: UUID, line: UUID) -> Any:
        """Explain a line: the intervals and prices it is made of."""
        with _tenant_of(invoice):
            return line_of(invoice, line, with_drafts=True)


class AllInvoicesFile(Endpoint):
    """Invoices of all tenants as a file."""

    @streams("downloadAllInvoices", "export", query=shapes.ExportChoice)
    def get(self, asked: Asked) -> CSVFile:
        """Download issued invoices and credit notes of all tenants as CSV, one row each."""
        return CSVFile("invoices", exports.invoices_csv(**asked.query))


class AllLinesFile(Endpoint):
    """Invoice lines of all tenants as a file."""

    @streams("downloadAllInvoiceLines", "export", query=shapes.ExportChoice)
    def get(self, asked: Asked) -> CSVFile:
        """Download the lines of issued documents of all tenants as CSV."""
        return CSVFile("invoice-lines", exports.lines_csv(**asked.query))


class AllUsageFile(Endpoint):
    """Charged time of all tenants as a file."""

    @streams("downloadAllUsage", "export", query=shapes.ExportChoice)
    def get(self, asked: Asked) -> CSVFile:
        """Download the charged intervals behind issued invoices of all tenants as CSV."""
        return CSVFile("usage", exports.usage_csv(**asked.query))


class CreditNotes(Endpoint):
    """What was given back."""

    @lists(
        "listCreditNotes",
        "invoice.view",
        shapes.ProjectedInvoice,
        query=shapes.ProjectedInvoiceFilters,
        order=NEWEST,
    )
    def get(self, asked: Asked) -> QuerySet[InvoiceProjection]:
        """List credit notes of all tenants, newest first."""
        return selectors.projected_documents(kind="credit_note").filter(**asked.query)

    @acts(
        "createCreditNote",
        "invoice.manage",
        shapes.DocumentSerializer,
        body=shapes.NewCredit,
        status=201,
    )
    def post(self, asked: Asked) -> Document:
        """Give lines of an issued invoice back, whole or in part; the note is issued at once."""
        invoice = asked.body["invoice"]
        amounts = asked.body.get("amounts") or {}
        with _tenant_of(invoice):
            return services.credit_lines(
                document_id=invoice,
                line_ids=asked.body["line_ids"],
                reason=asked.body["reason"],
                amounts={
                    line: amounts[str(line)]
                    for line in asked.body["line_ids"]
                    if str(line) in amounts
                },
                actor=asked.user,
            )


@contextmanager
def _tenant_of(document_id: UUID) -> Iterator[None]:
    """Act in the tenant a document belongs to. Raises DocumentNotFound."""
    row = InvoiceProjection.objects.filter(document=document_id).first()
    if row is None:
        raise DocumentNotFound()
    with tenant_context(tenants().get(pk=row.tenant)):
        yield
