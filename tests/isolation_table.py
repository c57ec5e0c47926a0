"""Who may reach what: one line for every URL, API operation and task.

The isolation walk holds it against the program. A new route fails the walk until it has a line
here, and so does a line whose route is gone.
"""

from dataclasses import dataclass, field
from typing import Any

A_MONTH = {"since": "2026-03-01T00:00:00Z", "until": "2026-04-01T00:00:00Z"}
SIGNED_IN = "anybody"  # everybody who is signed in on that side, whatever their role


@dataclass(frozen=True)
class Route:
    """Permission by method; None means nobody needs to sign in."""

    methods: dict[str, str | None]
    data: dict[str, Any] = field(default_factory=dict)  # sent with changes
    things: dict[str, str] = field(default_factory=dict)  # part of the URL → thing of the world
    query: dict[str, str] = field(default_factory=dict)  # sent with readings


def page(permission: str, **things: str) -> Route:
    """A page that is read."""
    return Route({"get": permission}, things=things)


def post(permission: str, *, data: dict[str, Any] | None = None, **things: str) -> Route:
    """A form that is sent; {thing} in its data is that thing's id."""
    return Route({"post": permission}, data or {}, things)


def both(permission: str, **things: str) -> Route:
    """A page with its form."""
    return Route({"get": permission, "post": permission}, things=things)


def api(
    *,
    things: dict[str, str] | None = None,
    data: dict[str, Any] | None = None,
    query: dict[str, str] | None = None,
    **methods: str,
) -> Route:
    """An address of the API with its methods."""
    return Route(dict(methods), data or {}, things or {}, query or {})


def open_to_all(*methods: str, **things: str) -> Route:
    """Answered without signing in."""
    return Route(dict.fromkeys(methods or ("get",)), things=things)


# The same on both sides; the links of a password mail prove themselves by their key.
SIGNING_IN: dict[str, Route] = {
    "preferences": open_to_all("post"),
    "account_login": open_to_all("get", "post"),
    "account_logout": open_to_all("get", "post"),
    "account_inactive": open_to_all(),
    "account_signup": open_to_all("get", "post"),
    "account_email": open_to_all(),
    "account_change_password": both(SIGNED_IN),
    "account_set_password": both(SIGNED_IN),
    "account_reset_password": open_to_all("get", "post"),
    "account_reset_password_done": open_to_all(),
    "account_reset_password_from_key": open_to_all(),
    "account_reset_password_from_key_done": open_to_all(),
}

PLATFORM: dict[str, Route] = SIGNING_IN | {
    "healthz": open_to_all(),
    "readyz": open_to_all(),
    "metrics": open_to_all(),  # to whoever has the token; a bearer of its own, no person
    "console:home": page("capacity.view"),
    "console:capacity": page("capacity.view"),
    "console:order_list": page("order.view"),
    "console:order_detail": page("order.view"),
    "console:service_detail": page("service.view"),
    "console:service_act": post("service.operate", data={"reason": "not paid"}, verb="suspend"),
    "console:run_list": page("run.view"),
    "console:run_detail": page("run.view"),
    "console:run_act": post("run.act", verb="retry"),
    "console:leak_list": page("run.view"),
    "console:leak_act": post("run.act", verb="assign"),
    "console:policy_list": page("run.view"),
    "console:policy_edit": both("site.manage"),
    "console:policy_remove": post("site.manage"),
    "console:runbook_list": page("run.view"),
    "console:runbook": page("run.view", name="site-silent"),
    "console:node_list": page("node.view"),
    "console:node_map": page("node.view"),
    "console:node_detail": page("node.view"),
    "console:node_act": post("node.act", verb="quarantine"),
    "console:ticket_close": post("node.act"),
    "console:site_list": page("node.view"),
    "console:site_detail": page("node.view"),
    "console:site_import": post("site.manage"),
    "console:site_validate": post("site.manage"),
    "console:site_act": post("site.manage"),
    "console:site_look": post("site.manage"),
    "console:site_policy": post("site.manage", kind="kind", data={"automatic": "0"}),
    "console:finding_list": page("node.view"),
    "console:finding_detail": page("node.view", finding_id="finding"),
    "console:finding_act": post("node.act", finding_id="finding", verb="fix_verb"),
    "console:site_create": both("site.manage"),
    "console:site_edit": both("site.manage"),
    "console:pool_create": both("site.manage"),
    "console:pool_edit": both("site.manage", pool_id="pool"),
    "console:tenant_list": page("tenant.view"),
    "console:tenant_create": both("tenant.manage"),
    "console:tenant_detail": page("tenant.view"),
    "console:tenant_limits": post("quota.manage"),
    "console:offering_list": page("catalog.view"),
    "console:offering_import": both("catalog.manage"),
    "console:offering_export": page("catalog.view"),
    "console:search": page("capacity.view"),
    "console:audit": page("audit.view"),
    "console:notices": page("capacity.view"),
    "console:notice_read": post("capacity.view"),
    "finance:home": page("invoice.view"),
    "finance:price_books": page("catalog.view"),
    "finance:price_book": page("catalog.view"),
    "finance:price_add": post("price.manage"),
    "finance:contracts": page("catalog.view"),
    "finance:contract_new": both("price.manage"),
    "finance:contract": page("catalog.view"),
    "finance:contract_change": post("price.manage"),
    "finance:contract_end": post("price.manage"),
    "finance:month_close": page("invoice.view"),
    "finance:draft_all": post("invoice.manage"),
    "finance:invoice_run": page("invoice.view"),
    "finance:invoice_run_act": post("invoice.manage", verb="redraft"),
    "finance:issue_chosen": post("invoice.manage"),
    "finance:draft_final": post("invoice.manage", data={"tenant": "{tenant}", "period": "2026-04"}),
    "finance:invoice_list": page("invoice.view"),
    "finance:document_detail": page("invoice.view"),
    "finance:document_file": page("invoice.view"),
    "finance:seller": both("invoice.manage"),
    "finance:journal_accounts": post(
        "invoice.manage",
        data={"receivable": "108", "revenue": "401", "discount": "402", "tax": "255"},
    ),
    "finance:line_detail": page("invoice.view"),
    "finance:document_issue": post("invoice.manage"),
    "finance:document_redraft": post("invoice.manage"),
    "finance:document_credit": post("invoice.manage"),
    "finance:exports": page("export"),
    "finance:download": page("export"),
    "provisioning:call_home": open_to_all("post"),
    "api:openapi": open_to_all(),
    "api:me": api(get=SIGNED_IN),
    "api:access_keys": api(get="access_key.manage", post="access_key.manage"),
    "api:access_key": api(delete="access_key.manage", things={"key": "access_key"}),
    "api:notices": api(get=SIGNED_IN),
    "api:notice_read": api(post=SIGNED_IN),
    "api:audit_events": api(get="audit.view"),
    "api:tenants": api(get="tenant.view", post="tenant.manage"),
    "api:tenant": api(get="tenant.view"),
    "api:tenant_limits": api(get="tenant.view", put="quota.manage"),
    "api:orders": api(get="order.view"),
    "api:services": api(get="service.view"),
    "api:service_suspend": api(post="service.operate", data={"reason": "not paid"}),
    "api:service_resume": api(post="service.operate", data={"reason": "paid"}),
    "api:offerings": api(get="catalog.view"),
    "api:offering_retire": api(post="catalog.manage"),
    "api:price_books": api(get="catalog.view", post="price.manage"),
    "api:price_book": api(get="catalog.view"),
    "api:prices": api(get="catalog.view", post="price.manage"),
    "api:contracts": api(get="catalog.view", post="price.manage"),
    "api:contract_change": api(post="price.manage"),
    "api:contract_end": api(post="price.manage"),
    "api:catalog": api(get="catalog.view"),
    "api:catalog_import": api(post="catalog.manage"),
    "api:sites": api(get="capacity.view", post="site.manage"),
    "api:site": api(get="capacity.view"),
    "api:site_pause": api(post="site.manage"),
    "api:site_resume": api(post="site.manage"),
    "api:site_import_nodes": api(post="site.manage"),
    "api:site_validate": api(post="site.manage"),
    "api:site_look": api(get="node.view", post="site.manage"),
    "api:findings": api(get="node.view"),
    "api:finding": api(get="node.view", things={"finding": "finding"}),
    "api:finding_fix": api(post="node.act", things={"finding": "finding"}),
    "api:finding_accept": api(
        post="node.act", things={"finding": "finding"}, data={"reason": "known"}
    ),
    "api:fix_policies": api(
        get="node.view", put="site.manage", data={"kind": "power", "is_automatic": True}
    ),
    "api:nodes": api(get="node.view"),
    "api:node": api(get="node.view"),
    "api:node_events": api(get="node.view"),
    "api:node_quarantine": api(post="node.act"),
    "api:node_maintenance": api(post="node.act"),
    "api:node_restore": api(post="node.act"),
    "api:gpus": api(get="node.view"),
    "api:allocations": api(get="capacity.view"),
    "api:tickets": api(get="node.view"),
    "api:ticket_close": api(post="node.act"),
    "api:fleet": api(get="capacity.view"),
    "api:runs": api(get="run.view"),
    "api:run": api(get="run.view"),
    "api:run_steps": api(get="run.view"),
    "api:run_events": api(get="run.view"),
    "api:run_retry": api(post="run.act"),
    "api:run_undo": api(post="run.act"),
    "api:invoice_runs": api(get="invoice.view", post="invoice.manage"),
    "api:invoice_run": api(get="invoice.view"),
    "api:invoice_run_tenants": api(get="invoice.view"),
    "api:invoice_run_issue": api(post="invoice.manage"),
    "api:invoice_run_redraft": api(post="invoice.manage"),
    "api:invoice_run_cancel": api(post="invoice.manage"),
    "api:usage_csv": api(get="export"),
    "api:invoice_lines_csv": api(get="export"),
    "api:invoices_csv": api(get="export"),
    "api:invoices": api(get="invoice.view", post="invoice.manage"),
    "api:invoice": api(get="invoice.view"),
    "api:invoice_issue": api(post="invoice.manage"),
    "api:invoice_lines": api(get="invoice.view"),
    "api:invoice_line_explain": api(get="invoice.view"),
    "api:credit_notes": api(get="invoice.view", post="invoice.manage"),
}
TENANT: dict[str, Route] = SIGNING_IN | {
    "portal:home": page("service.view"),
    "portal:catalog": page("catalog.view"),
    "portal:offering": page("catalog.view"),
    "portal:quote": both("order.place"),
    "portal:quote_detail": page("order.place"),
    "portal:place": post(
        "order.place", data={"project": "{project}", "name": "new", "image": "ubuntu-24.04"}
    ),
    "portal:order_list": page("order.view"),
    "portal:order_detail": page("order.view"),
    "portal:order_cancel": post("order.cancel", data={"reason": "x"}),
    "portal:order_schedule": post("order.place", data={"starts_at": "2026-12-24T10:00"}),
    "portal:approvals": page("order.approve"),
    "portal:order_policy": post("order.approve", data={"approval_hours": "72"}),
    "portal:approval_approve": post("order.approve"),
    "portal:approval_refuse": post("order.approve", data={"reason": "not now"}),
    "portal:service_list": page("service.view"),
    "portal:service_detail": page("service.view"),
    "portal:service_terminate": post("service.terminate"),
    "portal:service_end": post("service.terminate", data={"ends_at": "2026-12-24T10:00"}),
    "portal:service_protect": post("service.terminate"),
    "portal:service_operate": post("service.operate", verb="reboot"),
    "portal:service_rename": post("service.operate", data={"name": "other"}),
    "portal:service_tags": post("service.operate", data={"tags": "team=vision"}),
    "portal:service_console": post("service.operate"),
    "portal:costs": page("usage.view"),
    "portal:invoice_list": page("invoice.view"),
    "portal:invoice_detail": page("invoice.view"),
    "portal:invoice_download": page("invoice.view"),
    "portal:invoice_file": page("invoice.view"),
    "portal:usage_download": page("usage.view"),
    "portal:invoice_line": page("invoice.view"),
    "portal:members": both("member.manage"),
    "portal:member_role": post("member.manage", data={"role": "viewer"}),
    "portal:member_access": post("member.manage"),
    "portal:projects": both("project.view"),
    "portal:project_archive": post("project.manage"),
    "portal:project_limit": post("quota.manage"),
    "portal:ssh_keys": both("ssh_key.manage"),
    "portal:ssh_key_remove": post("ssh_key.manage", key_id="ssh_key"),
    "portal:access_keys": both("access_key.manage"),
    "portal:access_key_revoke": post("access_key.manage", key_id="access_key"),
    "portal:quotas": page("service.view"),
    "portal:audit": page("audit.view"),
    "portal:notices": page("service.view"),
    "portal:notice_read": post("service.view"),
    "api:openapi": open_to_all(),
    "api:me": api(get=SIGNED_IN),
    "api:access_keys": api(get="access_key.manage", post="access_key.manage"),
    "api:access_key": api(delete="access_key.manage", things={"key": "access_key"}),
    "api:notices": api(get=SIGNED_IN),
    "api:notice_read": api(post=SIGNED_IN),
    "api:audit_events": api(get="audit.view"),
    "api:members": api(get="member.manage", post="member.manage"),
    "api:member": api(get="member.manage", patch="member.manage", data={"role": "viewer"}),
    "api:member_deactivate": api(post="member.manage"),
    "api:member_reactivate": api(post="member.manage"),
    "api:projects": api(get="project.view", post="project.manage"),
    "api:project": api(get="project.view"),
    "api:project_archive": api(post="project.manage"),
    "api:project_members": api(
        get="project.view", post="project.manage", data={"person": "{person}"}
    ),
    "api:project_member": api(delete="project.manage"),
    "api:quotas": api(get="project.view"),
    "api:quota": api(put="quota.manage"),
    "api:ssh_keys": api(get="ssh_key.manage", post="ssh_key.manage"),
    "api:ssh_key": api(delete="ssh_key.manage", things={"key": "ssh_key"}),
    "api:images": api(get="catalog.view"),
    "api:offerings": api(get="catalog.view"),
    "api:offering": api(get="catalog.view"),
    "api:quotes": api(get="order.view", post="order.place"),
    "api:quote": api(get="order.view"),
    "api:orders": api(
        get="order.view",
        post="order.place",
        data={"quote": "{quote}", "project": "{project}", "name": "new"},
    ),
    "api:order": api(get="order.view"),
    "api:order_cancel": api(post="order.cancel", data={"reason": "x"}),
    "api:order_schedule": api(
        put="order.place", data={"starts_at": "2026-12-24T00:00:00Z", "ends_at": None}
    ),
    "api:approvals": api(get="order.view"),
    "api:approval": api(get="order.view"),
    "api:approval_approve": api(post="order.approve"),
    "api:approval_refuse": api(post="order.approve", data={"reason": "not now"}),
    "api:order_policy": api(
        get="order.view",
        put="order.approve",
        data={"approval_from_gpus": None, "approval_hours": 72, "longest_days": None},
    ),
    "api:services": api(get="service.view"),
    "api:service": api(get="service.view"),
    "api:service_extend": api(post="service.terminate", data={"ends_at": "2026-12-24T00:00:00Z"}),
    "api:service_terminate": api(post="service.terminate"),
    "api:service_protection": api(put="service.terminate"),
    "api:service_power_off": api(post="service.operate"),
    "api:service_power_on": api(post="service.operate"),
    "api:service_reboot": api(post="service.operate"),
    "api:service_power_cycle": api(post="service.operate"),
    "api:service_reinstall": api(post="service.operate"),
    "api:service_rescue": api(post="service.operate", data={"password": "a long password"}),
    "api:service_unrescue": api(post="service.operate"),
    "api:service_console": api(post="service.operate"),
    "api:service_name": api(put="service.operate", data={"name": "other"}),
    "api:service_tags": api(put="service.operate", data={"tags": {"team": "vision"}}),
    "api:service_access": api(get="service.view"),
    "api:service_state_history": api(get="service.view"),
    "api:service_usage": api(get="usage.view", query=A_MONTH),
    "api:service_health": api(get="service.view"),
    "api:usage": api(get="usage.view"),
    "api:usage_csv": api(get="usage.view"),
    "api:invoices_csv": api(get="invoice.view"),
    "api:invoices": api(get="invoice.view"),
    "api:invoice": api(get="invoice.view"),
    "api:invoice_csv": api(get="invoice.view"),
    "api:invoice_pdf": api(get="invoice.view"),
    "api:invoice_lines": api(get="invoice.view"),
    "api:invoice_line_explain": api(get="invoice.view"),
}

# Which side a task runs on: its own tenant's, or the platform's.
TASKS: dict[str, str] = {
    "apps.audit.tasks.seal_platform": "platform",
    "apps.audit.tasks.seal_tenant": "tenant",
    "apps.core.tasks.forget_answers_of_platform": "platform",
    "apps.core.tasks.forget_answers_of_tenant": "tenant",
    "apps.invoicing.tasks.work_invoice_runs": "platform",
    "apps.notices.tasks.send_notices": "platform",
    "apps.orders.tasks.serve_deadlines": "platform",
    "apps.orders.tasks.serve_queues": "platform",
    "apps.provisioning.tasks.advance_fix": "platform",
    "apps.provisioning.tasks.advance_run": "platform",
    "apps.provisioning.tasks.reconcile_site": "platform",
    "apps.provisioning.tasks.reconcile_sites": "platform",
    "apps.provisioning.tasks.retry_leak": "platform",
    "apps.provisioning.tasks.sweep_leaks": "platform",
    "apps.provisioning.tasks.sweep_runs": "platform",
    "apps.provisioning.tasks.watch_site": "platform",
    "apps.provisioning.tasks.watch_sites": "platform",
    "apps.tenancy.tasks.dispatch_pending_work": "platform",
    "apps.tenancy.tasks.relay_outbox": "platform",
}
