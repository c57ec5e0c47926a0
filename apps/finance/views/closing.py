"""Closing a month: drafts of every tenant, review, issue; safe to repeat and to interrupt."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.accounts.models import User
from apps.core import clock, show
from apps.core.answers import changed
from apps.core.errors import AppError, NotFound
from apps.core.money import Money
from apps.core.periods import billing_month, month_of, previous_month
from apps.core.tables import Column, Empty, Row, Table
from apps.finance import cells, selectors
from apps.invoicing import runs, services
from apps.invoicing import selectors as invoicing
from apps.invoicing.models import DocumentKind, DocumentStatus, InvoiceProjection
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant


@dataclass(frozen=True)
class Outcome:
    """What became of one tenant's document."""

    tenant: Tenant
    told: Any
    is_refused: bool = False
    document: UUID | None = None


@needs("invoice.view")
def month_close(request: HttpRequest) -> HttpResponse:
    """Every tenant of a month with the state of its invoice."""
    return _page(request, _period(request.GET.get("period", "")))


@require_POST
@needs("invoice.manage")
def draft_all(request: HttpRequest) -> HttpResponse:
    """Start the month's invoice run of every currency, or show the open ones."""
    period = _period(request.POST.get("period", ""))
    currencies = sorted({row.tenant.currency for row in selectors.closing(period=period)})
    started = [
        runs.start_run(period=period, currency=currency, actor=person(request))
        for currency in currencies
    ]
    if len(started) == 1:
        url = reverse("finance:invoice_run", args=[started[0].pk])
    else:
        url = f"{reverse('finance:month_close')}?period={period}"
    return changed(request, url, _("The invoice run is under way."))


@require_POST
@needs("invoice.manage")
def issue_chosen(request: HttpRequest) -> HttpResponse:
    """Issue the reviewed drafts; each by itself, so one tenant's trouble stops nobody else's."""
    period = _period(request.POST.get("period", ""))
    chosen = _uuids(request.POST.getlist("document"))
    drafts = list(
        InvoiceProjection.objects.filter(
            document__in=chosen,
            period=period,
            kind=DocumentKind.INVOICE,
            status=DocumentStatus.DRAFT,
        ).order_by("tenant", "document")
    )
    tenants = Tenant.objects.in_bulk([draft.tenant for draft in drafts])
    outcomes = [_issued(tenants[draft.tenant], draft.document, person(request)) for draft in drafts]
    return _page(request, period, outcomes)


@require_POST
@needs("invoice.manage")
def draft_final(request: HttpRequest) -> HttpResponse:
    """Draft a tenant's final invoice before the month is over; none of its services may be open."""
    period = _period(request.POST.get("period", ""))
    tenant = Tenant.objects.filter(pk__in=_uuids([request.POST.get("tenant", "")])).first()
    if tenant is None:
        raise NotFound()
    with tenant_context(tenant):
        draft = services.draft_invoice(
            tenant=tenant, period=period, actor=person(request), final=True
        )
    if draft is None:
        url = f"{reverse('finance:month_close')}?period={period}"
        return changed(
            request, url, _("Nothing of this month is charged to {name}.").format(name=tenant)
        )
    url = reverse("finance:document_detail", args=[tenant.pk, draft.pk])
    return changed(request, url, _("The final invoice is drafted; review and issue it."))


def _page(
    request: HttpRequest, period: str, outcomes: Sequence[Outcome] | None = None
) -> HttpResponse:
    rows = selectors.closing(period=period)
    may_manage = person(request).may("invoice.manage")
    now = clock.now()
    context = {
        "period": period,
        "previous": previous_month(period),
        "is_over": now >= billing_month(period, settings.NEOCLOUD_TIMEZONE).end,
        "table": _table(rows, may_manage=may_manage),
        "runs": cells.run_table(invoicing.invoice_runs().filter(period=period)),
        "totals": _totals(rows),
        "tenants": [row.tenant for row in rows if row.state != DocumentStatus.ISSUED],
        "drafts": sum(row.state == DocumentStatus.DRAFT for row in rows),
        "may_manage": may_manage,
        "outcomes": _outcome_table(outcomes) if outcomes is not None else None,
        "refused": sum(one.is_refused for one in outcomes or ()),
    }
    return render(request, "finance/month_close.html", context)


def _period(value: str) -> str:
    """The month asked for, else the one before this. Raises NotAMonth."""
    if not value:
        return previous_month(month_of(clock.now(), settings.NEOCLOUD_TIMEZONE))
    billing_month(value, settings.NEOCLOUD_TIMEZONE)
    return value


def _uuids(values: Sequence[str]) -> list[UUID]:
    found = []
    for value in values:
        try:
            found.append(UUID(value))
        except ValueError:
            continue
    return found


def _issued(tenant: Tenant, document: UUID, actor: User) -> Outcome:
    try:
        with tenant_context(tenant):
            issued = services.issue_invoice(document_id=document, actor=actor)
    except AppError as error:  # told beside its tenant; the others go on
        return Outcome(tenant, error.detail, is_refused=True, document=document)
    return Outcome(tenant, _("issued as {number}").format(number=issued.number), document=document)


def _table(rows: Sequence[selectors.Closing], *, may_manage: bool) -> Table:
    columns = [
        Column(_("Tenant")),
        Column(_("Services"), number=True, hide="sm"),
        Column(_("Invoice")),
        Column(_("Status")),
        Column(_("Net"), number=True, hide="md"),
        Column(_("VAT"), number=True, hide="md"),
        Column(_("Total"), number=True),
        Column(_("Credited"), number=True, hide="lg"),
    ]
    return Table(
        columns,
        [_row(row) for row in rows],
        _("Tenants of the month"),
        empty=Empty(_("Nobody had anything running in this month"), icon="calendar"),
        selectable="document" if may_manage and any(r.state == "draft" for r in rows) else "",
    )


def _row(row: selectors.Closing) -> Row:
    document, currency = row.document, row.tenant.currency
    amounts: list[Any] = [show.NOTHING] * 3
    if document is not None:
        amounts = [
            show.money(amount, document.currency)
            for amount in (document.subtotal, document.tax, document.total)
        ]
    return Row(
        [
            show.stacked(cells.tenant_link(row.tenant.pk, row.tenant.name), currency),
            row.services,
            cells.document_link(row.tenant.pk, document.document, document.number)
            if document
            else show.NOTHING,
            show.stacked(cells.status_badge(row.state), _since(document)),
            *amounts,
            show.money(row.credited) if row.credited else show.NOTHING,
        ],
        id=str(document.document) if document and row.state == "draft" else "",
        tone="yellow" if row.state == "missing" else "",
    )


def _since(document: InvoiceProjection | None) -> Any:
    return show.instant(document.issued_at or document.created_at) if document else ""


def _totals(rows: Sequence[selectors.Closing]) -> Table:
    """Sums of the month for each currency and state."""
    sums: dict[tuple[str, str], tuple[int, Money]] = {}
    for row in rows:
        if row.document is None:
            continue
        key = (row.document.currency, row.state)
        count, total = sums.get(key, (0, Money.zero(row.document.currency)))
        sums[key] = (count + 1, total + Money(row.document.total, row.document.currency))
    columns = [
        Column(_("Currency")),
        Column(_("Status")),
        Column(_("Invoices"), number=True),
        Column(_("Total"), number=True),
    ]
    return Table(
        columns,
        [
            Row([currency, cells.status_badge(state), count, show.money(total)])
            for (currency, state), (count, total) in sorted(sums.items())
        ],
        _("Sums of the month"),
    )


def _outcome_table(outcomes: Sequence[Outcome]) -> Table:
    columns = [Column(_("Tenant")), Column(_("Result"), wrap=True)]
    ordered = sorted(outcomes, key=lambda one: not one.is_refused)
    return Table(
        columns,
        [
            Row(
                [cells.tenant_link(one.tenant.pk, one.tenant.name), one.told],
                tone="red" if one.is_refused else "",
            )
            for one in ordered
        ],
        _("What was done"),
        empty=Empty(_("There was nothing to do"), icon="check"),
    )
