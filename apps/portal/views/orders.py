"""Orders and their progress."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import needs, person
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.orders import selectors, services
from apps.orders.states import ORDER, ApprovalStatus, OrderStatus
from apps.portal import cells, progress
from apps.portal.answers import cleaned, go
from apps.portal.forms import ScheduleForm
from apps.provisioning import standing

OVER = (OrderStatus.REFUSED, OrderStatus.CANCELLED, OrderStatus.EXPIRED, OrderStatus.CLOSED)
WAITING = (OrderStatus.PLACED, OrderStatus.SCHEDULED, OrderStatus.QUEUED)


@require_GET
@needs("order.view")
def order_list(request: HttpRequest) -> HttpResponse:
    """Every order, newest first."""
    page = paginate(selectors.orders(), cursor=request.GET.get("cursor", ""))
    context = {"table": cells.order_table(page.items), "page": page}
    return render(request, "portal/order_list.html", context)


@require_GET
@needs("order.view")
def order_detail(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """One order: live progress of its servers, what was agreed, the way to cancel it."""
    order = selectors.order_by_id(order_id)
    views = progress.service_views(selectors.services_of_order(order.pk))
    queue = selectors.queue_standing(order) if order.status == OrderStatus.QUEUED else None
    place = queue.place if queue else None
    stands = standing.of_order(order, [view.standing for view in views], place=place)
    approval = selectors.approval_of_order(order.pk)
    is_asked = approval is not None and approval.status == ApprovalStatus.WAITING
    busy = any(view.is_busy for view in views)
    in_use = any(view.service.ready_at for view in views)
    part = live(
        request, busy=busy or order.status in WAITING, ended=order.status in OVER and not busy
    )
    context = {
        "order": order,
        "badge": cells.standing_badge(stands),
        "detail": stands.detail,
        "expected": "" if views else cells.expected_words(stands),
        "approval": approval,
        "may_approve": is_asked and person(request).may("order.approve"),
        "may_schedule": order.status == OrderStatus.SCHEDULED
        and person(request).may("order.place"),
        "views": views,
        "queue": queue,
        "part": part,
        "may_cancel": person(request).may("order.cancel")
        and ORDER.can(order.status, "cancel")
        and not in_use,
    }
    if is_live(request):
        return live_answer(
            request, "portal/order_detail.html#live", context, part, has_actions=True
        )
    if approval is not None:
        context["approval_terms"] = cells.approval_terms(approval)
        context["approval_badge"] = cells.approval_badge(approval)
    if context["may_schedule"]:
        term = {"starts_at": order.starts_at, "ends_at": order.ends_at}
        context["schedule_form"] = ScheduleForm(initial=term)
    context |= {"terms": cells.order_terms(order), "what": cells.order_words(order)}
    return render(request, "portal/order_detail.html", context)


@require_POST
@needs("order.cancel")
def order_cancel(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Cancel an order none of whose servers is in use yet."""
    order = selectors.order_by_id(order_id)
    services.cancel_order(
        order_id=order.pk, actor=person(request), reason=request.POST.get("reason", "")
    )
    told = _("{number} is cancelled; nothing is charged.").format(number=order.number)
    return go(request, reverse("portal:order_detail", args=[order.pk]), told)


@require_POST
@needs("order.place")
def order_schedule(request: HttpRequest, order_id: UUID) -> HttpResponse:
    """Move start and end of an order that has not begun."""
    order = selectors.order_by_id(order_id)
    services.reschedule_order(
        order_id=order.pk, **cleaned(ScheduleForm(request.POST)), actor=person(request)
    )
    return go(request, reverse("portal:order_detail", args=[order.pk]), _("Saved."))
