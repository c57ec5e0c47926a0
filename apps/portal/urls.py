"""URLs of the tenant's pages."""

from django.urls import path

from apps.portal.views import approvals, catalog, home, money, orders, people, records, services

app_name = "portal"
urlpatterns = [
    path("", home.home, name="home"),
    path("catalog/", catalog.offering_list, name="catalog"),
    path("catalog/<str:sku>/", catalog.offering_detail, name="offering"),
    path("catalog/<str:sku>/quote/", catalog.quote, name="quote"),
    path("quotes/<uuid:quote_id>/", catalog.quote_detail, name="quote_detail"),
    path("quotes/<uuid:quote_id>/place/", catalog.place, name="place"),
    path("orders/", orders.order_list, name="order_list"),
    path("orders/<uuid:order_id>/", orders.order_detail, name="order_detail"),
    path("orders/<uuid:order_id>/cancel/", orders.order_cancel, name="order_cancel"),
    path("orders/<uuid:order_id>/schedule/", orders.order_schedule, name="order_schedule"),
    path("services/", services.service_list, name="service_list"),
    path("services/<uuid:service_id>/", services.service_detail, name="service_detail"),
    path(
        "services/<uuid:service_id>/terminate/",
        services.service_terminate,
        name="service_terminate",
    ),
    path("services/<uuid:service_id>/protect/", services.service_protect, name="service_protect"),
    path("services/<uuid:service_id>/end/", services.service_end, name="service_end"),
    path("costs/", money.month, name="costs"),
    path("invoices/", money.invoice_list, name="invoice_list"),
    path("invoices/<uuid:document_id>/", money.invoice_detail, name="invoice_detail"),
    path("invoices/<uuid:document_id>/lines.csv", money.invoice_download, name="invoice_download"),
    path("invoices/<uuid:document_id>/document.pdf", money.invoice_file, name="invoice_file"),
    path("invoices/<uuid:document_id>/usage.csv", money.usage_download, name="usage_download"),
    path("invoices/lines/<uuid:line_id>/", money.invoice_line, name="invoice_line"),
    path("members/", people.members, name="members"),
    path("members/<uuid:person_id>/role/", people.member_role, name="member_role"),
    path("members/<uuid:person_id>/access/", people.member_access, name="member_access"),
    path("projects/", people.projects, name="projects"),
    path("projects/<uuid:project_id>/archive/", people.project_archive, name="project_archive"),
    path("projects/<uuid:project_id>/limit/", people.project_limit, name="project_limit"),
    path("ssh-keys/", people.ssh_keys, name="ssh_keys"),
    path("ssh-keys/<uuid:key_id>/remove/", people.ssh_key_remove, name="ssh_key_remove"),
    path("access-keys/", people.access_keys, name="access_keys"),
    path("access-keys/<uuid:key_id>/revoke/", people.access_key_revoke, name="access_key_revoke"),
    path("approvals/", approvals.approval_list, name="approvals"),
    path("approvals/policy/", approvals.order_policy, name="order_policy"),
    path(
        "approvals/<uuid:approval_id>/approve/",
        approvals.approval_approve,
        name="approval_approve",
    ),
    path("approvals/<uuid:approval_id>/refuse/", approvals.approval_refuse, name="approval_refuse"),
    path("quotas/", people.quotas, name="quotas"),
    path("audit/", records.audit, name="audit"),
    path("notices/", records.notices, name="notices"),
    path("notices/<uuid:notice_id>/read/", records.notice_read, name="notice_read"),
]
