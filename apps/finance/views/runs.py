"""An invoice run: every tenant's month drafted, reviewed with its warnings, issued."""

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.core import show
from apps.core.answers import changed, wants_part
from apps.core.errors import NotFound
from apps.core.live import live, live_answer
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.finance import cells
from apps.invoicing import runs
from apps.invoicing import selectors as invoicing
from apps.invoicing.models import InvoiceRun, InvoiceRunTenant
from apps.invoicing.states import INVOICE_RUN, RunStatus, RunTenantStatus

WARNINGS = {
    "stale": gettext_lazy("The records changed after the review: look at the new figures."),
    "no_legal_data": gettext_lazy("Legal name, registration number or billing address missing."),
    "zero": gettext_lazy("The total is zero."),
    "first_invoice": gettext_lazy("First invoice: nothing to compare with."),
    "differs_much": gettext_lazy("Differs by more than half from last month's {before}."),
    "late_usage": gettext_lazy("Holds late usage of {amount}."),
    "to_be_credited": gettext_lazy("{amount} of earlier invoices waits for a credit note."),
    "nothing_now": gettext_lazy("Nothing this month, {before} last month."),
}


@needs("invoice.view")
def invoice_run(request: HttpRequest, invoice_run: UUID) -> HttpResponse:
    """What became of every tenant, those that need somebody first."""
    run = _run(invoice_run)
    rows = list(invoicing.run_tenants(run_id=run.pk))
    is_busy = run.status in (RunStatus.DRAFTING, RunStatus.ISSUING)
    ended = run.status in (RunStatus.FINISHED, RunStatus.CANCELLED)
    part = live(request, busy=is_busy, ended=ended)
    may_manage = person(request).may("invoice.manage")
    context = {
        "run": run,
        "status": show.badge(run.status, RunStatus(run.status).label),
        "terms": _terms(run, rows),
        "table": _table(run, rows, may_manage=may_manage and run.status == RunStatus.REVIEW),
        "verbs": INVOICE_RUN.verbs_from(run.status) if may_manage else (),
        "drafted": sum(row.status == RunTenantStatus.DRAFTED for row in rows),
        "part": part,
    }
    if wants_part(request):
        return live_answer(request, "finance/invoice_run.html#live", context, part)
    return render(request, "finance/invoice_run.html", context)


@require_POST
@needs("invoice.manage")
def invoice_run_act(request: HttpRequest, invoice_run: UUID, verb: str) -> HttpResponse:
    """Issue or rate again the chosen tenants (all without a choice); finish or cancel the run."""
    run, actor = _run(invoice_run), person(request)
    chosen = _uuids(request.POST.getlist("tenant")) or None
    if verb == "issue":
        count = runs.approve(run_id=run.pk, actor=actor, tenants=chosen)
        told = _("{count} invoices are being issued.").format(count=count)
    elif verb == "redraft":
        count = runs.redraft(run_id=run.pk, actor=actor, tenants=chosen)
        told = _("{count} tenants are being rated again.").format(count=count)
    elif verb in ("finish", "cancel"):
        runs.end_run(run_id=run.pk, actor=actor, cancel=verb == "cancel")
        told = _("The invoice run has ended.")
    else:
        raise NotFound()
    return changed(request, reverse("finance:invoice_run", args=[run.pk]), told)


def _run(run_id: UUID) -> InvoiceRun:
    run = invoicing.invoice_runs().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    return run


def _uuids(values: Sequence[str]) -> list[UUID]:
    try:
        return [UUID(value) for value in values]
    except ValueError:
        raise NotFound() from None


def _terms(run: InvoiceRun, rows: Sequence[InvoiceRunTenant]) -> list[Term]:
    counts = Counter(row.status for row in rows)
    total = sum((row.total or Decimal(0) for row in rows), Decimal(0))
    before = sum((row.previous_total or Decimal(0) for row in rows), Decimal(0))
    return [
        Term(_("Started"), show.instant(run.started_at), run.started_by),
        *[
            Term(RunTenantStatus(status).label, counts[status])
            for status in RunTenantStatus.values
            if counts[status]
        ],
        Term(_("Total"), show.money(total, run.currency)),
        Term(_("Month before"), show.money(before, run.currency)),
        Term(_("Difference"), show.money(total - before, run.currency)),
    ]


def _table(run: InvoiceRun, rows: Sequence[Any], *, may_manage: bool) -> Table:
    columns = [
        Column(_("Tenant")),
        Column(_("Status")),
        Column(_("Invoice"), hide="sm"),
        Column(_("Total"), number=True),
        Column(_("Month before"), number=True, hide="md"),
        Column(_("Difference"), number=True, hide="sm"),
        Column(_("To look at"), wrap=True, hide="md"),
    ]
    return Table(
        columns,
        [_row(run, row) for row in rows],
        _("Tenants of the run"),
        empty=Empty(_("No tenant pays in this currency"), icon="users"),
        selectable="tenant" if may_manage else "",
    )


def _row(run: InvoiceRun, row: Any) -> Row:
    is_open = row.status in (RunTenantStatus.DRAFTED, RunTenantStatus.REFUSED)
    document = show.NOTHING
    if row.document:
        document = cells.document_link(row.tenant, row.document, row.number or None)
    difference = show.NOTHING
    if row.total is not None and row.previous_total is not None:
        difference = show.money(row.total - row.previous_total, run.currency)
    told = [WARNINGS[one["code"]].format(**one["figures"]) for one in row.warnings]
    return Row(
        [
            cells.tenant_link(row.tenant, row.tenant_name),
            show.badge(row.status, RunTenantStatus(row.status).label),
            document,
            show.NOTHING if row.total is None else show.money(row.total, run.currency),
            show.NOTHING
            if row.previous_total is None
            else show.money(row.previous_total, run.currency),
            difference,
            cells.lines([row.error, *told] if row.error else told),
        ],
        id=str(row.tenant) if is_open else "",
        tone="red" if row.status == RunTenantStatus.REFUSED else "yellow" if told else "",
    )
