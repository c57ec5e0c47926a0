"""How finance writes documents and tenants into the cells of its tables."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.catalog.models import Contract, Price
from apps.core import show
from apps.core.tables import Column, Empty, Row, Table
from apps.invoicing.models import InvoiceProjection, InvoiceRun
from apps.invoicing.states import RunStatus

STATUSES = {
    "draft": gettext_lazy("Draft"),
    "issued": gettext_lazy("Issued"),
    "missing": gettext_lazy("Not drafted"),
}
KINDS = {"invoice": gettext_lazy("Invoice"), "credit_note": gettext_lazy("Credit note")}
LINE_KINDS = {
    "usage": gettext_lazy("Usage"),
    "discount": gettext_lazy("Discount"),
    "reservation": gettext_lazy("Reservation"),
    "minimum": gettext_lazy("Minimum"),
    "late_usage": gettext_lazy("Late usage"),
    "correction": gettext_lazy("Correction"),
}
PRICE_KINDS = {
    "list": gettext_lazy("list price"),
    "contract": gettext_lazy("contract price"),
    "fixed": gettext_lazy("fixed price"),
}


def status_badge(status: str) -> SafeString:
    """A document's status."""
    return show.badge(status, STATUSES.get(status, status))


def standing(version: Price | Contract, now: datetime) -> SafeString:
    """Whether a version is to come, in force or past."""
    if version.effective_from > now:
        return show.badge("placed", _("to come"))
    if version.effective_to is not None and version.effective_to <= now:
        return show.badge("closed", _("past"))
    return show.badge("active", _("in force"))


def document_link(tenant: UUID, document: UUID, number: str | None) -> SafeString:
    """The document's number, or that it is a draft, leading to its page."""
    url = reverse("finance:document_detail", args=[tenant, document])
    return show.link(number or _("Draft"), url)


def tenant_link(tenant: UUID, name: str | None) -> SafeString:
    """The tenant's name, leading to its page on the console."""
    return show.link(name or tenant, reverse("console:tenant_detail", args=[tenant]))


def lines(values: Iterable[Any]) -> Any:
    """Values below each other in one cell; a dash for none."""
    return format_html_join("", "<div>{}</div>", ((value,) for value in values)) or show.NOTHING


def document_table(rows: Iterable[InvoiceProjection], *, empty: Empty | None = None) -> Table:
    """Invoices and credit notes of all tenants."""
    return Table(
        caption=_("Invoices and credit notes"),
        columns=[
            Column(_("Number")),
            Column(_("Tenant")),
            Column(_("Period"), hide="sm"),
            Column(_("Status")),
            Column(_("Net"), number=True, hide="lg"),
            Column(_("VAT"), number=True, hide="lg"),
            Column(_("Total"), number=True),
            Column(_("Issued"), hide="md"),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        document_link(row.tenant, row.document, row.number), KINDS[row.kind]
                    ),
                    tenant_link(row.tenant, getattr(row, "tenant_name", None)),
                    row.period,
                    status_badge(row.status),
                    show.money(row.subtotal, row.currency),
                    show.money(row.tax, row.currency),
                    show.money(row.total, row.currency),
                    show.instant(row.issued_at),
                ],
                id=str(row.document),
            )
            for row in rows
        ],
        empty=empty or Empty(_("No documents"), icon="file-invoice"),
    )


def run_table(runs: Iterable[InvoiceRun]) -> Table:
    """Invoice runs with their status."""
    return Table(
        caption=_("Invoice runs"),
        columns=[
            Column(_("Invoice run")),
            Column(_("Status")),
            Column(_("Started"), hide="sm"),
            Column(_("By"), hide="md"),
            Column(_("Ended"), hide="md"),
        ],
        rows=[
            Row(
                [
                    show.link(str(run), reverse("finance:invoice_run", args=[run.pk])),
                    show.badge(run.status, RunStatus(run.status).label),
                    show.instant(run.started_at),
                    run.started_by,
                    show.instant(run.ended_at),
                ],
                id=str(run.pk),
            )
            for run in runs
        ],
        empty=Empty(_("No invoice run yet"), icon="calendar"),
    )
