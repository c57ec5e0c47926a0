"""The side bars: which pages each side has, in which order, for whom."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse
from django.utils.functional import Promise
from django.utils.module_loading import import_string
from django.utils.translation import gettext_lazy as _


@dataclass(frozen=True)
class Item:
    """A page of the side bar; `also` lists the pages below it that keep it lit."""

    label: Promise
    url_name: str
    icon: str
    permission: str = ""
    also: tuple[str, ...] = ()
    count: str = ""  # a function that says how many things wait there


@dataclass(frozen=True)
class Shown:
    """An item as the side bar draws it."""

    label: Promise
    url: str
    icon: str
    is_current: bool
    count: int = 0


Section = tuple[Promise | str, tuple[Item, ...]]

PORTAL: tuple[Section, ...] = (
    (
        "",
        (
            Item(_("Home"), "portal:home", "home"),
            Item(
                _("Catalog"),
                "portal:catalog",
                "server-2",
                "catalog.view",
                ("portal:offering", "portal:quote"),
            ),
            Item(
                _("Orders"),
                "portal:order_list",
                "shopping-cart",
                "order.view",
                ("portal:order_detail",),
            ),
            Item(
                _("Reservations"),
                "portal:reservation_list",
                "calendar",
                "order.view",
                ("portal:reservation_new", "portal:reservation_detail"),
            ),
            Item(
                _("Services"),
                "portal:service_list",
                "server",
                "service.view",
                ("portal:service_detail",),
            ),
        ),
    ),
    (
        _("Money"),
        (
            Item(_("Cost this month"), "portal:costs", "chart-bar", "usage.view"),
            Item(
                _("Invoices"),
                "portal:invoice_list",
                "file-invoice",
                "invoice.view",
                ("portal:invoice_detail",),
            ),
        ),
    ),
    (
        _("Access"),
        (
            Item(_("SSH keys"), "portal:ssh_keys", "key", "ssh_key.manage"),
            Item(_("Access keys"), "portal:access_keys", "api", "access_key.manage"),
        ),
    ),
    (
        _("Organisation"),
        (
            Item(_("Projects"), "portal:projects", "folder", "project.view"),
            Item(_("Members"), "portal:members", "users", "member.manage"),
            Item(_("Approvals"), "portal:approvals", "circle-check", "order.approve"),
            Item(_("Quotas"), "portal:quotas", "gauge", "service.view"),
            Item(_("Audit trail"), "portal:audit", "history", "audit.view"),
        ),
    ),
)

CONSOLE: tuple[Section, ...] = (
    (
        "",
        (
            Item(_("Overview"), "console:home", "home"),
            Item(
                _("Needs a person"),
                "console:work_list",
                "bell",
                "capacity.view",
                count="apps.console.work.count",
            ),
            Item(
                _("Capacity"),
                "console:capacity",
                "gauge",
                "capacity.view",
                ("console:capacity_weeks",),
            ),
        ),
    ),
    (
        _("Work"),
        (
            Item(
                _("Orders"),
                "console:order_list",
                "shopping-cart",
                "order.view",
                ("console:order_detail", "console:service_detail"),
            ),
            Item(
                _("Reservations"),
                "console:reservation_list",
                "calendar",
                "order.view",
                ("console:reservation_detail",),
            ),
            Item(_("Runs"), "console:run_list", "route", "run.view", ("console:run_detail",)),
            Item(
                _("Findings"),
                "console:finding_list",
                "alert-triangle",
                "node.view",
                ("console:finding_detail",),
            ),
            Item(_("Leaks"), "console:leak_list", "trash", "run.view"),
            Item(
                _("Failure policies"),
                "console:policy_list",
                "rotate",
                "run.view",
                ("console:policy_edit",),
            ),
        ),
    ),
    (
        _("Infrastructure"),
        (
            Item(_("Nodes"), "console:node_list", "server", "node.view", ("console:node_detail",)),
            Item(
                _("Sites"), "console:site_list", "building", "node.view", ("console:site_detail",)
            ),
            Item(
                _("Qualified hardware"), "console:qualification_list", "shield-check", "node.view"
            ),
            Item(
                _("Tickets"),
                "console:ticket_list",
                "tool",
                "node.view",
                ("console:ticket_detail",),
            ),
            Item(
                _("Planned work"),
                "console:maintenance_list",
                "calendar",
                "node.view",
                ("console:maintenance_detail", "console:maintenance_plan"),
            ),
        ),
    ),
    (
        _("Business"),
        (
            Item(
                _("Tenants"),
                "console:tenant_list",
                "users",
                "tenant.view",
                ("console:tenant_detail",),
            ),
            Item(_("Offerings"), "console:offering_list", "server-2", "catalog.view"),
            Item(_("Finance"), "finance:home", "coins", "invoice.view"),
        ),
    ),
    (
        _("Record"),
        (
            Item(_("Audit trail"), "console:audit", "history", "audit.view"),
            Item(
                _("Runbooks"),
                "console:runbook_list",
                "info-circle",
                "run.view",
                ("console:runbook",),
            ),
        ),
    ),
)

FINANCE: tuple[Section, ...] = (
    (
        "",
        (
            Item(_("Overview"), "finance:home", "home"),
            Item(
                _("Month close"),
                "finance:month_close",
                "calendar",
                "invoice.view",
                ("finance:invoice_run",),
            ),
            Item(
                _("Invoices"),
                "finance:invoice_list",
                "file-invoice",
                "invoice.view",
                ("finance:document_detail",),
            ),
        ),
    ),
    (
        _("Prices"),
        (
            Item(
                _("Price books"),
                "finance:price_books",
                "tag",
                "catalog.view",
                ("finance:price_book",),
            ),
            Item(
                _("Contracts"),
                "finance:contracts",
                "tag",
                "catalog.view",
                ("finance:contract", "finance:contract_new"),
            ),
        ),
    ),
    (
        _("Records"),
        (
            Item(_("Exports"), "finance:exports", "download", "export"),
            Item(_("Seller"), "finance:seller", "building", "invoice.manage"),
        ),
    ),
    (_("Elsewhere"), (Item(_("Console"), "console:home", "arrow-left"),)),
)

AREAS = {"portal": PORTAL, "console": CONSOLE, "finance": FINANCE}


def side_bar(area: str, user: Any, current: str) -> list[tuple[Promise | str, list[Shown]]]:
    """The sections of an area this person may open; empty ones are left out."""
    sections = []
    for title, items in AREAS[area]:
        shown = [
            Shown(
                item.label,
                reverse(item.url_name),
                item.icon,
                current == item.url_name or current in item.also,
                import_string(item.count)() if item.count else 0,
            )
            for item in items
            if not item.permission or user.may(item.permission)
        ]
        if shown:
            sections.append((title, shown))
    return sections
