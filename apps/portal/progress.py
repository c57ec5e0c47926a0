"""How far the work on services is, for pages that show several: three queries whatever
their number.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.utils.translation import gettext as _

from apps.core import clock, show
from apps.core.tables import StepView
from apps.orders.models import Service
from apps.orders.states import ServiceState
from apps.portal import cells
from apps.portal.offers import expected_words
from apps.provisioning import blueprints, standing
from apps.provisioning import selectors as provisioning
from apps.provisioning.models import Run
from apps.provisioning.selectors import Expectation
from apps.provisioning.standing import Standing
from apps.provisioning.states import RunStatus, StepStatus


@dataclass(frozen=True)
class Work:
    """The latest work on a service, as its customer sees it."""

    done: int
    of: int
    label: str
    note: str
    steps: list[StepView]


@dataclass(frozen=True)
class ServiceView:
    """A service with its badge and, while something is done to it, how far that is."""

    service: Service
    standing: Standing
    work: Work | None

    @property
    def badge(self) -> Any:
        """Its one honest status."""
        return cells.standing_badge(self.standing)

    @property
    def detail(self) -> str:
        """What goes on, unless the work itself shows it."""
        return self.service.condition_detail if self.work else self.standing.detail

    @property
    def expected(self) -> str:
        """When it is expected to be ready."""
        return cells.expected_words(self.standing)

    @property
    def is_busy(self) -> bool:
        """Whether its state is about to change."""
        return standing.is_under_way(self.service)


def service_views(services: Iterable[Service], *, briefly: bool = False) -> list[ServiceView]:
    """Services with the work on them; `briefly`: only how far, neither each step nor
    usual times.
    """
    shown = list(services)
    latest = latest_runs(
        [one.pk for one in shown if standing.is_under_way(one)], with_steps=not briefly
    )
    times: dict[tuple[str, UUID], Expectation] = {}
    now = clock.now() if latest and not briefly else None
    views = []
    for one in shown:
        run = latest.get(one.pk)
        work, stands = None, standing.of_service(one)
        if run is not None and not _is_past(one, run):
            kind = (run.sku, run.site_id)
            if not briefly and kind not in times:
                times[kind] = provisioning.expectation(sku=run.sku, site=run.site_id)
            work = work_view(run, times.get(kind))
            tries = _attempts(run, briefly)
            done = provisioning.progress_of_run(run, times.get(kind), attempts=tries)
            stands = standing.of_service(one, done, now=now)
        views.append(ServiceView(one, stands, work))
    return views


def _attempts(run: Run, briefly: bool) -> int:
    """How often the present step was tried; a brief view does not read the steps."""
    if briefly:
        return 0
    return next((one.attempts for one in run.steps.all() if one.position == run.position), 0)


def _is_past(service: Service, run: Run) -> bool:
    """Whether the run made the service that is now to be removed, and is over."""
    made = run.blueprint in _builders() and run.status == RunStatus.SUCCEEDED
    return made and service.state == ServiceState.DELETING


def latest_runs(services: Iterable[UUID], *, with_steps: bool) -> dict[UUID, Run]:
    """The newest run of each service."""
    wanted = list(services)
    if not wanted:
        return {}
    runs = provisioning.runs().filter(service__in=wanted)
    found: dict[UUID, Run] = {}
    for run in runs.prefetch_related("steps") if with_steps else runs:
        found.setdefault(run.service, run)
    return found


def work_view(run: Run, times: Expectation | None) -> Work:
    """A run in the customer's words: no errors of the infrastructure. Without times: no steps."""
    described = blueprints.get(run.blueprint, run.version).steps
    current = min(run.position, len(described) - 1)
    steps = []
    if times is not None:
        steps = [
            StepView(
                view.label, _step_state(run, view.status, place == current), at=_at(view.ended_at)
            )
            for place, view in enumerate(provisioning.step_views(run))
        ]
    return Work(
        done=current,
        of=len(described),
        label=_label(run, str(described[current].label), current + 1, len(described)),
        note=_note(run, times),
        steps=steps,
    )


def _label(run: Run, label: str, step: int, of: int) -> str:
    if run.status in (RunStatus.UNDOING, RunStatus.UNDONE):
        return _("Undoing what was done")
    return _("Step {step} of {of}: {label}").format(step=step, of=of, label=label)


def _note(run: Run, times: Expectation | None) -> str:
    if times is None or run.status != RunStatus.FORWARD or run.blueprint not in _builders():
        return ""
    return _("usually ready after: {times}").format(times=expected_words(times))


def _step_state(run: Run, status: str, is_current: bool) -> str:
    if status == StepStatus.DONE:
        return "done"
    if status in (StepStatus.FAILED, StepStatus.LEAKED):
        return "failed"
    if status == StepStatus.UNDONE:
        return "undone"
    return "now" if is_current and run.status == RunStatus.FORWARD else "next"


def _at(value: Any) -> Any:
    return show.instant(value, seconds=True) if value else ""


def _builders() -> set[str]:
    return {blueprint.name for blueprint in blueprints.BUILDERS.values()}
