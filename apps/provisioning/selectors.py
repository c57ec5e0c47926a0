"""Questions about runs: what needs a person, how far a service is, when it may be ready."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import F, Prefetch, Q, QuerySet

from apps.core.clock import NeoNow
from apps.core.errors import NotFound
from apps.core.money import Money
from apps.provisioning import blueprints
from apps.provisioning.engine import policies
from apps.provisioning.engine.steps import Step
from apps.provisioning.models import FailurePolicy, Leak, Override, Run, RunEvent, RunStep
from apps.provisioning.states import OPEN, RunStatus, StepStatus

KNOWN_AFTER = 5  # real runs before a time is promised
REMEMBERED = 50


@dataclass(frozen=True)
class StepView:
    """A step as pages and the API show it."""

    name: str
    label: str
    status: str
    status_label: str
    attempts: int
    started_at: datetime | None
    ended_at: datetime | None
    error_kind: str
    error: str
    evidence: list[dict[str, Any]]
    skippable: bool


@dataclass(frozen=True)
class Expectation:
    """When a server like this was ready in the past; both None until five real runs exist."""

    usual: timedelta | None  # half of them were ready after this
    long: timedelta | None  # nine of ten were

    @property
    def is_known(self) -> bool:
        """Are there enough runs to say?"""
        return self.usual is not None


@dataclass(frozen=True)
class Progress:
    """How far the work on a service is: step k of n."""

    run_id: UUID
    status: str
    step: int
    of: int
    label: str
    attempts: int
    expected_at: datetime | None
    latest_at: datetime | None
    started_at: datetime


def runs(
    *, status: str = "", site: UUID | None = None, text: str = "", tenant: UUID | None = None
) -> QuerySet[Run]:
    """Runs, newest first."""
    found = Run.objects.select_related("site", "node").order_by("-created_at", "-id")
    if status == "open":
        found = found.filter(status__in=OPEN)
    elif status:
        found = found.filter(status=status)
    if site:
        found = found.filter(site=site)
    if tenant:
        found = found.filter(tenant=tenant)
    if text:
        found = found.filter(
            Q(order_number__icontains=text)
            | Q(service_name__icontains=text)
            | Q(node__name__icontains=text)
        )
    return found


def runs_needing_a_person() -> QuerySet[Run]:
    """Held runs, longest held first."""
    return runs(status=RunStatus.HELD).order_by("held_at", "id")


def leaks(*, is_open: bool | None = None) -> QuerySet[Leak]:
    """What could not be undone, oldest first."""
    found = Leak.objects.select_related("run", "node", "site").order_by("since", "id")
    return found if is_open is None else found.filter(gone_at__isnull=is_open)


def open_overrides() -> QuerySet[Override]:
    """What a second operator is asked to decide, soonest to expire first."""
    waiting = Override.objects.filter(decided_at=None, expires_at__gt=NeoNow())
    return waiting.select_related("run", "run__site").order_by("expires_at", "id")


def open_override_of(run_id: UUID) -> Override:
    """What a second operator may decide of a run. Raises NotFound."""
    override = Override.objects.filter(run=run_id, decided_at=None).first()
    if override is None:
        raise NotFound(field="override")
    return override


def run_by_id(run_id: UUID) -> Run:
    """A run with its steps and events. Raises NotFound."""
    run = (
        Run.objects.select_related("site", "node")
        .prefetch_related(
            Prefetch("steps", RunStep.objects.order_by("position")),
            Prefetch("events", RunEvent.objects.order_by("id")),
        )
        .filter(pk=run_id)
        .first()
    )
    if run is None:
        raise NotFound()
    return run


def runs_of_service(service_id: UUID) -> QuerySet[Run]:
    """The work done on a service, newest first."""
    return runs().filter(service=service_id)


def step_views(run: Run) -> list[StepView]:
    """The steps of a run with their words."""
    described: tuple[Step, ...] = blueprints.get(run.blueprint, run.version).steps
    return [
        StepView(
            name=record.name,
            label=str(described[record.position].label),
            status=record.status,
            status_label=str(StepStatus(record.status).label),
            attempts=record.attempts,
            started_at=record.started_at,
            ended_at=record.ended_at,
            error_kind=record.error_kind,
            error=record.error,
            evidence=record.evidence,
            skippable=described[record.position].skippable,
        )
        for record in run.steps.all()
    ]


def evidence_of(service_id: UUID) -> list[dict[str, Any]]:
    """The proof on which a service became active, newest making first."""
    step = (
        RunStep.objects.filter(run__service=service_id, name="prove_ready", status=StepStatus.DONE)
        .order_by("-ended_at")
        .first()
    )
    return list(step.evidence) if step else []


def expectation(*, sku: str, site: UUID) -> Expectation:
    """What really happened lately, to whomever: from the start of the work to the hand-over."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT took FROM public.provisioning_times(%s, %s, %s, %s)",
            [sku, site, _builders(), REMEMBERED],
        )
        spans = sorted(took for (took,) in cursor.fetchall())
    if len(spans) < KNOWN_AFTER:
        return Expectation(None, None)
    return Expectation(spans[len(spans) // 2], spans[min(len(spans) - 1, len(spans) * 9 // 10)])


def _builders() -> list[str]:
    return [one.name for one in blueprints.BUILDERS.values()]


def progress_of(services: Iterable[UUID], *, with_times: bool = True) -> dict[UUID, Progress]:
    """How far the latest work on each service is; none before it began. Two statements, and with
    times one for each kind of server and site under way, whatever the number of services.
    """
    latest = Run.objects.filter(service__in=list(services)).order_by(
        "service", "-created_at", "-id"
    )
    runs_found = list(latest.distinct("service"))
    tries = {
        (run, position): attempts
        for run, position, attempts in RunStep.objects.filter(
            Q(position=F("run__position")) | Q(position=F("run__position") - 1),
            run__in=[run.pk for run in runs_found],
        ).values_list("run_id", "position", "attempts")
    }
    times: dict[tuple[str, UUID], Expectation] = {}
    for run in runs_found:
        if with_times and _is_being_made(run) and (run.sku, run.site_id) not in times:
            times[run.sku, run.site_id] = expectation(sku=run.sku, site=run.site_id)
    return {
        run.service: progress_of_run(
            run, times.get((run.sku, run.site_id)), attempts=tries.get((run.pk, _position(run)), 0)
        )
        for run in runs_found
    }


def _is_being_made(run: Run) -> bool:
    return run.status == RunStatus.FORWARD and run.blueprint in _builders()


def _position(run: Run) -> int:
    return min(run.position, len(blueprints.get(run.blueprint, run.version).steps) - 1)


def progress_of_run(run: Run, times: Expectation | None, *, attempts: int = 0) -> Progress:
    """How far one run is; with the usual times, when it is expected to be over."""
    described = blueprints.get(run.blueprint, run.version).steps
    position = _position(run)
    none = Expectation(None, None)
    known = times or none if _is_being_made(run) else none
    return Progress(
        run_id=run.pk,
        status=run.status,
        step=position + 1,
        of=len(described),
        label=str(described[position].label),
        attempts=attempts,
        expected_at=run.created_at + known.usual if known.usual else None,
        latest_at=run.created_at + known.long if known.long else None,
        started_at=run.created_at,
    )


def failure_policies() -> QuerySet[FailurePolicy]:
    """Every policy somebody has set: the widest first."""
    return FailurePolicy.objects.select_related("site").order_by(
        F("site__name").asc(nulls_first=True), "sku"
    )


@dataclass(frozen=True)
class EffectivePolicy:
    """What applies somewhere, and the policy it comes from; None: what the product came with."""

    policy: FailurePolicy
    source: FailurePolicy | None


def effective_policy(*, site: UUID | None, sku: str) -> EffectivePolicy:
    """What follows failures of an offering at a site, and where that was decided."""
    policy = policies.policy_for(site=site, sku=sku)
    return EffectivePolicy(policy, None if policy._state.adding else policy)


def cost_of_leak(leak: Leak, *, at: datetime) -> Money | None:
    """What the list would have asked for it until an instant or its end; None: it has no price."""
    if leak.price_per_hour is None:
        return None
    seconds = int(((leak.gone_at or at) - leak.since).total_seconds())
    hourly = Money(leak.price_per_hour, leak.currency)
    return (hourly * Fraction(max(seconds, 0), 3600)).rounded_half_up()
