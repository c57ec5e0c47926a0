"""Tenants: the list, one tenant all round, making one, its limits."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from django.core.exceptions import ValidationError
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.access import needs, person
from apps.accounts.models import User
from apps.audit import selectors as audit
from apps.audit import services as auditing
from apps.console import cells, selectors
from apps.console.forms import LimitForm, TenantForm
from apps.console.views.audit import audit_table
from apps.core import filters, show
from apps.core.answers import blame, changed, drawn
from apps.core.errors import AppError, NotFound
from apps.core.paging import paginate
from apps.core.tables import Column, Empty, Figure, Row, Table, Term
from apps.orders import services as orders
from apps.tenancy.context import tenant_context
from apps.tenancy.errors import TenantExists
from apps.tenancy.models import Tenant
from apps.tenancy.states import TenantStatus


@needs("tenant.view")
def tenant_list(request: HttpRequest) -> HttpResponse:
    """Tenants with what they hold and may hold."""
    status = filters.choice(
        request, "status", _("Status"), _("Every status"), list(TenantStatus.choices)
    )
    text = filters.text(request, _("Name"))
    page = paginate(
        selectors.tenants(text=text.value, status=status.value),
        keys=("name", "id"),
        cursor=request.GET.get("cursor", ""),
    )
    table = tenant_table(page.items)
    found = filters.Listing(table, [status, text], page.next)
    may_create = person(request).may("tenant.manage")
    context = {"listing": found, "may_create": may_create}
    return drawn(request, "console/tenant_list.html", context)


@needs("tenant.view")
def tenant_detail(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """A tenant all round. The look is recorded in the tenant's own audit trail."""
    tenant: Any = selectors.tenants().filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound()
    user = person(request)
    context = {
        "tenant_shown": tenant,
        "status": show.badge(tenant.status, tenant.get_status_display()),
        "figures": _figures(tenant),
        "terms": _terms(tenant),
        "services": cells.service_table(selectors.services_of_tenant(tenant.pk)),
        "orders": cells.order_table(
            selectors.orders(tenant=tenant.pk).order_by("-created_at", "-order")[:10]
        ),
        "documents": cells.document_table(selectors.documents_of_tenant(tenant.pk))
        if user.may("invoice.view")
        else None,
        "limit_form": _limit_form(tenant) if user.may("quota.manage") else None,
    }
    if tenant.is_ready:
        with tenant_context(tenant):
            auditing.record_staff_access(user, what="tenant", label=tenant.name)
            context["people"] = _people_table()
            context["projects"] = [project.name for project in accounts.projects()]
            if user.may("audit.view"):
                context["audit"] = audit_table(list(audit.search(limit=10).entries))
    return render(request, "console/tenant_detail.html", context)


@needs("tenant.manage")
def tenant_create(request: HttpRequest) -> HttpResponse:
    """Make a tenant, its limits and its first administrator, or nothing of it."""
    form = TenantForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            tenant = _create(form, person(request))
        except TenantExists as error:
            form.add_error("slug", error.detail)
        except AppError as error:
            blame(form, error)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            url = reverse("console:tenant_detail", args=[tenant.pk])
            return changed(request, url, _("The tenant {name} is ready.").format(name=tenant.name))
    status = 422 if form.errors else 200
    return render(request, "console/tenant_create.html", {"form": form}, status=status)


@require_POST
@needs("quota.manage")
def tenant_limits(request: HttpRequest, tenant_id: UUID) -> HttpResponse:
    """Set how much a tenant may hold at once."""
    tenant = Tenant.objects.filter(pk=tenant_id).first()
    if tenant is None:
        raise NotFound()
    form = LimitForm(request.POST)
    if not form.is_valid():
        context = {"tenant_shown": tenant, "limit_form": form}
        return render(request, "console/tenant_limits.html", context, status=422)
    orders.set_tenant_limit(
        tenant=tenant.pk,
        tenant_name=tenant.name,
        max_gpus=form.cleaned_data["max_gpus"],
        max_services=form.cleaned_data["max_services"],
        actor=person(request),
    )
    url = reverse("console:tenant_detail", args=[tenant.pk])
    return changed(request, url, _("The limits are set."))


@transaction.atomic
def _create(form: TenantForm, actor: User) -> Tenant:
    data = form.cleaned_data
    tenant = orders.open_tenant(
        slug=data["slug"],
        name=data["name"],
        owner_email=data["admin_email"],
        owner_name=data["admin_name"],
        actor=actor,
        **form.terms(),
    )
    orders.set_tenant_limit(
        tenant=tenant.pk,
        tenant_name=tenant.name,
        max_gpus=data["max_gpus"],
        max_services=data["max_services"],
        actor=actor,
    )
    return tenant


def tenant_table(tenants: Iterable[Any]) -> Table:
    """Tenants with what they hold and may hold."""
    columns = [
        Column(_("Tenant")),
        Column(_("Status")),
        Column(_("Services"), number=True),
        Column(_("GPUs"), number=True),
        Column(_("Currency"), hide="md"),
        Column(_("Since"), hide="sm"),
    ]
    rows = [_tenant_row(tenant) for tenant in tenants]
    return Table(columns, rows, _("Tenants"), empty=Empty(_("No tenants"), icon="users"))


def _tenant_row(tenant: Any) -> Row:
    """A row of the list; the tenant comes annotated with what it holds and may hold."""
    return Row(
        [
            show.stacked(cells.tenant_link(tenant.pk, tenant.name), tenant.slug),
            show.badge(tenant.status, tenant.get_status_display()),
            _of(tenant.live_services, tenant.max_services),
            _of(tenant.live_gpus, tenant.max_gpus),
            tenant.currency,
            show.instant(tenant.created_at),
        ]
    )


def _of(used: int | None, limit: int | None) -> str:
    return f"{used or 0} / {limit}" if limit is not None else str(used or 0)


def _figures(tenant: Any) -> list[Figure]:
    orders_url = f"{reverse('console:order_list')}?tenant={tenant.pk}"
    return [
        Figure(_("Live services"), _of(tenant.live_services, tenant.max_services), icon="server"),
        Figure(_("GPUs held"), _of(tenant.live_gpus, tenant.max_gpus), icon="cpu"),
        Figure(_("Orders"), _("See all"), url=orders_url, icon="shopping-cart"),
    ]


def _terms(tenant: Tenant) -> list[Term]:
    return [
        Term(_("Short name"), show.code(tenant.slug)),
        Term(_("Currency"), tenant.currency),
        Term(_("VAT"), f"{(tenant.vat_rate * 100).normalize():f} %"),
        Term(_("Billing time zone"), tenant.billing_timezone),
        Term(_("Language"), tenant.get_language_display()),
        Term(_("Legal name"), tenant.legal_name or show.NOTHING),
        Term(_("Registration number"), tenant.registration_number or show.NOTHING),
        Term(_("Billing address"), tenant.billing_address or show.NOTHING),
        Term(_("Mail address for invoices"), tenant.billing_email or show.NOTHING),
        Term(_("Customer since"), show.instant(tenant.created_at)),
    ]


def _limit_form(tenant: Any) -> LimitForm:
    return LimitForm(
        initial={"max_gpus": tenant.max_gpus, "max_services": tenant.max_services},
        auto_id="limit_%s",
    )


def _people_table() -> Table:
    columns = [Column(_("Name")), Column(_("Role")), Column(_("Status"))]
    rows = [
        Row(
            [
                show.stacked(user.name, user.email),
                user.get_role_display(),
                show.badge("active", _("active"))
                if user.is_active
                else show.badge("stopped", _("deactivated")),
            ]
        )
        for user in accounts.people()
    ]
    return Table(columns, rows, _("People"), empty=Empty(_("Nobody yet"), icon="users"))
