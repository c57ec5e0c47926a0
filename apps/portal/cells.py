"""How the portal words and tables what a tenant has: orders, services, lines, acts."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.audit import words
from apps.audit.models import AuditEntry
from apps.catalog.models import PriceKind
from apps.core import instants, show
from apps.core.money import Money, gpu_hours_display
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.invoicing.models import Document, DocumentLine
from apps.invoicing.selectors import Cost
from apps.metering.selectors import Interval
from apps.orders import causes
from apps.orders.models import Approval, Order, Quote, Service
from apps.orders.names import Names, servers
from apps.orders.selectors import QuotaUse
from apps.orders.states import CHARGES, ApprovalStatus, ServiceState
from apps.provisioning import reasons
from apps.provisioning import standing as standings
from apps.provisioning.evidence_words import in_words, points
from apps.provisioning.standing import Standing

QUOTA_LABELS = {"gpus": gettext_lazy("GPUs"), "services": gettext_lazy("Services")}
BASES = {
    "allocated": gettext_lazy("Allocated time: from ready to terminated, stopped or not"),
    "running": gettext_lazy("Running time: only while the server is on"),
}
PRICE_RULES = {
    "in_force": gettext_lazy("The price valid at each second; a change is announced before"),
    "fixed": gettext_lazy("This price to the end of the term"),
}
DOCUMENT_KINDS = {
    "invoice": gettext_lazy("Invoice"),
    "credit_note": gettext_lazy("Credit note"),
}
LINE_KINDS = {
    "usage": gettext_lazy("Usage"),
    "discount": gettext_lazy("Discount"),
    "reservation": gettext_lazy("Reservation"),
    "minimum": gettext_lazy("Minimum"),
    "late_usage": gettext_lazy("Late usage"),
    "correction": gettext_lazy("Correction"),
}
UNAVAILABLE = {
    "fail": gettext_lazy("Refuse the order"),
    "queue": gettext_lazy("Wait in the queue"),
}


@dataclass(frozen=True)
class QuotaView:
    """Use beside limit, in words."""

    name: str
    used: int
    limit: int | None

    @property
    def left(self) -> str:
        """What is left of it."""
        left = max(0, (self.limit or 0) - self.used)
        return _("{left} left").format(left=left)


def quota_view(row: QuotaUse) -> QuotaView:
    """A row of the quota page."""
    return QuotaView(str(QUOTA_LABELS.get(row.label, row.label)), row.used, row.limit)


@dataclass(frozen=True)
class ProjectView:
    """A project with the id of its dialog."""

    pk: UUID
    name: str
    description: str
    member_count: int
    created_at: datetime
    dialog: str


def with_dialog(project: Any) -> ProjectView:
    """A row of the projects page."""
    return ProjectView(
        project.pk,
        project.name,
        project.description,
        project.member_count,
        project.created_at,
        f"archive-{project.pk}",
    )


@dataclass(frozen=True)
class ChargeView:
    """A row of the table that says what is charged when."""

    state: Any
    customers_see: Any
    allocated: bool
    running: bool


def charges() -> list[ChargeView]:
    """The one table of states and bases, as the customer's pages show it."""
    return [
        ChargeView(ServiceState(row.state).label, row.customers_see, row.allocated, row.running)
        for row in CHARGES
    ]


def quote_terms(quote: Quote) -> list[Term]:
    """Every term a quote freezes."""
    unit = show.money(quote.unit_price, quote.currency)
    total = show.money(quote.unit_price * quote.gpus_each * quote.quantity, quote.currency)
    contract = quote.price_kind == "contract"
    vat = (quote.vat_rate * 100).normalize()
    names = Names()
    return [
        Term(_("What"), servers(quote.quantity, names.offering(quote)), quote.sku),
        Term(_("Where"), names.site(quote.site_code), quote.site_code),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(price=unit),
            _("your contract price") if contract else _("list price"),
        ),
        Term(
            _("All together"),
            _("{price} per hour").format(price=total),
            _("{n} GPUs, before tax").format(n=quote.gpus_each * quote.quantity),
        ),
        Term(_("Currency"), quote.currency),
        Term(_("VAT"), f"{vat:f} %", _("added to the invoice's sum")),
        Term(_("Plan"), quote.get_plan_display()),
        Term(_("Billing basis"), quote.get_billing_basis_display(), BASES[quote.billing_basis]),
        Term(_("Price rule"), PRICE_RULES[quote.price_rule]),
        Term(_("Start"), start_words(quote.starts_at)),
        Term(_("End"), end_words(quote.ends_at)),
        Term(_("Counted"), _("by the second, from proven ready to terminated")),
        Term(_("Valid until"), show.instant(quote.valid_until)),
    ]


def order_terms(order: Order) -> list[Term]:
    """What was agreed."""
    names = Names()
    return [
        Term(_("What"), servers(order.quantity, names.offering(order)), order.sku),
        Term(_("Where"), names.site(order.site_code), order.site_code),
        Term(_("Project"), order.project.name),
        Term(_("Image"), names.image(order.image_code), order.image_code),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(price=show.money(order.unit_price, order.currency)),
            PRICE_RULES[order.price_rule],
        ),
        Term(_("Billing basis"), order.get_billing_basis_display(), BASES[order.billing_basis]),
        Term(_("If no server is free"), UNAVAILABLE[order.if_unavailable]),
        Term(_("Start"), start_words(order.starts_at)),
        Term(_("End"), end_words(order.ends_at)),
        Term(_("SSH keys"), len(order.ssh_keys)),
        Term(_("Placed by"), order.placed_by.name, show.instant(order.placed_at)),
    ]


def start_words(instant: datetime | None) -> Any:
    """When it begins."""
    return show.instant(instant) if instant else _("as soon as possible")


def end_words(instant: datetime | None) -> Any:
    """When it ends by itself."""
    return show.instant(instant) if instant else _("when it is terminated")


def approval_terms(approval: Approval) -> list[Term]:
    """Who asked and why, who answered, when and why."""
    terms = [
        Term(_("Rule"), causes.rule_in_words(approval.rule)),
        Term(_("Asked by"), approval.asked_by.name, show.instant(approval.asked_at)),
    ]
    if approval.status == ApprovalStatus.WAITING:
        return [*terms, Term(_("Expires"), show.instant(approval.expires_at))]
    who = approval.decided_by.name if approval.decided_by else ""
    terms.append(
        Term(approval.get_status_display(), who or show.NOTHING, show.instant(approval.decided_at))
    )
    return [*terms, Term(_("Reason"), approval.reason)] if approval.reason else terms


def approval_table(approvals: Iterable[Approval]) -> Table:
    """Questions and their answers, newest first."""
    return Table(
        caption=_("Answered"),
        columns=[
            Column(_("What")),
            Column(_("Asked by")),
            Column(_("Answer")),
            Column(_("By"), hide="sm"),
            Column(_("Reason"), wrap=True, hide="md"),
        ],
        rows=[
            Row(
                [
                    approval_link(one),
                    show.stacked(one.asked_by.name, show.instant(one.asked_at)),
                    approval_badge(one),
                    show.stacked(
                        one.decided_by.name if one.decided_by else show.NOTHING,
                        show.instant(one.decided_at),
                    ),
                    one.reason or show.NOTHING,
                ],
                id=str(one.pk),
            )
            for one in approvals
        ],
        empty=Empty(_("Nothing answered yet"), icon="history"),
    )


def approval_badge(approval: Approval) -> SafeString:
    """What became of a question."""
    tone = "green" if approval.status == ApprovalStatus.APPROVED else ""
    return show.badge(approval.status, approval.get_status_display(), tone=tone)


def approval_cost(approval: Approval) -> str:
    """What it costs an hour, and until when."""
    thing = approval.order or approval.reservation
    if thing is None:
        return ""
    cost = _("{price} per hour").format(
        price=show.money(thing.unit_price * thing.gpus, thing.currency)
    )
    end = _("when it is terminated")
    if thing.ends_at:
        end = instants.in_words(thing.ends_at, seconds=False)
    return f"{cost} · {_('End')}: {end}"


def approval_link(approval: Approval) -> SafeString:
    """What a question is about."""
    thing = approval.order or approval.reservation
    name = order_link(approval.order) if approval.order else str(thing)
    return show.stacked(name, f"{getattr(thing, 'name', '')} · {getattr(thing, 'sku', '')}")


def order_words(order: Order) -> str:
    """What it is of, in one line."""
    names = Names()
    return f"{servers(order.quantity, names.offering(order))} · {names.site(order.site_code)}"


def service_words(service: Service) -> str:
    """What it is, in one line."""
    names = Names()
    return f"{names.offering(service.order)} · {names.site(service.site_code)}"


def standing_badge(standing: Standing) -> SafeString:
    """The one honest status of an order or a service."""
    return show.badge(standing.code, standing.label, tone=standing.tone)


def standing_cell(standing: Standing) -> SafeString:
    """The same for a list, with what goes on and until when."""
    under = standing.detail
    if standing.expected_at and standing.code != "scheduled":
        at = instants.in_words(standing.expected_at, seconds=False)
        under = " · ".join(filter(None, (under, _("about {at}").format(at=at))))
    badge = standing_badge(standing)
    return show.stacked(badge, under) if under else badge


def expected_words(standing: Standing) -> str:
    """When it is expected to be ready; "" when nobody waits for it."""
    if not standing.is_awaited:
        return ""
    if standing.expected_at is None:
        return _("The time is not known yet.")
    return _("Expected at {at}").format(at=instants.in_words(standing.expected_at, seconds=False))


def order_link(order: Order) -> SafeString:
    """The order's number, leading to its page."""
    return show.link(order.number, reverse("portal:order_detail", args=[order.pk]))


def service_link(service: Service) -> SafeString:
    """The service's name, leading to its page."""
    return show.link(service.name, reverse("portal:service_detail", args=[service.pk]))


def order_table(orders: Iterable[Order], *, empty: Empty | None = None) -> Table:
    """Orders: number and name, what of, where, for whom, when."""
    orders = list(orders)
    names, shown = Names(), standings.of_orders(orders)
    return Table(
        caption=_("Orders"),
        columns=[
            Column(_("Order")),
            Column(_("Status")),
            Column(_("Servers")),
            Column(_("Project"), hide="md"),
            Column(_("Placed by"), hide="lg"),
            Column(_("Placed"), hide="sm"),
        ],
        rows=[
            Row(
                [
                    show.stacked(order_link(order), order.name),
                    standing_cell(shown[order.pk]),
                    show.stacked(
                        servers(order.quantity, names.offering(order)), names.site(order.site_code)
                    ),
                    order.project.name,
                    order.placed_by.name,
                    show.instant(order.placed_at),
                ],
                id=str(order.pk),
            )
            for order in orders
        ],
        empty=empty
        or Empty(
            _("No orders yet"),
            _("Choose a server in the catalog; you see every term before you confirm."),
            reverse("portal:catalog"),
            _("Open the catalog"),
            "shopping-cart",
        ),
    )


def service_table(
    services: Iterable[Service],
    *,
    empty: Empty | None = None,
    shown: dict[UUID, Standing] | None = None,
) -> Table:
    """Services: name, honest status (`shown` by whoever knows it already), where to connect, GPUs,
    since when.
    """
    services = list(services)
    names = Names()
    shown = standings.of_services(services) if shown is None else shown
    return Table(
        caption=_("Services"),
        columns=[
            Column(_("Service")),
            Column(_("Status")),
            Column(_("Address"), hide="sm"),
            Column(_("GPUs"), number=True),
            Column(_("Project"), hide="md"),
            Column(_("Ready since"), hide="md"),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        service_link(service), f"{service.sku} · {names.site(service.site_code)}"
                    ),
                    standing_cell(shown[service.pk]),
                    show.code(service.address),
                    service.gpus,
                    service.project.name,
                    show.instant(service.ready_at),
                ],
                id=str(service.pk),
            )
            for service in services
        ],
        empty=empty
        or Empty(
            _("No services yet"),
            _("A service appears here as soon as an order is accepted."),
            reverse("portal:catalog"),
            _("Order a server"),
            "server",
        ),
    )


def audit_table(entries: Iterable[AuditEntry], *, narrowed: bool) -> Table:
    """Acts: when, who, what, on what, with which result and why."""
    return Table(
        caption=_("Audit trail"),
        columns=[
            Column(_("When")),
            Column(_("Who")),
            Column(_("What")),
            Column(_("On"), wrap=True),
            Column(_("Result"), hide="sm"),
            Column(_("Reason"), wrap=True, hide="lg"),
            Column(_("From"), hide="xl"),
        ],
        rows=[
            Row(
                [
                    show.instant(entry.at, seconds=True),
                    show.stacked(entry.actor_name, _("operator staff"))
                    if entry.actor_side == "platform"
                    else entry.actor_name,
                    words.action(entry.action),
                    entry.subject_label or show.NOTHING,
                    show.badge(entry.result, words.result(entry.result)),
                    reasons.in_words(entry.reason) or show.NOTHING,
                    entry.ip or show.NOTHING,
                ]
            )
            for entry in entries
        ],
        empty=Empty(
            _("Nothing found") if narrowed else _("Nothing recorded yet"),
            _("Try fewer letters.") if narrowed else "",
            icon="history",
        ),
    )


def access_terms(service: Service) -> dict[str, Any]:
    """How to sign in to a server; empty until it is ready."""
    if not service.address:
        return {}
    login = service.login or "root"
    return {
        "address": service.address,
        "login": login,
        "command": f"ssh {login}@{service.address}",
        "host_keys": [f"{service.address} {key}" for key in service.host_keys],
    }


def service_terms(service: Service) -> list[Term]:
    """What a service is and where it stands."""
    names = Names()
    return [
        Term(_("Order"), order_link(service.order)),
        Term(_("Project"), service.project.name),
        Term(_("Offering"), names.offering(service.order), service.sku),
        Term(_("GPUs"), service.gpus),
        Term(_("Site"), names.site(service.site_code), service.site_code),
        Term(_("Server"), service.node_name or show.NOTHING),
        Term(
            _("Tags"),
            ", ".join(f"{n}={v}" if v else n for n, v in service.tags.items()) or show.NOTHING,
        ),
        Term(_("Ready since"), show.instant(service.ready_at, seconds=True)),
        *_end_terms(service),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(
                price=show.money(service.order.unit_price, service.order.currency)
            ),
            service.order.get_billing_basis_display(),
        ),
    ]


def _end_terms(service: Service) -> list[Term]:
    if service.ended_at is not None:
        return [Term(_("Ended"), show.instant(service.ended_at, seconds=True))]
    if service.leaves_at is None:
        return [Term(_("End"), end_words(None))]
    if service.leaves_at == service.recalled_at:
        hint = _("On loan: somebody has reserved its server for later.")
        return [Term(_("End"), end_words(service.recalled_at), hint)]
    hint = _("An agreed end counts, protected or not.") if service.is_protected else ""
    return [Term(_("End"), end_words(service.ends_at), hint)]


def history_table(intervals: Iterable[Interval]) -> Table:
    """The states a service was in, newest first, and whether they are charged."""
    return Table(
        caption=_("History of states"),
        columns=[
            Column(_("State")),
            Column(_("From")),
            Column(_("To")),
            Column(_("Lasted"), number=True),
            Column(_("Charged")),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        show.badge(one.state, ServiceState(one.state).label),
                        causes.in_words(one.cause),
                    ),
                    show.instant(one.start_at, seconds=True),
                    _("goes on") if one.goes_on else show.instant(one.end_at, seconds=True),
                    show.duration(one.seconds),
                    _("charged") if one.is_charged else _("free"),
                ]
            )
            for one in reversed(list(intervals))
        ],
        empty=Empty(_("Nothing recorded yet"), icon="history"),
    )


def evidence_table(evidence: Iterable[dict[str, Any]]) -> Table:
    """What was proven of the server, by the seven points that make it usable."""
    return Table(
        caption=_("Proof of readiness"),
        columns=[
            Column(_("Point"), wrap=True),
            Column(_("Checked"), wrap=True),
            Column(_("Result")),
            Column(_("Ordered"), wrap=True, hide="sm"),
            Column(_("Seen"), wrap=True),
        ],
        rows=[
            Row(
                [
                    show.strong(point.label) if number == 0 else "",
                    in_words(item.get("item")),
                    verdict(item.get("ok")),
                    in_words(item.get("wanted")),
                    in_words(item.get("seen")),
                ]
            )
            for point in points(evidence)
            for number, item in enumerate(point.items)
        ],
        empty=Empty(
            _("Not proven yet"),
            _("The server reports its GPUs, keys and addresses itself; only then is it active."),
            icon="shield-check",
        ),
    )


def cost_table(cost: Cost) -> Table:
    """The lines the invoice would have if the month ended now."""
    rows = [(line, "") for line in cost.lines]
    rows += [(line, _("late, of an invoiced month")) for line in cost.late_lines]
    agreed = [
        Row(
            [
                show.stacked(LINE_KINDS[line.kind], line.description),
                line.columns.get("project_name") or show.NOTHING,
                *[show.NOTHING] * 3,
                show.money(line.amount),
            ]
        )
        for line in cost.agreed_lines
    ]
    return Table(
        caption=_("Lines so far"),
        columns=[
            Column(_("Service")),
            Column(_("Project"), hide="md"),
            Column(_("GPU-hours"), number=True),
            Column(_("Unit price"), number=True, hide="sm"),
            Column(_("Price"), hide="lg"),
            Column(_("Amount"), number=True),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        show.link(
                            line.service_name,
                            reverse("portal:service_detail", args=[line.service_id]),
                        ),
                        note or f"{line.order_number} · {line.sku} × {line.quantity}",
                    ),
                    line.project_name,
                    gpu_hours_display(line.gpu_seconds),
                    show.money(line.unit_price, cost.currency),
                    show.stacked(line.price_code, _price_kind(line.price_kind)),
                    show.money(line.amount, cost.currency),
                ]
            )
            for line, note in rows
        ]
        + agreed,
        empty=Empty(
            _("Nothing charged this month"),
            _("Charging begins the second a server is proven ready."),
            icon="coins",
        ),
        foot=Row(["", "", "", "", _("Subtotal"), show.money(cost.subtotal)])
        if rows or agreed
        else None,
    )


def project_cost_table(cost: Cost) -> Table:
    """The same by project."""
    sums: dict[str, Money] = {}
    for line in [*cost.lines, *cost.late_lines]:
        amount = Money(line.amount, cost.currency)
        name = line.project_name
        sums[name] = sums[name] + amount if name in sums else amount
    for agreed in cost.agreed_lines:
        name = agreed.columns.get("project_name") or str(_("All projects"))
        sums[name] = sums[name] + agreed.amount if name in sums else agreed.amount
    return Table(
        caption=_("By project"),
        columns=[Column(_("Project")), Column(_("Amount"), number=True)],
        rows=[Row([name, show.money(amount)]) for name, amount in sorted(sums.items())],
        empty=Empty(_("Nothing yet"), icon="folder"),
    )


def document_table(documents: Iterable[Document]) -> Table:
    """Issued invoices and credit notes."""
    return Table(
        caption=_("Invoices"),
        columns=[
            Column(_("Number")),
            Column(_("Kind")),
            Column(_("Month")),
            Column(_("Issued"), hide="sm"),
            Column(_("Subtotal"), number=True, hide="md"),
            Column(_("VAT"), number=True, hide="md"),
            Column(_("Total"), number=True),
        ],
        rows=[
            Row(
                [
                    document_link(document),
                    DOCUMENT_KINDS[document.kind],
                    document.period,
                    show.instant(document.issued_at),
                    show.money(document.subtotal, document.currency),
                    show.money(document.tax, document.currency),
                    show.money(document.total, document.currency),
                ]
            )
            for document in documents
        ],
        empty=Empty(
            _("No invoices yet"),
            _("The first one appears when the operator closes the month."),
            reverse("portal:costs"),
            _("See the cost so far"),
            "file-invoice",
        ),
    )


def document_link(document: Document) -> SafeString:
    """The document's number, leading to its page."""
    return show.link(document.number, reverse("portal:invoice_detail", args=[document.pk]))


def document_terms(document: Document) -> list[Term]:
    """The head of a document."""
    terms = [
        Term(_("Kind"), DOCUMENT_KINDS[document.kind]),
        Term(_("Month"), document.period, document.billing_timezone),
        Term(_("Issued"), show.instant(document.issued_at, seconds=True)),
        Term(
            _("Billed to"), document.customer.get("legal_name") or document.customer.get("name", "")
        ),
        Term(_("Known up to"), show.instant(document.as_of, seconds=True)),
    ]
    if document.corrects is not None:
        terms.append(Term(_("Corrects"), document_link(document.corrects), document.reason))
    return terms


def line_table(document: Document) -> Table:
    """The lines of a document; each amount leads to what it follows from."""
    money = document.currency
    return Table(
        caption=_("Lines"),
        columns=[
            Column(_("What"), wrap=True),
            Column(_("Project"), hide="md"),
            Column(_("GPU-hours"), number=True),
            Column(_("Unit price"), number=True, hide="sm"),
            Column(_("Price"), hide="lg"),
            Column(_("Amount"), number=True),
            Column(""),
        ],
        rows=[
            Row(
                [
                    show.stacked(
                        line.service_name or line.description,
                        _line_hint(line),
                    ),
                    line.project_name or show.NOTHING,
                    gpu_hours_display(line.gpu_seconds) if line.sku else show.NOTHING,
                    show.money(line.unit_price, money) if line.sku else show.NOTHING,
                    show.stacked(line.price_code, _price_kind(line.price_kind))
                    if line.sku
                    else show.NOTHING,
                    show.money(line.amount, money),
                    show.link(_("Explain"), reverse("portal:invoice_line", args=[line.pk])),
                ]
            )
            for line in document.lines.all()
        ],
        empty=Empty(_("No lines"), icon="file-invoice"),
    )


def _line_hint(line: DocumentLine) -> str:
    kind = str(LINE_KINDS[line.kind])
    return f"{kind} · {line.order_number} · {line.sku} × {line.quantity}" if line.sku else kind


def line_terms(explained: dict[str, Any]) -> list[Term]:
    """What a line follows from."""
    line, currency = explained["line"], explained["document"].currency
    terms = [Term(_("Kind"), LINE_KINDS[line.kind])]
    if explained["service"] is not None:
        terms += [
            Term(_("Service"), service_link(explained["service"])),
            Term(_("Order"), order_link(explained["order"])),
        ]
    if explained["contract"] is not None:
        terms.append(Term(_("Contract"), str(explained["contract"])))
    if explained["reservation"] is not None:
        terms.append(Term(_("Reservation"), explained["reservation"].number))
    if line.sku:
        terms += _measured(explained)
    return [*terms, Term(_("Amount"), show.money(line.amount, currency))]


def _measured(explained: dict[str, Any]) -> list[Term]:
    line, price = explained["line"], explained["price"]
    terms = [
        Term(_("Project"), explained["project"].name),
        Term(
            _("Unit price"),
            _("{price} per GPU-hour").format(
                price=show.money(line.unit_price, explained["document"].currency)
            ),
            f"{line.price_code} · {_price_kind(line.price_kind)}",
        ),
    ]
    if price is not None:
        terms += [
            Term(_("Price valid from"), show.instant(price.effective_from)),
            Term(_("Price valid to"), show.instant(price.effective_to)),
        ]
    return terms


def usage_table(usage: Iterable[dict[str, Any]]) -> Table:
    """The charged intervals of a line, with the record each comes from."""
    return Table(
        caption=_("Charged time"),
        columns=[
            Column(_("State")),
            Column(_("From")),
            Column(_("To")),
            Column(_("Seconds"), number=True),
            Column(_("GPUs"), number=True, hide="sm"),
            Column(_("Server"), hide="md"),
            Column(_("Cause"), wrap=True, hide="lg"),
            Column(_("Recorded"), hide="xl"),
        ],
        rows=[
            Row(
                [
                    show.badge(one["state"], ServiceState(one["state"]).label),
                    show.instant(one["start_at"], seconds=True),
                    show.instant(one["end_at"], seconds=True),
                    f"{one['seconds']:,}",
                    one["gpus"],
                    one["node"] or show.NOTHING,
                    causes.in_words(one["cause"]),
                    show.instant(one["recorded_at"], seconds=True),
                ]
            )
            for one in usage
        ],
        empty=Empty(_("No charged time"), icon="clock"),
    )


def _price_kind(kind: str) -> str:
    return str(PriceKind(kind).label) if kind else ""


def verdict(ok: Any) -> SafeString:
    """What came of a check; one that cannot be made here is neither right nor wrong."""
    if ok is None:
        return show.badge("unverifiable", _("not verifiable"))
    return show.badge("ok", _("right")) if ok else show.badge("failed", _("wrong"))
