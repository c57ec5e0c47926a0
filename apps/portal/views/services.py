"""Services: how to reach them, what they did, how to end them."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from apps.accounts.access import needs, person
from apps.core import clock, filters
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Empty
from apps.metering import selectors as metering
from apps.orders import selectors, services
from apps.orders.states import SERVICE, ServiceState
from apps.portal import cells, costs, operations, progress
from apps.portal.answers import cleaned, go
from apps.portal.forms import EndForm, RenameForm, TagsForm
from apps.provisioning import selectors as provisioning

OVER = (ServiceState.TERMINATED, ServiceState.FAILED)


@require_GET
@needs("service.view")
def service_list(request: HttpRequest) -> HttpResponse:
    """The services that have not ended, or those of one state, or all."""
    wanted = filters.choice(
        request,
        "state",
        _("State"),
        _("Not ended"),
        [("all", _("All")), *ServiceState.choices],
    )
    found = selectors.services() if wanted.value else selectors.live_services()
    if wanted.value not in ("", "all"):
        found = found.filter(state=wanted.value)
    page = paginate(found, cursor=request.GET.get("cursor", ""))
    empty = Empty(_("None in this state"), icon="server") if wanted.value else None
    context = {
        "table": cells.service_table(page.items, empty=empty),
        "page": page,
        "wanted": wanted,
    }
    return render(request, "portal/service_list.html", context)


@require_GET
@needs("service.view")
def service_detail(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """One service: status, access, cost, the history of its states, the proof it was ready."""
    service = selectors.service_by_id(service_id)
    view = progress.service_views([service])[0]
    part = live(request, busy=view.is_busy, ended=service.state in OVER)
    may_end = person(request).may("service.terminate") and SERVICE.can(service.state, "terminate")
    context = {
        "service": service,
        "view": view,
        "part": part,
        "access": cells.access_terms(service),
        "possible": operations.possible(service, person(request), is_busy=view.is_busy),
        "may_terminate": may_end,
        "may_protect": may_end,
    }
    if is_live(request):
        return live_answer(
            request, "portal/service_detail.html#live", context, part, has_actions=True
        )
    now = clock.now()
    context |= {
        "what": cells.service_words(service),
        "facts": cells.service_terms(service),
        "history": cells.history_table(metering.intervals(service=service.pk, as_of=now)),
        "evidence": cells.evidence_table(provisioning.evidence_of(service.pk)),
        "cost": costs.of_service(service.pk, at=now) if person(request).may("usage.view") else None,
        "end_form": EndForm(initial={"ends_at": service.ends_at}),
        "operations": operations.operations(service)
        if person(request).may("service.operate")
        else [],
        "rename_form": RenameForm(initial={"name": service.name}),
        "tags_form": TagsForm(initial={"tags": TagsForm.shown(service.tags)}),
        "has_console": service.state in (ServiceState.ACTIVE, ServiceState.STOPPED),
    }
    return render(request, "portal/service_detail.html", context)


@require_POST
@needs("service.terminate")
def service_terminate(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """End a service, its name typed as the proof that it is meant."""
    service = selectors.service_by_id(service_id)
    services.terminate_service(
        service_id=service.pk,
        actor=person(request),
        reason=request.POST.get("reason", ""),
        confirm_name=request.POST.get("confirm_name", ""),
    )
    told = _("{name} is being terminated; it is not charged any more.").format(name=service.name)
    return go(request, reverse("portal:service_detail", args=[service.pk]), told)


@require_POST
@needs("service.terminate")
def service_protect(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """Put termination protection on, or take it off."""
    service = selectors.service_by_id(service_id)
    services.protect_service(
        service_id=service.pk,
        is_protected=request.POST.get("protect") == "yes",
        actor=person(request),
    )
    return go(request, reverse("portal:service_detail", args=[service.pk]), _("Saved."))


@require_POST
@needs("service.terminate")
def service_end(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """Lengthen or shorten a service."""
    service = selectors.service_by_id(service_id)
    services.set_end(service_id=service.pk, **cleaned(EndForm(request.POST)), actor=person(request))
    return go(request, reverse("portal:service_detail", args=[service.pk]), _("Saved."))
