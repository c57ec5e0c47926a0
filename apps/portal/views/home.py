"""The first page: what runs, what is under way, what it costs, what is left of the quota."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from apps.accounts.access import needs, person
from apps.core import show
from apps.core.live import is_live, live, live_answer
from apps.core.tables import Empty, Figure
from apps.orders import selectors
from apps.orders.states import OrderStatus, ServiceState
from apps.portal import cells, costs, progress
from apps.provisioning import standing

IN_FLIGHT = (
    OrderStatus.PLACED,
    OrderStatus.APPROVED,
    OrderStatus.SCHEDULED,
    OrderStatus.QUEUED,
)
SHOWN = 10


@require_GET
@needs("service.view")
def home(request: HttpRequest) -> HttpResponse:
    """The state of everything this tenant has, renewing itself."""
    services = list(selectors.live_services()[:100])
    busy = [one for one in services if standing.is_under_way(one)]
    waiting = list(selectors.orders().filter(status__in=IN_FLIGHT)[:SHOWN])
    part = live(request, busy=bool(busy or waiting))
    in_flight = progress.service_views(busy[:SHOWN], briefly=True)
    known = {view.service.pk: view.standing for view in in_flight}
    shown = {one.pk: known.get(one.pk) or standing.of_service(one) for one in services[:SHOWN]}
    active = [one for one in services if one.state == ServiceState.ACTIVE]
    context: dict[str, Any] = {
        "figures": [
            _services_figure(len(active), len(services)),
            _flight_figure(len(busy), len(waiting)),
            *_cost_figures(request),
            *_quota_figures(),
        ],
        "in_flight": in_flight,
        "waiting": cells.order_table(waiting) if waiting else None,
        "services": cells.service_table(services[:SHOWN], empty=_nothing_yet(), shown=shown),
        "has_more": len(services) > SHOWN,
        "part": part,
    }
    if is_live(request):
        return live_answer(request, "portal/home.html#live", context, part)
    return render(request, "portal/home.html", context)


def _services_figure(active: int, total: int) -> Figure:
    hint = _("{n} in all").format(n=total) if total != active else ""
    return Figure(_("Services active"), active, hint, reverse("portal:service_list"), "server")


def _flight_figure(busy: int, waiting: int) -> Figure:
    hint = ""
    if waiting:
        hint = ngettext("{n} order waiting", "{n} orders waiting", waiting).format(n=waiting)
    return Figure(_("In flight"), busy + waiting, hint, reverse("portal:order_list"), "route")


def _cost_figures(request: HttpRequest) -> list[Figure]:
    if not person(request).may("usage.view"):
        return []
    known = costs.so_far()
    if known.cost is None:
        label = _("Cost this month")
        return [Figure(label, show.NOTHING, known.problem, icon="coins", tone="red")]
    hint = _("{total} with VAT").format(total=show.money(known.cost.total))
    url = reverse("portal:costs")
    return [Figure(_("Cost this month"), show.money(known.cost.subtotal), hint, url, "coins")]


def _quota_figures() -> list[Figure]:
    gpus = cells.quota_view(selectors.gpu_quota_use())
    value = f"{gpus.used} / {gpus.limit}" if gpus.limit is not None else str(gpus.used)
    hint = gpus.left if gpus.limit is not None else ""
    full = gpus.limit is not None and gpus.used >= gpus.limit
    url = reverse("portal:quotas")
    tone = "yellow" if full else ""
    return [Figure(_("GPUs in use"), value, hint, url, "cpu", tone)]


def _nothing_yet() -> Empty:
    return Empty(
        _("Nothing runs yet"),
        _("Choose a server in the catalog; you see every term before you confirm."),
        reverse("portal:catalog"),
        _("Open the catalog"),
        "server",
    )
