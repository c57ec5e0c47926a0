"""One service of any tenant: where it stands, what it was, and suspending it."""

from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.audit import services as auditing
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.console.operations import STAFF_VERBS, actions_on
from apps.core import clock, show
from apps.core.answers import changed
from apps.core.errors import NotFound
from apps.core.tables import Column, Empty, Row, Table, Term
from apps.metering import selectors as metering
from apps.metering.selectors import Interval
from apps.orders import causes, services
from apps.orders import selectors as orders
from apps.orders.models import Service, ServiceProjection
from apps.orders.states import SERVICE, ServiceState
from apps.orders.verbs import LABELS
from apps.provisioning import services as provisioning
from apps.provisioning import standing
from apps.tenancy.context import tenant_by_id, tenant_context


@needs("service.view")
def service_detail(request: HttpRequest, service_id: UUID) -> HttpResponse:
    """A service with its states. The look is recorded in the tenant's own audit trail."""
    row = _row(service_id)
    user = person(request)
    with tenant_context(tenant_by_id(row.tenant)) as tenant:
        service = orders.service_by_id(service_id)
        auditing.record_staff_access(user, what="service", label=service.name)
        stands = standing.of_services([service])[service.pk]
        context = {
            "service": service,
            "status": show.badge(stands.code, stands.label, tone=stands.tone),
            "detail": stands.detail,
            "terms": _terms(row, service, tenant.name),
            "history": _history(metering.intervals(service=service.pk, as_of=clock.now())),
            "actions": _actions(service) if user.may("service.operate") else [],
        }
    context["runs"] = cells.run_table(selectors.runs().filter(service=service_id))
    return render(request, "console/service_detail.html", context)


@require_POST
@needs("service.operate")
def service_act(request: HttpRequest, service_id: UUID, verb: str) -> HttpResponse:
    """Suspend, resume, or work on its server: with a reason, in the person's name."""
    decisions = {
        "suspend": (services.suspend_service, _("The service is suspended.")),
        "resume": (services.lift_suspension, _("The service goes on.")),
    }
    row = _row(service_id)
    if verb in STAFF_VERBS:
        provisioning.operate_for_tenant(
            tenant=row.tenant,
            service_id=service_id,
            verb=verb,
            actor=person(request),
            reason=reason_of(request),
        )
        message = _("{verb} of {name} has begun.").format(verb=LABELS[verb], name=row.name)
        return changed(request, reverse("console:service_detail", args=[service_id]), message)
    if verb not in decisions:
        raise NotFound()
    decide, message = decisions[verb]
    with tenant_context(tenant_by_id(row.tenant)):
        decide(service_id=service_id, actor=person(request), reason=reason_of(request))
    return changed(request, reverse("console:service_detail", args=[service_id]), message)


def _row(service_id: UUID) -> ServiceProjection:
    row = ServiceProjection.objects.filter(service=service_id).first()
    if row is None:
        raise NotFound()
    return row


def _actions(service: Service) -> list[Action]:
    words = {
        "suspend": (
            _("Suspend"),
            _("It is not charged from now on, and ends after 7 days unless it is resumed. The "
              "customer reads the reason."),
            "danger",
        ),
        "resume": (
            _("Resume"),
            _("It is charged from now on as before; the customer is told."),
            "primary",
        ),
    }  # fmt: skip
    return actions_on(service) + [
        Action(verb, label, reverse("console:service_act", args=[service.pk, verb]), text, tone)
        for verb, (label, text, tone) in words.items()
        if SERVICE.can(service.state, verb)
    ]


def _terms(row: ServiceProjection, service: Service, tenant: str) -> list[Term]:
    return [
        Term(_("Tenant"), cells.tenant_link(row.tenant, tenant)),
        Term(_("Order"), cells.order_link(row.order, row.number)),
        Term(_("Offering"), show.code(row.sku)),
        Term(_("GPUs"), row.gpus),
        Term(_("Site"), row.site_code),
        Term(_("Node"), row.node_name or show.NOTHING),
        Term(_("Ready"), show.instant(row.ready_at, seconds=True)),
        Term(_("End"), show.instant(row.ended_at or service.ends_at, seconds=True)),
        Term(_("Suspended until"), show.instant(service.suspended_until)),
        Term(_("Protected"), _("yes") if service.is_protected else _("no")),
    ]


def _history(intervals: list[Interval]) -> Table:
    return Table(
        caption=_("History of states"),
        columns=[
            Column(_("State")),
            Column(_("From")),
            Column(_("To"), hide="sm"),
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
                    _("charged") if one.is_charged else _("free"),
                ]
            )
            for one in reversed(intervals)
        ],
        empty=Empty(_("Nothing recorded yet"), icon="history"),
    )
