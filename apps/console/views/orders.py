"""Orders of all tenants, from their projection."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _

from apps.accounts.access import needs
from apps.console import cells, selectors
from apps.console.views.runs import stepper
from apps.core import filters, show
from apps.core.answers import drawn
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Term
from apps.orders.states import OrderStatus
from apps.tenancy.selectors import tenant_names


@needs("order.view")
def order_list(request: HttpRequest) -> HttpResponse:
    """Orders by status, tenant and text, newest first."""
    tenants = tenant_choices()
    status = filters.choice(
        request, "status", _("Status"), _("Every status"), list(OrderStatus.choices)
    )
    tenant = filters.choice(request, "tenant", _("Tenant"), _("Every tenant"), tenants)
    text = filters.text(request, _("Number, name or SKU"))
    page = paginate(
        selectors.orders(
            status=status.value,
            tenant=UUID(tenant.value) if tenant.value else None,
            text=text.value,
        ),
        keys=("-created_at", "-order"),
        cursor=request.GET.get("cursor", ""),
    )
    found = filters.Listing(cells.order_table(page.items), [status, tenant, text], page.next)
    return drawn(request, "console/order_list.html", {"listing": found})


@needs("order.view")
def order_detail(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """What was ordered, what became of it, and the runs that make it; renews itself."""
    order = selectors.orders().filter(order=order_id).first()
    if order is None:
        raise NotFound()
    runs = selectors.runs_of_order(order_id)
    steps = selectors.steps_of_runs(run.pk for run in runs)
    context = {
        "order": order,
        "status": show.badge(order.status, order.get_status_display()),
        "terms": [
            Term(_("Tenant"), cells.tenant_link(order.tenant, order.tenant_name)),
            Term(_("Offering"), show.code(order.sku)),
            Term(_("Quantity"), order.quantity),
            Term(_("GPUs"), order.gpus),
            Term(_("Site"), order.site_code),
            Term(_("Placed"), show.instant(order.created_at)),
            Term(_("Last change"), show.instant(order.changed_at)),
            Term(_("Why"), order.status_reason or show.NOTHING),
        ],
        "services": cells.service_table(selectors.services_of_order(order_id)),
        "runs": [(run, stepper(run, steps.get(run.pk, []))) for run in runs],
    }
    busy = any(run.ended_at is None for run in runs)
    part = live(request, busy=busy)
    if is_live(request):
        return live_answer(request, "console/order_detail.html#live", context, part)
    return render(request, "console/order_detail.html", {**context, "part": part})


def tenant_choices() -> list[tuple[str, str]]:
    """Every tenant, for a list to choose from."""
    names = sorted(tenant_names().items(), key=lambda item: item[1].casefold())
    return [(str(tenant), name) for tenant, name in names]
