"""Invoices and credit notes: the list, one document, one line explained, issuing, crediting."""

from typing import Any
from uuid import UUID

from django.db.models import Sum
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import needs, person
from apps.audit import services as audit
from apps.core import filters, show
from apps.core.answers import changed, drawn, pdf
from apps.core.errors import NotFound
from apps.core.money import gpu_hours_display
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.finance import cells, selectors
from apps.invoicing import selectors as invoicing
from apps.invoicing import services
from apps.invoicing.models import Document, DocumentKind, DocumentLine, DocumentStatus
from apps.invoicing.pdf import document_pdf
from apps.orders import causes
from apps.orders.states import ServiceState
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from apps.tenancy.selectors import tenant_names


@needs("invoice.view")
def invoice_list(request: HttpRequest) -> HttpResponse:
    """Documents of all tenants, newest first."""
    names = sorted(tenant_names().items(), key=lambda item: item[1].casefold())
    tenants = [(str(key), name) for key, name in names]
    months = [(period, period) for period in selectors.periods()]
    currencies = [(code, code) for code in selectors.currencies()]
    chosen = [
        filters.choice(request, "period", _("Period"), _("Every period"), months),
        filters.choice(request, "status", _("Status"), _("Every status"), _statuses()),
        filters.choice(request, "kind", _("Kind"), _("Every kind"), list(cells.KINDS.items())),
        filters.choice(request, "currency", _("Currency"), _("Every currency"), currencies),
        filters.choice(request, "tenant", _("Tenant"), _("Every tenant"), tenants),
        filters.text(request, _("Number or name")),
    ]
    period, status, kind, currency, tenant, text = (item.value for item in chosen)
    page = paginate(
        selectors.documents(
            period=period,
            status=status,
            kind=kind,
            currency=currency,
            tenant=UUID(tenant) if tenant else None,
            text=text,
        ),
        keys=("-created_at", "-document"),
        cursor=request.GET.get("cursor", ""),
    )
    found = filters.Listing(cells.document_table(page.items), chosen, page.next)
    return drawn(request, "finance/invoice_list.html", {"listing": found})


@require_GET
@needs("invoice.view")
def document_file(request: HttpRequest, tenant_id: UUID, document_id: UUID) -> HttpResponse:
    """A document as PDF, in the tenant's language; recorded as the look at its page is."""
    tenant, user = _tenant(tenant_id), person(request)
    with tenant_context(tenant):
        document = invoicing.document_detail(document_id, with_drafts=True)
        audit.record_staff_access(user, what="invoice", label=str(document))
        made = document_pdf(document, language=tenant.language)
    return pdf(made, name=document.number or f"draft-{document.period}")


@needs("invoice.view")
def document_detail(request: HttpRequest, tenant_id: UUID, document_id: UUID) -> HttpResponse:
    """A document with its lines. The look is recorded in the tenant's own audit trail."""
    tenant, user = _tenant(tenant_id), person(request)
    with tenant_context(tenant):
        document = invoicing.document_detail(document_id, with_drafts=True)
        audit.record_staff_access(user, what="invoice", label=str(document))
        lines = list(document.lines.all())
        given_back = dict(
            DocumentLine.objects.filter(corrects__in=[line.pk for line in lines])
            .order_by()
            .values_list("corrects")
            .annotate(sum=Sum("amount"))
        )
        credited = {line.pk for line in lines if given_back.get(line.pk) == -line.amount}
        may_credit = (
            document.kind == DocumentKind.INVOICE
            and document.status == DocumentStatus.ISSUED
            and user.may("invoice.manage")
            and len(credited) < len(lines)
        )
        context = {
            "tenant_shown": tenant,
            "document": document,
            "title": document.number or _("Draft {period}").format(period=document.period),
            "kind": cells.KINDS[document.kind],
            "status": cells.status_badge(document.status),
            "terms": _terms(tenant, document),
            "lines": _line_table(tenant, document, lines, credited, may_credit=may_credit),
            "credit_notes": [
                (
                    cells.document_link(tenant.pk, note.pk, note.number),
                    note.reason,
                    show.money(note.total, note.currency),
                )
                for note in document.credit_notes.all()
            ],
            "may_credit": may_credit,
            "may_issue": document.status == DocumentStatus.DRAFT and user.may("invoice.manage"),
            "may_export": document.status == DocumentStatus.ISSUED and user.may("export"),
        }
    return render(request, "finance/document_detail.html", context)


@needs("invoice.view")
def line_detail(
    request: HttpRequest, tenant_id: UUID, document_id: UUID, line_id: UUID
) -> HttpResponse:
    """All a line follows from: usage, service, node, order, price, the rules and the arithmetic."""
    tenant, user = _tenant(tenant_id), person(request)
    with tenant_context(tenant):
        told = invoicing.explain_line(line_id, with_drafts=True)
        document, line = told["document"], told["line"]
        if document.pk != document_id:
            raise NotFound()
        audit.record_staff_access(user, what="invoice", label=str(document))
        context = {
            "tenant_shown": tenant,
            "document": document,
            "title": document.number or _("Draft {period}").format(period=document.period),
            "line": line,
            "amount": show.money(line.amount, document.currency),
            "arithmetic": told["arithmetic"],
            "rules": told["rules"],
            "terms": _line_terms(tenant, told),
            "usage": _usage_table(told),
        }
    return render(request, "finance/line_detail.html", context)


@require_POST
@needs("invoice.manage")
def document_issue(request: HttpRequest, tenant_id: UUID, document_id: UUID) -> HttpResponse:
    """Issue a reviewed draft: it gets its number and never changes again."""
    tenant = _tenant(tenant_id)
    with tenant_context(tenant):
        issued = services.issue_invoice(document_id=document_id, actor=person(request))
    url = reverse("finance:document_detail", args=[tenant.pk, issued.pk])
    return changed(request, url, _("Issued as {number}.").format(number=issued.number))


@require_POST
@needs("invoice.manage")
def document_redraft(request: HttpRequest, tenant_id: UUID, document_id: UUID) -> HttpResponse:
    """Rate a draft again with everything known now."""
    tenant = _tenant(tenant_id)
    with tenant_context(tenant):
        draft = invoicing.document_detail(document_id, with_drafts=True)
        again = services.draft_invoice(
            tenant=tenant,
            period=draft.period,
            currency=draft.currency,
            actor=person(request),
            final=draft.supply_end < draft.period_end,
        )
    if again is None:
        url = f"{reverse('finance:month_close')}?period={draft.period}"
        return changed(request, url, _("Nothing is charged any more; the draft is gone."))
    url = reverse("finance:document_detail", args=[tenant.pk, again.pk])
    return changed(request, url, _("Rated again with everything known now."))


@require_POST
@needs("invoice.manage")
def document_credit(request: HttpRequest, tenant_id: UUID, document_id: UUID) -> HttpResponse:
    """Give chosen lines of an issued invoice back by a credit note."""
    tenant = _tenant(tenant_id)
    amount = request.POST.get("amount", "").strip()
    chosen = []
    for value in request.POST.getlist("line"):
        try:
            chosen.append(UUID(value))
        except ValueError:
            raise NotFound() from None
    with tenant_context(tenant):
        note = services.credit_lines(
            document_id=document_id,
            line_ids=chosen,
            actor=person(request),
            reason=request.POST.get("reason", "").replace("\x00", ""),
            amounts=dict.fromkeys(chosen, amount) if amount else None,
        )
    url = reverse("finance:document_detail", args=[tenant.pk, note.pk])
    return changed(request, url, _("Credit note {number} is issued.").format(number=note.number))


def _statuses() -> list[tuple[str, Any]]:
    return [(status, cells.STATUSES[status]) for status in DocumentStatus.values]


def _tenant(tenant_id: UUID) -> Tenant:
    tenant: Tenant | None = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound()
    return tenant


def _terms(tenant: Tenant, document: Document) -> list[Term]:
    customer = document.customer
    corrects = document.corrects
    terms = [
        Term(_("Tenant"), cells.tenant_link(tenant.pk, tenant.name)),
        Term(_("Legal name"), customer.get("legal_name") or show.NOTHING),
        Term(_("Registration number"), customer.get("registration_number") or show.NOTHING),
        Term(_("Period"), document.period, document.billing_timezone),
        Term(_("From"), show.instant(document.period_start)),
        Term(_("Until"), show.instant(document.supply_end)),
        Term(_("Facts known up to"), show.instant(document.as_of, seconds=True)),
        Term(_("Issued"), show.instant(document.issued_at), document.issued_by),
        Term(_("To be paid by"), document.due_on or show.NOTHING),
        Term(_("Net"), show.money(document.subtotal, document.currency)),
        Term(
            _("VAT {rate} %").format(rate=f"{(document.vat_rate * 100).normalize():f}"),
            show.money(document.tax, document.currency),
        ),
        Term(_("Total"), show.money(document.total, document.currency)),
    ]
    if corrects is not None:
        terms.append(
            Term(_("Corrects"), cells.document_link(tenant.pk, corrects.pk, corrects.number))
        )
    if document.reason:
        terms.append(Term(_("Reason"), document.reason))
    return terms


def _line_table(
    tenant: Tenant,
    document: Document,
    lines: list[DocumentLine],
    credited: set[UUID],
    *,
    may_credit: bool,
) -> Table:
    columns = [
        Column("#", number=True),
        Column(_("What"), wrap=True),
        Column(_("Order"), hide="md"),
        Column(_("Project"), hide="xl"),
        Column(_("GPU-hours"), number=True, hide="sm"),
        Column(_("Price"), number=True, hide="md"),
        Column(_("Amount"), number=True),
        Column(_("Why")),
    ]
    rows = []
    for line in lines:
        url = reverse("finance:line_detail", args=[tenant.pk, document.pk, line.pk])
        kind = cells.LINE_KINDS.get(line.kind, line.kind)
        told = f"{kind} · {_('credited')}" if line.pk in credited else kind
        rows.append(
            Row(
                [
                    line.position,
                    show.stacked(line.description, told),
                    line.order_number or show.NOTHING,
                    line.project_name or show.NOTHING,
                    gpu_hours_display(line.gpu_seconds) if line.sku else show.NOTHING,
                    show.stacked(show.money(line.unit_price, document.currency), line.price_code)
                    if line.sku
                    else show.NOTHING,
                    show.money(line.amount, document.currency),
                    show.link(_("Explain"), url),
                ],
                id="" if line.pk in credited else str(line.pk),
            )
        )
    foot = Row(["", "", "", "", "", _("Net"), show.money(document.subtotal, document.currency), ""])
    return Table(
        columns,
        rows,
        _("Lines"),
        empty=Empty(_("No lines"), icon="file-invoice"),
        foot=foot if rows else None,
        selectable="line" if may_credit else "",
    )


def _line_terms(tenant: Tenant, told: dict[str, Any]) -> list[Term]:
    line, service, order = (told[name] for name in ("line", "service", "order"))
    price, book = told["price"], told["price_book"]
    terms = [Term(_("What"), cells.LINE_KINDS.get(line.kind, line.kind), line.description)]
    if service is not None:
        url = reverse("console:order_detail", args=[order.pk])
        terms += [
            Term(_("Service"), service.name, show.code(service.pk)),
            Term(_("Nodes"), ", ".join(line.node_names) or show.NOTHING),
            Term(_("Order"), show.link(order.number, url)),
        ]
    if told["contract"] is not None:
        contract = told["contract"]
        url = reverse("finance:contract", args=[contract.code])
        terms.append(Term(_("Contract"), show.link(str(contract), url)))
    if told["reservation"] is not None:
        terms.append(Term(_("Reservation"), told["reservation"].number))
    if line.sku:
        terms += _measured(told)
    if price is not None and book is not None:
        until = show.instant(price.effective_to) if price.effective_to else _("open")
        url = f"{reverse('finance:price_book', args=[book.pk])}#row-{price.pk}"
        terms += [
            Term(_("Price book"), show.link(book.name, url)),
            Term(_("Price valid from"), show.instant(price.effective_from)),
            Term(_("Price valid until"), until),
        ]
    corrects = told["corrects"]
    if corrects is not None:
        url = reverse("finance:line_detail", args=[tenant.pk, corrects.document_id, corrects.pk])
        terms.append(Term(_("Gives back"), show.link(corrects.description, url)))
    return terms


def _measured(told: dict[str, Any]) -> list[Term]:
    line, document = told["line"], told["document"]
    return [
        Term(_("Project"), told["project"].name),
        Term(_("GPUs"), line.quantity),
        Term(_("GPU-seconds"), f"{line.gpu_seconds:,}", gpu_hours_display(line.gpu_seconds) + " h"),
        Term(
            _("Unit price"),
            show.money(line.unit_price, document.currency),
            f"{line.price_code} · {cells.PRICE_KINDS.get(line.price_kind, line.price_kind)}",
        ),
    ]


def _usage_table(told: dict[str, Any]) -> Table:
    labels = dict(ServiceState.choices)
    columns = [
        Column(_("From")),
        Column(_("Until")),
        Column(_("Seconds"), number=True),
        Column(_("GPUs"), number=True),
        Column(_("State")),
        Column(_("Node")),
        Column(_("Because of"), hide="md", wrap=True),
        Column(_("Recorded"), hide="lg"),
    ]
    rows = [
        Row(
            [
                show.instant(entry["start_at"], seconds=True),
                show.instant(entry["end_at"], seconds=True),
                f"{entry['seconds']:,}",
                entry["gpus"],
                labels.get(entry["state"], entry["state"]),
                show.link(entry["node"], reverse("console:node_detail", args=[entry["node_id"]]))
                if entry["node_id"]
                else show.NOTHING,
                show.stacked(_cause(entry), entry["source"]),
                show.instant(entry["recorded_at"], seconds=True),
            ]
        )
        for entry in told["usage"]
    ]
    foot = Row(["", _("Sum"), f"{told['seconds']:,}", "", "", "", "", ""])
    empty = Empty(_("No usage"), icon="clock")
    return Table(columns, rows, _("Usage"), empty=empty, foot=foot if rows else None)


def _cause(entry: dict[str, Any]) -> Any:
    if entry["run_id"]:
        return show.link(
            causes.in_words(entry["cause"]), reverse("console:run_detail", args=[entry["run_id"]])
        )
    return causes.in_words(entry["cause"])
