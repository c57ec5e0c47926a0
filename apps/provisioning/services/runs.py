"""The work that makes a service or removes it: begun and turned around by events."""

from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import QuerySet

from apps.catalog.models import GPUModel, Image, Offering
from apps.orders import services as orders
from apps.orders.models import Service
from apps.provisioning import blueprints
from apps.provisioning.engine import endings, journal
from apps.provisioning.engine.steps import Blueprint
from apps.provisioning.models import Run, RunStep
from apps.provisioning.states import OPEN, RunStatus
from apps.tenancy.context import platform_context
from apps.tenancy.selectors import current_tenant

MAKE, REMOVE = "make", "remove"


@transaction.atomic
def start_run(
    *, service_id: UUID, work: str = MAKE, asked: dict[str, Any] | None = None
) -> Run | None:
    """Begin a kind of work on a service; None when it was begun already or makes no sense now.

    Runs in the service's tenant. What makes or removes a service is begun once for ever, what a
    person asks of a running one whenever nothing else is under way. `asked` is what was chosen
    differently from what was agreed.
    """
    service = (
        Service.objects.select_for_update(of=("self",)).select_related("order").get(pk=service_id)
    )
    with (
        platform_context()
    ):  # the offering may be hidden from the tenant by now; what was agreed stands
        offering = Offering.objects.select_related("gpu_model").get(sku=service.sku)
    blueprint = blueprints.WORK[work, offering.service_model]
    if service.state not in blueprint.wanted_in:
        return None  # a late message: what it asked for is wanted no more
    before = Run.objects.filter(service=service_id)
    if not blueprint.verb and before.filter(blueprint=blueprint.name).exists():
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
                wanted=_wanted(service, offering) | installed(before) | (asked or {}),
            )
    except IntegrityError:
        return None
    _list_steps(run, blueprint)
    orders.show_condition(service_id=service.pk, condition=service.condition, run=run.pk)
    journal.write(run, "created", detail=f"{blueprint.name} version {blueprint.version}")
    return run


def installed(runs: QuerySet[Run]) -> dict[str, Any]:
    """Image, login and keys a service was last installed with."""
    last = (
        runs.filter(status=RunStatus.SUCCEEDED, steps__name="deploy").order_by("-ended_at").first()
    )
    return {name: last.wanted[name] for name in ("image", "login", "ssh_keys")} if last else {}


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
        "disk_gb": offering.disk_gb,
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
        builders = [one.name for one in blueprints.BUILDERS.values()]
        made = Run.objects.filter(service=service_id, blueprint__in=builders).first()
        if made is None or made.status == RunStatus.SUCCEEDED:
            start_run(service_id=service_id, work=REMOVE)
        return
    if run.blueprint in {one.name for one in blueprints.REMOVERS.values()}:
        return
    if run.status in (RunStatus.FORWARD, RunStatus.HELD):
        endings.start_undo(run, endings.CANCELLED, "the customer wants it no more")
    elif run.outcome == endings.REPLACE:
        run.outcome, run.reason = endings.CANCELLED, "the customer wants it no more"
        run.save(update_fields=["outcome", "reason"])
