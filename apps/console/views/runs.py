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

from apps.accounts.access import needs, person, require
from apps.console import cells, selectors
from apps.console.actions import reason_of
from apps.console.run_parts import (
    call_table,
    every_action,
    notes,
    override_actions,
    override_table,
    policy_source,
    run_actions,
)
from apps.console.views.leaks import leak_table
from apps.core import filters, instants, show
from apps.core.answers import changed, drawn
from apps.core.errors import NotFound
from apps.core.live import is_live, live, live_answer
from apps.core.paging import paginate
from apps.core.tables import Column, Row, StepView, Table, Term
from apps.inventory.models import Site
from apps.provisioning import blueprints, reasons, services
from apps.provisioning import selectors as provisioning_selectors
from apps.provisioning.evidence_words import in_words, points
from apps.provisioning.models import Run, RunEvent, RunStep
from apps.provisioning.states import RunStatus, StepStatus
from apps.provisioning.words import what_follows

LONGEST_EVIDENCE = 2000
GROUPS = (
    ("held", gettext_lazy("Needs a person")),
    ("moving", gettext_lazy("Working")),
    ("leaked", gettext_lazy("With a leak")),
    ("ended", gettext_lazy("Ended")),
)
KINDS: dict[str, Any] = {
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
    "skipped": gettext_lazy("step skipped"),
    "taken over": gettext_lazy("taken over"),
    "another node wanted": gettext_lazy("another node is wanted"),
    "waits for a node": gettext_lazy("waits for another node"),
    "override asked": gettext_lazy("a second operator is asked"),
    "override confirmed": gettext_lazy("vouched for by two"),
    "override refused": gettext_lazy("a second operator refused"),
    "override expired": gettext_lazy("no second operator decided"),
    "override taken back": gettext_lazy("asked no more"),
    "leak assigned": gettext_lazy("the leak is looked after"),
    "leak retried": gettext_lazy("the leak is tried again"),
    "leak gone": gettext_lazy("the leak is gone"),
    "node kept": gettext_lazy("the node stays in quarantine"),
    "succeeded": gettext_lazy("succeeded"),
    "ended": gettext_lazy("ended"),
}
EVENT_TONES = {"held": "red", "failed": "yellow", "leaked": "red", "override asked": "yellow"}
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
    StepStatus.SKIPPED: "undone",
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
    user = person(request)
    leaks, overrides = selectors.leaks_of_run(run), selectors.overrides_of_run(run)
    policy = provisioning_selectors.effective_policy(site=run.site_id, sku=run.sku)
    context = {
        "run": run,
        "notes": notes(run, leaks, overrides),
        "follows": [Term(kind, text) for kind, text in what_follows(run, policy.policy)]
        if run.ended_at is None
        else [],
        "policy_source": policy_source(policy),
        "policy_url": f"{reverse('console:policy_list')}?site={run.site_id}&offering={run.sku}",
        "leaks": leak_table(leaks) if leaks else None,
        "overrides": override_table(overrides, labels) if overrides else None,
        "calls": call_table(selectors.calls_of_run(run)),
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
        "actions": [*run_actions(run, user), *override_actions(run, overrides, leaks, user)],
    }
    leaked = any(leak.gone_at is None for leak in leaks)
    part = live(
        request,
        busy=run.status in (RunStatus.FORWARD, RunStatus.UNDOING),
        ended=run.ended_at is not None and not leaked and not overrides,
    )
    if is_live(request):
        return live_answer(request, "console/run_detail.html#live", context, part, has_actions=True)
    page = {**context, "part": part, "dialogs": every_action(run, user)}
    return render(request, "console/run_detail.html", page)


@require_POST
@needs("run.act")
def run_act(request: HttpRequest, run_id: UUID, verb: str) -> HttpResponse:
    """What an operator decides about a run: with a reason, in the person's name."""
    decisions: dict[str, tuple[Callable[..., Any], str]] = {
        "retry": (services.retry_step, _("The run goes on.")),
        "skip": (services.skip_step, _("The step is skipped.")),
        "replace": (_replace, _("Another node is taken once all is undone here.")),
        "undo": (services.undo_run, _("Everything the run made is being undone.")),
        "take-over": (services.take_over, _("The run is yours until you hand it back.")),
        "vouch": (_vouch, _("A second operator is asked.")),
        "confirm": (_confirm, _("Both of you vouch for it.")),
        "refuse": (_refuse, _("It is refused; nothing has changed.")),
    }
    if verb not in decisions:
        raise NotFound()
    decide, message = decisions[verb]
    if decide in (_replace, _vouch, _confirm, _refuse):
        decide(request, run_id)
    else:
        decide(run_id=run_id, actor=person(request), reason=reason_of(request))
    return changed(request, reverse("console:run_detail", args=[run_id]), message)


def _replace(request: HttpRequest, run_id: UUID) -> None:
    services.replace_node(
        run_id=run_id,
        actor=person(request),
        reason=reason_of(request),
        blames_node=request.POST.get("blame") == "yes",
    )


def _vouch(request: HttpRequest, run_id: UUID) -> None:
    require(person(request), "run.override")
    evidence = request.POST.get("evidence", "").replace("\x00", "")[:LONGEST_EVIDENCE]
    services.ask_override(run_id=run_id, actor=person(request), evidence=evidence)


def _confirm(request: HttpRequest, run_id: UUID) -> None:
    require(person(request), "run.override")
    override = provisioning_selectors.open_override_of(run_id)
    services.confirm_override(
        override_id=override.pk, actor=person(request), reason=reason_of(request)
    )


def _refuse(request: HttpRequest, run_id: UUID) -> None:
    require(person(request), "run.override")
    override = provisioning_selectors.open_override_of(run_id)
    services.refuse_override(
        override_id=override.pk, actor=person(request), reason=reason_of(request)
    )


def stepper(run: Run, steps: Sequence[RunStep]) -> list[StepView]:
    """The steps of a run as one line; the one somebody must look at stands out."""
    views, labels = [], step_labels(run)
    for step in steps:
        state = STEP_STATES.get(StepStatus(step.status), "next")
        is_held_here = run.status == RunStatus.HELD and step.position == run.position
        if is_held_here and not run.outcome and state != "done":
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
                in_words(reasons.in_words(event.detail)) or show.NOTHING,
                event.actor or _("the engine"),
            ],
            tone=EVENT_TONES.get(event.kind, ""),
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
        Term(
            _("Undoing may take until") if run.outcome else _("This node's tries end"),
            show.instant(run.try_deadline),
            _("stands still since {since}").format(since=instants.in_zone(run.stopped_at)[0])
            if run.stopped_at and run.ended_at is None
            else "",
        ),
        Term(_("Held since"), show.instant(run.held_at)),
        *([Term(_("Taken over by"), run.owner)] if run.owner else []),
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
            *([Term(_("Skipped because"), step.skip_reason)] if step.skip_reason else []),
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
                _verdict(item),
            ],
            tone="red" if item.get("ok") is False else "",
        )
        for point in found
        for number, item in enumerate(point.items)
    ]
    return Table(columns, rows, _("Evidence"))


def _verdict(item: dict[str, Any]) -> Any:
    ok = item.get("ok")
    if item.get("claimed_by"):
        by = f"{item['claimed_by']}, {item.get('confirmed_by')}"
        return show.stacked(show.badge("vouched", _("vouched for"), tone="yellow"), by)
    if ok is None:
        return show.badge("unverifiable", _("not verifiable"))
    return show.badge("passed", _("as agreed")) if ok else show.badge("failed", _("differs"))
