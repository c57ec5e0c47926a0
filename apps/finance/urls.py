"""Addresses of the finance desk."""

from django.urls import path

from apps.finance.views import closing, contracts, documents, exports, home, prices, runs, seller

app_name = "finance"
urlpatterns = [
    path("", home.home, name="home"),
    path("price-books/", prices.price_books, name="price_books"),
    path("price-books/<uuid:book_id>/", prices.price_book, name="price_book"),
    path("price-books/<uuid:book_id>/add/", prices.price_add, name="price_add"),
    path("contracts/", contracts.contract_list, name="contracts"),
    path("contracts/new/", contracts.contract_new, name="contract_new"),
    path("contracts/<str:code>/", contracts.contract, name="contract"),
    path("contracts/<str:code>/change/", contracts.contract_change, name="contract_change"),
    path("contracts/<str:code>/end/", contracts.contract_end, name="contract_end"),
    path("month-close/", closing.month_close, name="month_close"),
    path("month-close/draft/", closing.draft_all, name="draft_all"),
    path("invoice-runs/<uuid:invoice_run>/", runs.invoice_run, name="invoice_run"),
    path(
        "invoice-runs/<uuid:invoice_run>/<slug:verb>/",
        runs.invoice_run_act,
        name="invoice_run_act",
    ),
    path("month-close/issue/", closing.issue_chosen, name="issue_chosen"),
    path("month-close/final/", closing.draft_final, name="draft_final"),
    path("invoices/", documents.invoice_list, name="invoice_list"),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/",
        documents.document_detail,
        name="document_detail",
    ),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/lines/<uuid:line_id>/",
        documents.line_detail,
        name="line_detail",
    ),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/document.pdf",
        documents.document_file,
        name="document_file",
    ),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/issue/",
        documents.document_issue,
        name="document_issue",
    ),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/rate/",
        documents.document_redraft,
        name="document_redraft",
    ),
    path(
        "invoices/<uuid:tenant_id>/<uuid:document_id>/credit/",
        documents.document_credit,
        name="document_credit",
    ),
    path("seller/", seller.edit, name="seller"),
    path("exports/", exports.export_page, name="exports"),
    path("exports/accounts/", exports.accounts, name="journal_accounts"),
    path("exports/<slug:name>.<slug:form>", exports.download, name="download"),
]
