"""The finance desk's first page: this month so far, what is drafted, issued, not yet invoiced."""

from collections.abc import Sequence

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from apps.accounts.access import needs
from apps.core import clock, show
from apps.core.periods import month_of, previous_month
from apps.core.tables import Column, Empty, Figure, Row, Table
from apps.finance import cells, selectors
from apps.invoicing.models import DocumentStatus


@needs("invoice.view")
def home(request: HttpRequest) -> HttpResponse:
    """How the money stands, for each currency."""
    now = clock.now()
    this_month = month_of(now, settings.NEOCLOUD_TIMEZONE)
    last_month = previous_month(this_month)
    closing = selectors.closing(period=last_month)
    context = {
        "month": this_month,
        "last_month": last_month,
        "so_far": _so_far(selectors.month_so_far()),
        "sums": _sum_table(selectors.sums()),
        "figures": _figures(closing, last_month),
        "open": [row for row in closing if row.state != DocumentStatus.ISSUED],
        "latest": cells.document_table(selectors.documents()[:10]),
    }
    return render(request, "finance/home.html", context)


def _so_far(rows: Sequence[selectors.MonthSoFar]) -> list[Figure]:
    return [
        Figure(
            row.currency,
            show.money(row.amount),
            " · ".join(
                (
                    _("about, before VAT"),
                    ngettext("{n} service", "{n} services", row.services).format(n=row.services),
                    ngettext("{n} tenant", "{n} tenants", row.tenants).format(n=row.tenants),
                )
            ),
            icon="coins",
        )
        for row in rows
    ]


def _figures(closing: Sequence[selectors.Closing], period: str) -> list[Figure]:
    url = f"{reverse('finance:month_close')}?period={period}"
    states = [row.state for row in closing]
    missing, drafts = states.count("missing"), states.count("draft")
    return [
        Figure(
            _("Not yet drafted"),
            missing,
            _("tenants with services in {period}").format(period=period),
            url,
            "calendar",
            "yellow" if missing else "",
        ),
        Figure(
            _("Drafts to review"), drafts, period, url, "file-invoice", "yellow" if drafts else ""
        ),
        Figure(_("Issued"), states.count("issued"), period, url, "circle-check"),
    ]


def _sum_table(sums: Sequence[selectors.DocumentSum]) -> Table:
    columns = [
        Column(_("Currency")),
        Column(_("Kind")),
        Column(_("Status")),
        Column(_("Documents"), number=True),
        Column(_("Net"), number=True, hide="sm"),
        Column(_("VAT"), number=True, hide="sm"),
        Column(_("Total"), number=True),
    ]
    rows = [
        Row(
            [
                row.currency,
                cells.KINDS[row.kind],
                cells.status_badge(row.status),
                row.documents,
                show.money(row.subtotal),
                show.money(row.tax),
                show.money(row.total),
            ]
        )
        for row in sums
    ]
    return Table(
        columns,
        rows,
        _("All documents"),
        empty=Empty(
            _("No documents yet"),
            _("Close a month to draft the first invoices."),
            reverse("finance:month_close"),
            _("Month close"),
            "calendar",
        ),
    )
