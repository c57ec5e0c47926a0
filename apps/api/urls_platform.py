"""The addresses of the operator's API."""

from django.urls import path

from apps.api.openapi import openapi
from apps.api.views import own
from apps.api.views.platform import finance, hardware, runs, selling, tenants

app_name = "api"
urlpatterns = [
    path("v1/openapi.json", openapi, name="openapi"),
    path("v1/me", own.Me.as_view(), name="me"),
    path("v1/access-keys", own.AccessKeys.as_view(), name="access_keys"),
    path("v1/access-keys/<uuid:key>", own.AccessKeyItem.as_view(), name="access_key"),
    path("v1/notices", own.Notices.as_view(), name="notices"),
    path("v1/notices/<uuid:notice>/read", own.NoticeRead.as_view(), name="notice_read"),
    path("v1/audit-events", own.AuditEntries.as_view(), name="audit_events"),
    path("v1/tenants", tenants.Tenants.as_view(), name="tenants"),
    path("v1/tenants/<uuid:tenant>", tenants.TenantItem.as_view(), name="tenant"),
    path("v1/tenants/<uuid:tenant>/limits", tenants.TenantLimits.as_view(), name="tenant_limits"),
    path("v1/orders", tenants.AllOrders.as_view(), name="orders"),
    path("v1/services", tenants.AllServices.as_view(), name="services"),
    path("v1/offerings", selling.AllOfferings.as_view(), name="offerings"),
    path(
        "v1/offerings/<str:sku>/retire",
        selling.OfferingRetirement.as_view(),
        name="offering_retire",
    ),
    path("v1/price-books", selling.PriceBooks.as_view(), name="price_books"),
    path("v1/price-books/<uuid:book>", selling.PriceBookItem.as_view(), name="price_book"),
    path("v1/price-books/<uuid:book>/prices", selling.Prices.as_view(), name="prices"),
    path("v1/catalog", selling.CatalogFile.as_view(), name="catalog"),
    path("v1/catalog/import", selling.CatalogImport.as_view(), name="catalog_import"),
    path("v1/sites", hardware.Sites.as_view(), name="sites"),
    path("v1/sites/<str:site>", hardware.SiteItem.as_view(), name="site"),
    path("v1/sites/<str:site>/pause", hardware.SitePause.as_view(), name="site_pause"),
    path("v1/sites/<str:site>/resume", hardware.SiteResumption.as_view(), name="site_resume"),
    path(
        "v1/sites/<str:site>/import-nodes",
        hardware.SiteImport.as_view(),
        name="site_import_nodes",
    ),
    path("v1/sites/<str:site>/validate", hardware.SiteValidation.as_view(), name="site_validate"),
    path("v1/nodes", hardware.Nodes.as_view(), name="nodes"),
    path("v1/nodes/<uuid:node>", hardware.NodeItem.as_view(), name="node"),
    path("v1/nodes/<uuid:node>/events", hardware.NodeEvents.as_view(), name="node_events"),
    path(
        "v1/nodes/<uuid:node>/quarantine",
        hardware.NodeQuarantine.as_view(),
        name="node_quarantine",
    ),
    path(
        "v1/nodes/<uuid:node>/maintenance",
        hardware.NodeMaintenance.as_view(),
        name="node_maintenance",
    ),
    path("v1/nodes/<uuid:node>/restore", hardware.NodeRestoration.as_view(), name="node_restore"),
    path("v1/gpus", hardware.GPUs.as_view(), name="gpus"),
    path("v1/allocations", hardware.Allocations.as_view(), name="allocations"),
    path("v1/tickets", hardware.Tickets.as_view(), name="tickets"),
    path("v1/tickets/<uuid:ticket>/close", hardware.TicketClosing.as_view(), name="ticket_close"),
    path("v1/fleet", hardware.Fleet.as_view(), name="fleet"),
    path("v1/runs", runs.Runs.as_view(), name="runs"),
    path("v1/runs/<uuid:run>", runs.RunItem.as_view(), name="run"),
    path("v1/runs/<uuid:run>/steps", runs.RunSteps.as_view(), name="run_steps"),
    path("v1/runs/<uuid:run>/events", runs.RunEvents.as_view(), name="run_events"),
    path("v1/runs/<uuid:run>/retry", runs.RunRetry.as_view(), name="run_retry"),
    path("v1/runs/<uuid:run>/undo", runs.RunUndo.as_view(), name="run_undo"),
    path("v1/invoice-runs", finance.InvoiceRuns.as_view(), name="invoice_runs"),
    path("v1/usage/csv", finance.AllUsageFile.as_view(), name="usage_csv"),
    path("v1/invoice-lines/csv", finance.AllLinesFile.as_view(), name="invoice_lines_csv"),
    path("v1/invoices/csv", finance.AllInvoicesFile.as_view(), name="invoices_csv"),
    path("v1/invoices", finance.AllInvoices.as_view(), name="invoices"),
    path("v1/invoices/<uuid:invoice>", finance.AnyInvoice.as_view(), name="invoice"),
    path("v1/invoices/<uuid:invoice>/issue", finance.InvoiceIssue.as_view(), name="invoice_issue"),
    path(
        "v1/invoices/<uuid:invoice>/lines",
        finance.AnyInvoiceLines.as_view(),
        name="invoice_lines",
    ),
    path(
        "v1/invoices/<uuid:invoice>/lines/<uuid:line>/explain",
        finance.AnyLineExplanation.as_view(),
        name="invoice_line_explain",
    ),
    path("v1/credit-notes", finance.CreditNotes.as_view(), name="credit_notes"),
]
