"""Every change to runs: started and turned around by events, and the hands of operators."""

from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import DataError, IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.models import GPUModel, Image, Offering
from apps.core import clock
from apps.core.errors import NotFound, OutsideError
from apps.core.secrets import token_hash
from apps.inventory import services as inventory
from apps.inventory.models import Node, Site
from apps.orders import services as orders
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.provisioning import adapters, blueprints
from apps.provisioning.engine import claims, endings, journal
from apps.provisioning.engine.steps import Blueprint
from apps.provisioning.errors import (
    CallHomeMalformed,
    CallHomeRefused,
    CallHomeTooLarge,
    NothingToRetry,
    ReasonMissing,
    RunEnded,
    SiteSilent,
)
from apps.provisioning.models import CallHome, Run, RunStep
from apps.provisioning.states import OPEN, RUN, RunStatus, StepStatus
from apps.tenancy.context import platform_context, tenant_by_id, tenant_context
from apps.tenancy.selectors import current_tenant

LARGEST_REPORT = 64 * 1024


@transaction.atomic
def start_run(*, service_id: UUID, removing: bool = False) -> Run | None:
    """Begin the work that makes a service, or removes it; None when it was begun already.

    Runs in the service's tenant. A second call, at the same moment or later, changes nothing.
    """
    service = (
        Service.objects.select_for_update(of=("self",)).select_related("order").get(pk=service_id)
    )
    if service.state != (ServiceState.DELETING if removing else ServiceState.PROVISIONING):
        return None  # a late message: what it asked for is wanted no more
    with (
        platform_context()
    ):  # the offering may be hidden from the tenant by now; what was agreed stands
        offering = Offering.objects.select_related("gpu_model").get(sku=service.sku)
    table = blueprints.REMOVERS if removing else blueprints.BUILDERS
    blueprint = table[offering.service_model]
    if Run.objects.filter(service=service_id, blueprint=blueprint.name).exists():
        return None
    try:
        with transaction.atomic():
            run = Run.objects.create(
                blueprint=blueprint.name,
                version=blueprint.version,
                tenant=current_tenant().id,
                order=service.order_id,
                order_number=service.order.number,
                service=service.pk,
                service_name=service.name,
                sku=service.sku,
                offering=offering.pk,
                site_id=service.site_id,
                node_id=service.node_id,
                wanted=_wanted(service, offering),
            )
    except IntegrityError:
        return None
    _list_steps(run, blueprint)
    orders.show_condition(service_id=service.pk, condition=service.condition, run=run.pk)
    journal.write(run, "created", detail=f"{blueprint.name} version {blueprint.version}")
    return run


def _list_steps(run: Run, blueprint: Blueprint) -> None:
    RunStep.objects.bulk_create(
        RunStep(run=run, tenant=run.tenant, position=position, name=step.name)
        for position, step in enumerate(blueprint.steps)
    )


def _wanted(service: Service, offering: Offering) -> dict[str, Any]:
    """What was agreed and must be proven; kept with the run, without any secret."""
    model: GPUModel = offering.gpu_model
    image = Image.objects.get(code=service.order.image_code)
    return {
        "image": image.code,
        "login": image.login,
        "ssh_keys": service.order.ssh_keys,
        "gpus": service.gpus,
        "gpu_model": model.reported_name,
        "gpu_memory_mib": model.memory_mib,
        "readiness_seconds": offering.readiness_seconds,
        "max_replacements": offering.max_replacements,
        "resource_class": offering.resource_class,
        "traits": offering.traits,
        "if_unavailable": service.order.if_unavailable,
    }


@transaction.atomic
def end_work(*, service_id: UUID) -> None:
    """The service is wanted no more: turn its making around, or begin its removal; safe
    to repeat.
    """
    run = (
        Run.objects.select_for_update()
        .filter(service=service_id, status__in=OPEN)
        .order_by("-created_at")
        .first()
    )
    if run is None:
        made = Run.objects.filter(service=service_id).order_by("-created_at").first()
        if made is None or made.status == RunStatus.SUCCEEDED:
            start_run(service_id=service_id, removing=True)
        return
    if run.blueprint in {one.name for one in blueprints.REMOVERS.values()}:
        return
    if run.status in (RunStatus.FORWARD, RunStatus.HELD):
        endings.start_undo(run, endings.CANCELLED, "the customer wants it no more")
    elif run.outcome == endings.REPLACE:
        run.outcome, run.reason = endings.CANCELLED, "the customer wants it no more"
        run.save(update_fields=["outcome", "reason"])


# ---------------------------------------------------------------------- call-home
def receive_call_home(*, run_id: UUID, token: str, report: dict[str, Any], remote: str) -> bool:
    """Keep a guest's report and wake its run; False when this very report came before.

    For the platform's side. Raises CallHomeRefused, the same for an unknown run, a wrong token and
    one that has ended.
    """
    with transaction.atomic():
        home = (
            CallHome.objects.select_for_update()
            .filter(run=run_id, token_hash=token_hash(token), revoked_at=None)
            .first()
        )
        if home is None:
            raise CallHomeRefused()
        if home.received_at is not None:
            return False
        home.received_at, home.report, home.remote_address = clock.now(), report, remote or None
        try:
            home.save(update_fields=["received_at", "report", "remote_address"])
        except DataError:  # JSON that PostgreSQL does not store: a NUL, half of a surrogate pair
            raise CallHomeMalformed() from None
        journal.write(Run.objects.get(pk=run_id), "called home", step="prove_ready", detail=remote)
        claims.wake([run_id])
    return True


def check_report_size(size: int) -> None:
    """Refuse what is larger than any honest report."""
    if size > LARGEST_REPORT:
        raise CallHomeTooLarge(most=LARGEST_REPORT)


# ---------------------------------------------------------------------- operators
def _reason(reason: str) -> str:
    if not reason.strip():
        raise ReasonMissing(field="reason")
    return reason.strip()


def _open_run(run_id: UUID) -> Run:
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    if run.status not in OPEN:
        raise RunEnded(number=run.order_number)
    return run


@transaction.atomic
def retry_step(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Try the step at work again now: ends a hold, cuts a back-off short. For the
    platform's side.
    """
    reason = _reason(reason)
    run = _open_run(run_id)
    if run.status == RunStatus.HELD:
        RUN.move(run, "retry")
    elif run.status != RunStatus.FORWARD:
        raise NothingToRetry(number=run.order_number)
    run.next_try_at, run.held_at, run.try_deadline, run.reason = clock.now(), None, None, ""
    run.save()
    RunStep.objects.filter(run=run, position=run.position).exclude(status=StepStatus.DONE).update(
        started_at=None, deadline=None
    )
    journal.write(run, "retry", detail=reason, actor=str(actor))
    audit.record(actor, "run.retried", run, reason=reason)
    return run


def undo_run(*, run_id: UUID, actor: User, reason: str) -> Run:
    """Give up and undo everything; the customer is told and never charged. For the
    platform's side.
    """
    reason = _reason(reason)
    tenant = tenant_by_id(_tenant_of(run_id))
    with tenant_context(tenant), transaction.atomic():
        run = _open_run(run_id)
        if run.status == RunStatus.UNDOING:
            if run.outcome == endings.REPLACE:
                run.outcome, run.reason = endings.FAILED, reason
                run.save(update_fields=["outcome", "reason"])
        else:
            endings.start_undo(run, endings.FAILED, reason, actor=str(actor))
        audit.record(actor, "run.undone", run, reason=reason)
    return run


def _tenant_of(run_id: UUID) -> UUID:
    found = Run.objects.filter(pk=run_id).values_list("tenant", flat=True).first()
    if found is None:
        raise NotFound()
    return found


def return_node(*, node: Node, actor: User, reason: str) -> Node:
    """Put a quarantined or serviced node back into the pool; its site is asked when it was last
    cleaned.

    For the platform's side. Raises ReasonMissing, NotProvenClean, NodeHeld, WrongStatus, or
    SiteSilent.
    """
    reason = _reason(reason)
    _is_held, lease_ended = inventory.last_lease(node)
    proof = None
    if lease_ended is not None and (node.cleaned_at is None or node.cleaned_at < lease_ended):
        try:
            record = adapters.compute_of(node.site).cleaning_since(node.infra_id, lease_ended)
        except OutsideError as error:
            raise SiteSilent(site=node.site.name, detail=error.detail) from error
        if record.result != "none":
            proof = {
                "steps": list(record.steps),
                "started_at": record.started_at,
                "ended_at": record.ended_at,
                "result": record.result,
                "simulated": node.site.is_simulated,
            }
    return inventory.restore_node(node=node, actor=actor, reason=reason, proof=_as_json(proof))


def _as_json(proof: dict[str, Any] | None) -> dict[str, Any] | None:
    if proof is None:
        return None
    return {
        key: value.isoformat() if isinstance(value, datetime) else value
        for key, value in proof.items()
    }


# ---------------------------------------------------------------------- sites
def discover_site(*, site: Site, actor: User | None, dry_run: bool = False) -> Any:
    """Import a site's nodes as it describes them; the difference is reported, nothing is lost for
    one bad row.
    """
    compute = adapters.compute_of(site)
    return inventory.import_nodes(
        site=site, observed=list(compute.discover()), actor=actor, dry_run=dry_run
    )


def validate_site(*, site: Site, actor: User | None) -> list[dict[str, Any]]:
    """Ask a site what it needs to sell: reachable, credentials, nodes, automatic cleaning.

    Returns [{item, ok, detail}]; stores what was found about cleaning and audits the check.
    """
    rows: list[dict[str, Any]] = []
    try:
        report = adapters.compute_of(site).describe()
    except OutsideError as error:
        rows.append({"item": str(_("reachable")), "ok": False, "detail": error.detail})
        cleans = False
    else:
        off = report.cleaning_disabled_on
        cleans = not off
        rows += [
            {"item": str(_("reachable")), "ok": True, "detail": f"Ironic {report.version}"},
            {"item": str(_("nodes")), "ok": report.nodes > 0, "detail": str(report.nodes)},
            {
                "item": str(_("automated cleaning")),
                "ok": cleans,
                "detail": str(_("on")) if cleans else ", ".join(off[:20]),
            },
        ]
    with transaction.atomic():
        inventory.mark_site_cleaning(site=site, cleans_automatically=cleans)
        audit.record(actor, "site.validated", site, after={"rows": rows})
    return rows
