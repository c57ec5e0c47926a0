"""What people ask of a running service: power, reinstallation, rescue, another host, its screen.

Each is a run of its own blueprint, one at a time for a service. Who may ask is checked before.
"""

from typing import Any
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.models import Offering
from apps.core import outbox
from apps.core.errors import NotFound, OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Node, Site
from apps.orders import services as orders
from apps.orders.models import Condition, Service
from apps.orders.services.choices import image_of, keys_of
from apps.orders.states import ServiceState
from apps.orders.verbs import LABELS
from apps.provisioning import adapters, blueprints
from apps.provisioning.errors import (
    BadPassword,
    NoConsole,
    NotNow,
    NotWhileInRescue,
    SiteSilent,
    WorkUnderWay,
)
from apps.provisioning.models import Run
from apps.provisioning.passwords import keep_password
from apps.provisioning.ports import Console
from apps.provisioning.services.hands import given
from apps.provisioning.services.runs import start_run
from apps.provisioning.states import OPEN
from apps.tenancy.context import platform_context, tenant_by_id, tenant_context

REPLACE_HOST = "replace_host"
TENANT_VERBS = tuple(verb for verb in LABELS if verb != REPLACE_HOST)
IN_RESCUE = ("unrescue", "reinstall")  # what is possible while the rescue system runs
PASSWORD_LENGTH = range(12, 73)


@transaction.atomic
def operate(*, service_id: UUID, verb: str, actor: User, reason: str = "", **choices: Any) -> Run:
    """Begin what a person asks of a running service; returns the work, which others then do.

    `choices` of a reinstallation: image, ssh_key_ids, ssh_public_keys, each as it was last when
    left out; of a rescue: password. Raises WorkUnderWay, NotNow, NotWhileInRescue, BadPassword,
    WrongImage, UnknownKey or NotFound.
    """
    service = _idle_service(service_id, verb)
    before = service.state
    asked = _asked(service, verb, choices)
    if "password" in choices:
        _check_password(choices["password"])
    run = start_run(service_id=service.pk, work=verb, asked=asked)
    if run is None:
        raise WorkUnderWay(name=service.name, what="")
    if "password" in choices:
        keep_password(run, choices["password"])
    _begun(run)
    audit.record(actor, f"service.{verb}", service, reason=reason, before={"state": before})
    return run


def operate_for_tenant(
    *, tenant: UUID, service_id: UUID, verb: str, actor: User, reason: str
) -> Run:
    """The same by an operator, with a reason; for the platform's side."""
    reason = given(reason)
    with tenant_context(tenant_by_id(tenant)):
        if verb == REPLACE_HOST:
            return replace_host(service_id=service_id, actor=actor, reason=reason)
        return operate(service_id=service_id, verb=verb, actor=actor, reason=reason)


@transaction.atomic
def replace_host(*, service_id: UUID, actor: User | None, reason: str) -> Run:
    """Give up a lost host: the service is suspended from its recorded loss on, the host kept out of
    the pool, another one made under the same service.

    Raises WorkUnderWay, NotNow or NotFound.
    """
    service = _idle_service(service_id, REPLACE_HOST)
    before = service.state
    if before == ServiceState.SUSPENDED and not orders.is_suspended_for_fault(service):
        raise NotNow(
            verb=LABELS[REPLACE_HOST], name=service.name, state=service.get_state_display()
        )
    lost = _node_of(service)
    if before != ServiceState.SUSPENDED:
        orders.suspend_for_fault(service_id=service.pk, since=service.degraded_at)
    inventory.quarantine(
        node=lost, reason=f"host lost: {reason}"[:400], ticket_title=f"{lost.name}: host lost"
    )
    run = start_run(service_id=service.pk, work=REPLACE_HOST, asked={"lost_node": str(lost.pk)})
    if run is None:
        raise WorkUnderWay(name=service.name, what="")
    _begun(run)
    audit.record(actor, "service.replace_host", service, reason=reason, before={"state": before})
    return run


def replace_lost(*, service_id: UUID, why: str) -> Run | None:
    """The engine itself gives up a host; None when that makes no sense any more. Safe to repeat."""
    try:
        return replace_host(service_id=service_id, actor=None, reason=why)
    except (WorkUnderWay, NotNow, NotFound):
        return None


def open_console(*, service_id: UUID, actor: User) -> Console:
    """The way to the server's screen: from the site's template, else from its infrastructure.

    Each look is in the audit trail. Raises NoConsole, NotNow, SiteSilent or NotFound.
    """
    service = Service.objects.filter(pk=service_id).first()
    if service is None:
        raise NotFound(field="service")
    if service.state not in (ServiceState.ACTIVE, ServiceState.STOPPED):
        raise NotNow(verb="console", name=service.name, state=service.get_state_display())
    site = Site.objects.get(pk=service.site_id)
    node = _node_of(service)
    found = _console(site, node)
    with transaction.atomic():
        audit.record(actor, "service.console_opened", service, after={"kind": found.kind})
    return found


def _node_of(service: Service) -> Node:
    node = Node.objects.filter(pk=service.node_id).first() if service.node_id else None
    if node is None:
        raise NotFound(field="service")
    return node


def _console(site: Site, node: Node) -> Console:
    if site.console_url:
        return Console("web", site.console_url.replace("{node}", node.name))
    try:
        found = adapters.compute_of(site).console(node.infra_id)
    except OutsideError as error:
        raise SiteSilent(site=site.name, detail=error.detail) from error
    if found is None:
        raise NoConsole(site=site.name)
    return found


def possible_verbs(service: Service, *, is_idle: bool) -> list[str]:
    """What a tenant's person may ask of the service now, in the order of their table."""
    if not is_idle:
        return []
    found = []
    for verb in TENANT_VERBS:
        fits = service.state in blueprints.WORK[verb, "bare_metal"].wanted_in
        if fits and _fits_condition(service, verb):
            found.append(verb)
    return found


def _idle_service(service_id: UUID, verb: str) -> Service:
    """The service, locked, with nothing under way and in a state the verb fits."""
    service = (
        Service.objects.select_for_update(of=("self",))
        .select_related("order")
        .filter(pk=service_id)
        .first()
    )
    if service is None or verb not in LABELS:
        raise NotFound(field="service")
    under_way = Run.objects.filter(service=service_id, status__in=OPEN).first()
    if under_way is not None:
        done = blueprints.get(under_way.blueprint, under_way.version).verb
        raise WorkUnderWay(name=service.name, what=LABELS.get(done, ""))
    wanted_in = blueprints.WORK[verb, "bare_metal"].wanted_in
    if verb == REPLACE_HOST:
        wanted_in = (ServiceState.ACTIVE, ServiceState.STOPPED, ServiceState.SUSPENDED)
    if service.state not in wanted_in:
        raise NotNow(verb=LABELS[verb], name=service.name, state=service.get_state_display())
    if verb != REPLACE_HOST and not _fits_condition(service, verb):
        raise NotWhileInRescue(verb=LABELS[verb], name=service.name)
    return service


def _fits_condition(service: Service, verb: str) -> bool:
    if service.condition == Condition.RESCUE:
        return verb in IN_RESCUE
    return verb != "unrescue"


def _asked(service: Service, verb: str, choices: dict[str, Any]) -> dict[str, Any]:
    """What was chosen anew for an installation."""
    asked: dict[str, Any] = {}
    if verb != "reinstall":
        return asked
    if choices.get("image"):
        with platform_context():
            offering = Offering.objects.get(sku=service.sku)
            image = image_of(offering, choices["image"])
        asked |= {"image": image.code, "login": image.login}
    keys = (choices.get("ssh_key_ids") or [], choices.get("ssh_public_keys") or [])
    if any(keys):
        asked["ssh_keys"] = keys_of(*keys)
    return asked


def _check_password(password: str) -> None:
    if len(password) not in PASSWORD_LENGTH or not password.isprintable():
        raise BadPassword(
            field="password", least=PASSWORD_LENGTH.start, most=PASSWORD_LENGTH.stop - 1
        )


def _begun(run: Run) -> None:
    shows = blueprints.get(run.blueprint, run.version).shows
    outbox.publish("service.operation_begun", subject=run.service, run=str(run.pk))
    orders.show_condition(service_id=run.service, condition=shows, run=run.pk)
