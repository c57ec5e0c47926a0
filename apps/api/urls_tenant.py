"""The addresses of a tenant's API."""

from django.urls import path

from apps.api.openapi import openapi
from apps.api.views import (
    approving,
    billing,
    operating,
    ordering,
    organisation,
    own,
    reserving,
    running,
)

app_name = "api"
urlpatterns = [
    path("v1/openapi.json", openapi, name="openapi"),
    path("v1/me", own.Me.as_view(), name="me"),
    path("v1/access-keys", own.AccessKeys.as_view(), name="access_keys"),
    path("v1/access-keys/<uuid:key>", own.AccessKeyItem.as_view(), name="access_key"),
    path("v1/notices", own.Notices.as_view(), name="notices"),
    path("v1/notices/<uuid:notice>/read", own.NoticeRead.as_view(), name="notice_read"),
    path("v1/audit-events", own.AuditEntries.as_view(), name="audit_events"),
    path("v1/members", organisation.Members.as_view(), name="members"),
    path("v1/members/<uuid:person>", organisation.MemberItem.as_view(), name="member"),
    path(
        "v1/members/<uuid:person>/deactivate",
        organisation.MemberDeactivation.as_view(),
        name="member_deactivate",
    ),
    path(
        "v1/members/<uuid:person>/reactivate",
        organisation.MemberReactivation.as_view(),
        name="member_reactivate",
    ),
    path("v1/projects", organisation.Projects.as_view(), name="projects"),
    path("v1/projects/<uuid:project>", organisation.ProjectItem.as_view(), name="project"),
    path(
        "v1/projects/<uuid:project>/archive",
        organisation.ProjectArchive.as_view(),
        name="project_archive",
    ),
    path(
        "v1/projects/<uuid:project>/members",
        organisation.ProjectMembers.as_view(),
        name="project_members",
    ),
    path(
        "v1/projects/<uuid:project>/members/<uuid:person>",
        organisation.ProjectMemberItem.as_view(),
        name="project_member",
    ),
    path("v1/quotas", organisation.Quotas.as_view(), name="quotas"),
    path("v1/quotas/<uuid:project>", organisation.QuotaOfProject.as_view(), name="quota"),
    path("v1/ssh-keys", organisation.SSHKeys.as_view(), name="ssh_keys"),
    path("v1/ssh-keys/<uuid:key>", organisation.SSHKeyItem.as_view(), name="ssh_key"),
    path("v1/images", ordering.Images.as_view(), name="images"),
    path("v1/offerings", ordering.Offerings.as_view(), name="offerings"),
    path("v1/offerings/<str:sku>", ordering.OfferingItem.as_view(), name="offering"),
    path("v1/quotes", ordering.Quotes.as_view(), name="quotes"),
    path("v1/quotes/<uuid:quote>", ordering.QuoteItem.as_view(), name="quote"),
    path("v1/orders", ordering.Orders.as_view(), name="orders"),
    path("v1/orders/<uuid:order>", ordering.OrderItem.as_view(), name="order"),
    path(
        "v1/orders/<uuid:order>/cancel",
        ordering.OrderCancellation.as_view(),
        name="order_cancel",
    ),
    path(
        "v1/orders/<uuid:order>/schedule",
        ordering.OrderSchedule.as_view(),
        name="order_schedule",
    ),
    path("v1/approvals", approving.Approvals.as_view(), name="approvals"),
    path("v1/approvals/<uuid:approval>", approving.ApprovalItem.as_view(), name="approval"),
    path(
        "v1/approvals/<uuid:approval>/approve",
        approving.ApprovalGrant.as_view(),
        name="approval_approve",
    ),
    path(
        "v1/approvals/<uuid:approval>/refuse",
        approving.ApprovalRefusal.as_view(),
        name="approval_refuse",
    ),
    path("v1/order-policy", approving.OrderPolicyItem.as_view(), name="order_policy"),
    path(
        "v1/reservations/quotes", reserving.ReservationQuotes.as_view(), name="reservation_quotes"
    ),
    path("v1/reservations", reserving.Reservations.as_view(), name="reservations"),
    path(
        "v1/reservations/<uuid:reservation>",
        reserving.ReservationItem.as_view(),
        name="reservation",
    ),
    path(
        "v1/reservations/<uuid:reservation>/cancel",
        reserving.ReservationCancellation.as_view(),
        name="reservation_cancel",
    ),
    path("v1/services", running.Services.as_view(), name="services"),
    path("v1/services/<uuid:service>", running.ServiceItem.as_view(), name="service"),
    path(
        "v1/services/<uuid:service>/terminate",
        running.ServiceTermination.as_view(),
        name="service_terminate",
    ),
    path(
        "v1/services/<uuid:service>/extend",
        running.ServiceExtension.as_view(),
        name="service_extend",
    ),
    path(
        "v1/services/<uuid:service>/protection",
        running.ServiceProtection.as_view(),
        name="service_protection",
    ),
    path(
        "v1/services/<uuid:service>/access",
        running.ServiceAccess.as_view(),
        name="service_access",
    ),
    path(
        "v1/services/<uuid:service>/state-history",
        running.ServiceStates.as_view(),
        name="service_state_history",
    ),
    path(
        "v1/services/<uuid:service>/power-off",
        operating.ServicePowerOff.as_view(),
        name="service_power_off",
    ),
    path(
        "v1/services/<uuid:service>/power-on",
        operating.ServicePowerOn.as_view(),
        name="service_power_on",
    ),
    path(
        "v1/services/<uuid:service>/reboot",
        operating.ServiceReboot.as_view(),
        name="service_reboot",
    ),
    path(
        "v1/services/<uuid:service>/power-cycle",
        operating.ServicePowerCycle.as_view(),
        name="service_power_cycle",
    ),
    path(
        "v1/services/<uuid:service>/reinstall",
        operating.ServiceReinstallation.as_view(),
        name="service_reinstall",
    ),
    path(
        "v1/services/<uuid:service>/rescue",
        operating.ServiceRescue.as_view(),
        name="service_rescue",
    ),
    path(
        "v1/services/<uuid:service>/unrescue",
        operating.ServiceUnrescue.as_view(),
        name="service_unrescue",
    ),
    path(
        "v1/services/<uuid:service>/console",
        operating.ServiceConsole.as_view(),
        name="service_console",
    ),
    path("v1/services/<uuid:service>/name", operating.ServiceName.as_view(), name="service_name"),
    path("v1/services/<uuid:service>/tags", operating.ServiceTags.as_view(), name="service_tags"),
    path("v1/services/<uuid:service>/usage", running.ServiceUsage.as_view(), name="service_usage"),
    path(
        "v1/services/<uuid:service>/health",
        running.ServiceHealth.as_view(),
        name="service_health",
    ),
    path("v1/usage", billing.Usage.as_view(), name="usage"),
    path("v1/usage/csv", billing.UsageFile.as_view(), name="usage_csv"),
    path("v1/invoices/csv", billing.InvoicesFile.as_view(), name="invoices_csv"),
    path("v1/invoices", billing.Invoices.as_view(), name="invoices"),
    path("v1/invoices/<uuid:invoice>", billing.InvoiceItem.as_view(), name="invoice"),
    path("v1/invoices/<uuid:invoice>/csv", billing.InvoiceFile.as_view(), name="invoice_csv"),
    path("v1/invoices/<uuid:invoice>/pdf", billing.InvoicePrint.as_view(), name="invoice_pdf"),
    path("v1/invoices/<uuid:invoice>/lines", billing.InvoiceLines.as_view(), name="invoice_lines"),
    path(
        "v1/invoices/<uuid:invoice>/lines/<uuid:line>/explain",
        billing.LineExplanation.as_view(),
        name="invoice_line_explain",
    ),
]
