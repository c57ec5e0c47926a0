"""Search over everything the console knows."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from apps.accounts.access import needs
from apps.console import cells, selectors
from apps.console.views.tenants import tenant_table
from apps.core import filters


@needs("capacity.view")
def search(request: HttpRequest) -> HttpResponse:
    """Orders, services, runs, nodes, tenants and invoices in which the text stands."""
    text = filters.text(request, _("Search")).value
    context: dict[str, object] = {"text": text}
    if len(text) >= 2:
        found = selectors.search(text)
        context["nothing"] = found.is_empty
        context["groups"] = [
            (title, table)
            for title, rows, table in (
                (_("Orders"), found.orders, cells.order_table(found.orders)),
                (_("Services"), found.services, cells.service_table(found.services)),
                (_("Runs"), found.runs, cells.run_table(found.runs)),
                (_("Nodes"), found.nodes, cells.node_table(found.nodes)),
                (_("Tenants"), found.tenants, tenant_table(found.tenants)),
                (_("Invoices"), found.documents, cells.document_table(found.documents)),
            )
            if rows
        ]
    return render(request, "console/search.html", context)
