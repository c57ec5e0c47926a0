"""Work being done: runs, their steps, evidence and events, and what a person may decide."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts.access import needs, person
from apps.console import cells, selectors
from apps.console.actions import Action, reason_of
from apps.core import filters, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Column, Row, StepView, Table, Term
from apps.inventory.models import Site
from apps.provisioning import blueprints, services
from apps.provisioning.evidence_words import in_words, points
from apps.provisioning.models import Run, RunEvent, RunStep
from apps.provisioning.states import RUN, RunStatus, StepStatus

GROUPS = (
    ("held", gettext_lazy("Needs a person")),
    ("moving", gettext_lazy("Working")),
    ("leaked", gettext_lazy("With a leak")),
    ("ended", gettext_lazy("Ended")),
)
KINDS = {
    "created": gettext_lazy("begun"),
    "started": gettext_lazy("step started"),
    "waits": gettext_lazy("waits"),
    "done": gettext_lazy("step done"),
    "failed": gettext_lazy("step failed"),
    "retry": gettext_lazy("tried again"),
    "held": gettext_lazy("held for a person"),
    "replaced": gettext_lazy("another node is taken"),
    "undo": gettext_lazy("undoing begins"),
    "undone": gettext_lazy("step undone"),
    "undo failed": gettext_lazy("undoing failed"),
    "leaked": gettext_lazy("not undone"),
    "called home": gettext_lazy("the server called home"),
    "succeeded": gettext_lazy("succeeded"),
    "ended": gettext_lazy("ended"),
}
WANTED = {
    "gpus": gettext_lazy("GPUs"),
    "gpu_model": gettext_lazy("GPU model"),
    "gpu_memory_mib": gettext_lazy("Memory of a GPU (MiB)"),
    "image": gettext_lazy("Image"),
    "login": gettext_lazy("Login name"),
    "ssh_keys": gettext_lazy("SSH keys"),
    "traits": gettext_lazy("Traits"),
    "resource_class": gettext_lazy("Resource class"),
    "if_unavailable": gettext_lazy("If no server is free"),
    "max_replacements": gettext_lazy("Other nodes at most"),
    "readiness_seconds": gettext_lazy("Seconds to call home"),
}
STEP_STATES = {
    StepStatus.PENDING: "next",
    StepStatus.RUNNING: "now",
    StepStatus.WAITING: "now",
    StepStatus.DONE: "done",
    StepStatus.FAILED: "failed",
    StepStatus.LEAKED: "failed",
    StepStatus.UNDONE: "undone",
}


@dataclass(frozen=True)
class StepDetail:
    """A step as the run's page shows it: how it stands, its tries, its evidence."""

    step: RunStep
    label: str
    badge: Any
    kind: Any
    terms: list[Term]
    evidence: Table | None
    output: str


@needs("run.view")
def run_list(request: HttpRequest) -> HttpResponse:
    """Runs by how they stand, site and text, newest first."""
    group = filters.choice(request, "group", _("Status"), _("Every status"), GROUPS)
    site = filters.choice(request, "site", _("Site"), _("Every site"), site_choices())
    text = filters.text(request, _("Order, service or node"))
    page = paginate(
        selectors.runs(
            group=group.value, site=UUID(site.value) if site.value else None, text=text.value
        ),
        cursor=request.GET.get("cursor", ""),
    )
    found = filters.Listing(cells.run_table(page.items), [group, site, text], page.next)
    return drawn(request, "console/run_list.html", {"listing": found})


@needs("run.view")
def run_detail(request: HttpRequest, run_id: UUID) -> HttpResponse:
    """When, why and who decided: steps, tries, waits, evidence, events in order."""
    run = selectors.runs().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    steps = selectors.steps_of_runs([run.pk]).get(run.pk, [])
    labels = step_labels(run)
    context = {
        "run": run,
        "status": cells.run_badge(run),
        "stepper": stepper(run, steps),
        "terms": _run_terms(run),
        "wanted": _wanted(run),
        "steps": [
            _step_detail(step, labels)
            for step in steps
            if step.status != StepStatus.PENDING or step.attempts
        ],
        "events": event_table(run, selectors.run_events(run)),
        "actions": _actions(run) if person(request).may("run.act") else [],
    }
    leaked = any(step.status == StepStatus.LEAKED for step in steps)
    part = live(
        request,
        busy=run.status in (RunStatus.FORWARD, RunStatus.UNDOING),
        ended=run.ended_at is not None and not leaked,
    )
    if is_live(request):
        return live_answer(request, "console/run_detail.html#live", context, part, has_actions=True)
    return render(request, "console/run_detail.html", {**context, "part": part})


@require_POST
@needs("run.act")
def run_act(request: HttpRequest, run_id: UUID, verb: str) -> HttpResponse:
    """Retry the step or undo all: with a reason, in the person's name."""
    decisions: dict[str, tuple[Callable[..., Any], str]] = {
        "retry": (services.retry_step, _("The step is tried again.")),
        "undo": (services.undo_run, _("Everything the run made is being undone.")),
    }
    if verb not in decisions:
        raise NotFound()
    decide, message = decisions[verb]
    decide(run_id=run_id, actor=person(request), reason=reason_of(request))
    return changed(request, reverse("console:run_detail", args=[run_id]), message)


def stepper(run: Run, steps: Sequence[RunStep]) -> list[StepView]:
    """The steps of a run as one line; the one somebody must look at stands out."""
    views, labels = [], step_labels(run)
    for step in steps:
        state = STEP_STATES.get(StepStatus(step.status), "next")
        if run.status == RunStatus.HELD and step.position == run.position and state != "done":
            state = "failed"
        note = step.get_status_display() if state in ("now", "failed", "undone") else ""
        at = show.instant(step.ended_at) if step.ended_at else ""
        views.append(StepView(labels.get(step.name, step.name), state, note, at))
    return views


def step_labels(run: Run) -> dict[str, str]:
    """The steps of the run's blueprint as people read them."""
    described = blueprints.get(run.blueprint, run.version).steps
    return {step.name: str(step.label) for step in described}


def event_table(run: Run, events: Sequence[RunEvent]) -> Table:
    """What happened, when, why, and who decided."""
    columns = [
        Column(_("When")),
        Column(_("Step"), hide="sm"),
        Column(_("What happened")),
        Column(_("Why"), wrap=True),
        Column(_("Decided by"), hide="sm"),
    ]
    labels = step_labels(run)
    rows = [
        Row(
            [
                show.instant(event.at, seconds=True),
                labels.get(event.step, event.step) or show.NOTHING,
                KINDS.get(event.kind, event.kind.replace("_", " ")),
                event.detail or show.NOTHING,
                event.actor or _("the engine"),
            ],
            tone={"held": "red", "failed": "yellow", "leaked": "red"}.get(event.kind, ""),
        )
        for event in events
    ]
    return Table(columns, rows, _("Events"))


def site_choices() -> list[tuple[str, str]]:
    """Every site, for a list to choose from."""
    return [(str(site.pk), site.shown_name) for site in Site.objects.order_by("name")]


def _run_terms(run: Any) -> list[Term]:
    waits = _("for a person") if run.next_try_at is None and run.ended_at is None else ""
    return [
        Term(_("Tenant"), cells.tenant_link(run.tenant, run.tenant_name)),
        Term(_("Order"), cells.order_link(run.order, run.order_number)),
        Term(_("Offering"), show.code(run.sku)),
        Term(
            _("Site"),
            show.link(run.site.shown_name, reverse("console:site_detail", args=[run.site_id])),
        ),
        Term(_("Node"), cells.node_link(run.node)),
        Term(_("Blueprint"), f"{run.blueprint} {run.version}"),
        Term(_("Nodes replaced"), run.replacements),
        Term(_("Begun"), show.instant(run.created_at, seconds=True)),
        Term(_("Ended"), show.instant(run.ended_at, seconds=True)),
        Term(_("Next try"), waits or show.instant(run.next_try_at, seconds=True)),
        Term(_("This node's tries end"), show.instant(run.try_deadline)),
        Term(_("Held since"), show.instant(run.held_at)),
        Term(_("Claims"), run.fence),
    ]


def _wanted(run: Run) -> list[Term]:
    """What was agreed and must be proven."""
    return [
        Term(WANTED.get(name, name.replace("_", " ")), plain(value))
        for name, value in run.wanted.items()
    ]


def plain(value: Any) -> Any:
    """A JSON value for people: lists line by line, the rest as it is."""
    if isinstance(value, dict):
        value = [f"{name}: {plain(item)}" for name, item in value.items()]
    if isinstance(value, list):
        items = [(plain(item),) for item in value]
        return format_html_join(SafeString("<br>"), "{}", items) if items else show.NOTHING
    if isinstance(value, bool):
        return _("yes") if value else _("no")
    return show.NOTHING if value is None or value == "" else value


def _step_detail(step: RunStep, labels: dict[str, str]) -> StepDetail:
    lasted = step.ended_at - step.started_at if step.ended_at and step.started_at else None
    return StepDetail(
        step=step,
        label=labels.get(step.name, step.name),
        badge=show.badge(step.status, step.get_status_display()),
        kind=cells.FAILURES.get(step.error_kind, step.error_kind),
        terms=[
            Term(_("Attempts"), step.attempts),
            *(
                Term(label, show.instant(at, seconds=True))
                for label, at in (
                    (_("Intended"), step.intent_at),
                    (_("Started"), step.started_at),
                    (_("Deadline"), step.deadline),
                    (_("Ended"), step.ended_at),
                )
                if at is not None
            ),
            *([Term(_("Took"), show.duration(lasted))] if lasted is not None else []),
        ],
        evidence=_evidence(step.evidence) if step.evidence else None,
        output=plain(step.output) if step.output else "",
    )


def _evidence(items: Sequence[dict[str, Any]]) -> Table:
    """Evidence by the points it proves, where it proves any of the seven."""
    found = points(items)
    has_points = any(point.label for point in found)
    columns = [
        *([Column(_("Point"), wrap=True)] if has_points else []),
        Column(_("Item"), wrap=True),
        Column(_("Wanted"), wrap=True),
        Column(_("Seen"), wrap=True),
        Column(_("Result")),
    ]
    rows = [
        Row(
            [
                *([show.strong(point.label) if number == 0 else ""] if has_points else []),
                in_words(item.get("item")),
                in_words(plain(item.get("wanted"))),
                in_words(plain(item.get("seen"))),
                _verdict(item.get("ok")),
            ],
            tone="red" if item.get("ok") is False else "",
        )
        for point in found
        for number, item in enumerate(point.items)
    ]
    return Table(columns, rows, _("Evidence"))


def _verdict(ok: Any) -> Any:
    if ok is None:
        return show.badge("unverifiable", _("not verifiable"))
    return show.badge("passed", _("as agreed")) if ok else show.badge("failed", _("differs"))


def _actions(run: Run) -> list[Action]:
    found = []
    if run.status in (RunStatus.HELD, RunStatus.FORWARD):
        text = _("Ends a hold and cuts waiting short: the run goes on from the step it stands at.")
        found.append(_action(run, "retry", _("Try the step again"), text, "primary"))
    if RUN.can(run.status, "undo"):
        text = _("Takes back every step in reverse; the customer is told and never charged.")
        found.append(_action(run, "undo", _("Undo everything"), text, "danger"))
    return found


def _action(run: Run, verb: str, label: str, text: str, tone: str) -> Action:
    return Action(verb, label, reverse("console:run_act", args=[run.pk, verb]), text, tone)
