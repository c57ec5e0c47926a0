"""What a person asks of a running service on its page."""

from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.core.errors import NotFound
from apps.orders import selectors, services
from apps.orders.verbs import LABELS
from apps.portal.answers import cleaned, go
from apps.portal.forms import ReinstallForm, RenameForm, RescueForm, TagsForm
from apps.provisioning import services as provisioning


@require_POST
@needs("service.operate")
def service_operate(request: HttpRequest, service_id: UUID, verb: str) -> HttpResponse:
    """Begin a work on the service; its page shows how far it is."""
    service = selectors.service_by_id(service_id)
    if verb not in provisioning.TENANT_VERBS:
        raise NotFound()
    choices: dict[str, Any] = {}
    if verb == "reinstall":
        choices = cleaned(ReinstallForm.of(service, request.POST))
    elif verb == "rescue":
        choices = cleaned(RescueForm(request.POST))
    provisioning.operate(
        service_id=service.pk,
        verb=verb,
        actor=person(request),
        reason=request.POST.get("reason", ""),
        **choices,
    )
    told = _("{verb} of {name} has begun.").format(verb=LABELS[verb], name=service.name)
    return _back(request, service_id, told)


@require_POST
@needs("service.operate")
def service_rename(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """Another name."""
    service = selectors.service_by_id(service_id)
    services.rename_service(
        service_id=service.pk, actor=person(request), **cleaned(RenameForm(request.POST))
    )
    return _back(request, service_id, _("Saved."))


@require_POST
@needs("service.operate")
def service_tags(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """All tags anew."""
    service = selectors.service_by_id(service_id)
    services.tag_service(
        service_id=service.pk, actor=person(request), **cleaned(TagsForm(request.POST))
    )
    return _back(request, service_id, _("Saved."))


@require_POST
@needs("service.operate")
def service_console(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """To the server's screen; each look is recorded."""
    service = selectors.service_by_id(service_id)
    found = provisioning.open_console(service_id=service.pk, actor=person(request))
    return HttpResponseRedirect(found.url)


def _back(request: HttpRequest, service_id: UUID, told: str) -> HttpResponse:
    return go(request, reverse("portal:service_detail", args=[service_id]), told)
