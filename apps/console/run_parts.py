"""Parts of a run's page: what to know first, what may be decided, who vouched, who called home."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.forms import Form
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.models import User
from apps.console import cells
from apps.console.actions import Action
from apps.console.forms import OverrideForm, ReplaceForm
from apps.core import clock, instants, show
from apps.core.tables import Column, Row, Table
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus, SiteStatus
from apps.provisioning import blueprints, reasons
from apps.provisioning.evidence_words import in_words
from apps.provisioning.models import CallHome, Leak, Override, Run
from apps.provisioning.selectors import EffectivePolicy
from apps.provisioning.services import vouchable_step
from apps.provisioning.services.policies import where
from apps.provisioning.states import RUN, RunStatus


@dataclass(frozen=True)
class Note:
    """Something to know before all else, with the runbook about it."""

    tone: str
    title: str
    text: str
    runbook: str = ""

    @property
    def url(self) -> str:
        """Where the runbook is."""
        return reverse("console:runbook", args=[self.runbook]) if self.runbook else ""


def notes(run: Run, leaks: Sequence[Leak], overrides: Sequence[Override]) -> list[Note]:
    """How the run stands and what to do about it, the most pressing first."""
    return [*_standing(run), *_asked(overrides), *_left(leaks), *_site(run), *_node(run)]


def _standing(run: Run) -> Iterator[Note]:
    if run.status == RunStatus.HELD and run.owner:
        text = _("{owner} decides how it goes on; nothing happens by itself. {reason}")
        yield Note(
            "warning",
            _("Taken over by {owner}").format(owner=run.owner),
            text.format(owner=run.owner, reason=reasons.in_words(run.reason)),
            "run-taken-over",
        )
    elif run.status == RunStatus.HELD:
        text = reasons.in_words(run.reason)
        if run.next_try_at:
            until = instants.in_zone(run.next_try_at)[0]
            text += " · " + _("Undone by itself at {until}, unless somebody decides").format(
                until=until
            )
        yield Note("warning", _("Somebody has to decide"), text, _held_runbook(run))
    elif run.reason:
        yield Note("info", "", reasons.in_words(run.reason))


def _held_runbook(run: Run) -> str:
    """The runbook of what the run is held for."""
    step = next((one for one in run.steps.all() if one.position == run.position), None)
    kind = step.error_kind if step else ""
    return {"refused": "held-refused", "node_fault": "held-node-fault"}.get(kind, "held-unknown")


def _asked(overrides: Sequence[Override]) -> Iterator[Note]:
    for one in _waiting(overrides):
        title = _("{name} vouches for this; a second operator decides")
        yield Note("warning", title.format(name=one.asked_by), one.evidence, "override-asked")


def _waiting(overrides: Sequence[Override]) -> list[Override]:
    """Those a second operator may decide now."""
    found = [one for one in overrides if one.decided_at is None]
    now = clock.now() if found else None
    return [one for one in found if now is not None and one.expires_at > now]


def _left(leaks: Sequence[Leak]) -> Iterator[Note]:
    for leak in leaks:
        if leak.gone_at is None:
            yield Note("danger", _("Not undone"), f"{leak.what}: {leak.detail}", "leak")


def _site(run: Run) -> Iterator[Note]:
    if run.ended_at is not None:
        return
    if run.site.status == SiteStatus.PAUSED:
        text = _("Nothing is done at {site} until it is resumed; no deadline runs. {reason}")
        yield Note(
            "info",
            _("The site is paused"),
            text.format(site=run.site.shown_name, reason=run.site.status_reason),
            "site-paused",
        )
    elif run.site.failing_since is not None:
        text = _("{site} is asked again and again; no try is used up. {error}")
        yield Note(
            "warning",
            _("The site does not answer"),
            text.format(site=run.site.shown_name, error=run.site.last_error),
            "site-silent",
        )


def _node(run: Run) -> Iterator[Note]:
    node: Node | None = run.node
    if node is not None and node.status == NodeStatus.QUARANTINED:
        yield Note(
            "info",
            _("{node} is in quarantine").format(node=node.name),
            reasons.in_words(node.status_reason),
            "node-quarantined",
        )


def policy_source(effective: EffectivePolicy) -> str:
    """Where the policy of a run was decided."""
    return where(effective.source) if effective.source else _("default")


def override_table(overrides: Sequence[Override], labels: dict[str, str]) -> Table:
    """What people vouched for, who decided, and how."""
    columns = [
        Column(_("Step")),
        Column(_("Vouches"), hide="sm"),
        Column(_("Evidence"), wrap=True),
        Column(_("Decided by")),
        Column(_("Result")),
    ]
    rows = [
        Row(
            [
                labels.get(one.step, one.step),
                show.stacked(one.asked_by, show.instant(one.asked_at)),
                one.evidence,
                show.stacked(one.decided_by or show.NOTHING, in_words(one.reason)),
                _result(one),
            ]
        )
        for one in overrides
    ]
    return Table(columns, rows, _("Vouched for"))


def _result(override: Override) -> Any:
    if override.decided_at is None:
        until = show.instant(override.expires_at)
        return show.stacked(show.badge("due", _("waits for a second operator")), until)
    if override.is_confirmed:
        return show.badge("vouched", _("confirmed"), tone="yellow")
    if override.decided_by:
        return show.badge("refused", _("refused"))
    return show.badge("closed", _("ended without a decision"))


def call_table(calls: Sequence[CallHome]) -> Table | None:
    """Who was invited to call home and when it did; never the token."""
    if not calls:
        return None
    columns = [
        Column(_("Node")),
        Column(_("Invited")),
        Column(_("Called home")),
        Column(_("From"), hide="sm"),
        Column(_("Ended"), hide="md"),
    ]
    rows = [
        Row(
            [
                cells.node_link(call.node),
                show.instant(call.created_at, seconds=True),
                show.instant(call.received_at, seconds=True),
                call.remote_address or show.NOTHING,
                show.instant(call.revoked_at, seconds=True),
            ]
        )
        for call in calls
    ]
    return Table(columns, rows, _("Calls home"))


def run_actions(run: Run, user: User) -> list[Action]:
    """What the person may do to the run as it stands."""
    if run.ended_at is not None or not user.may("run.act"):
        return []
    blueprint = blueprints.get(run.blueprint, run.version)
    is_going_back = run.status == RunStatus.UNDOING or bool(run.outcome)
    can = {
        "retry": run.status == RunStatus.FORWARD or run.status == RunStatus.HELD,
        "skip": not is_going_back and blueprint.step(run.position).skippable,
        "replace": not is_going_back and blueprint.replaces_nodes,
        "undo": RUN.can(run.status, "undo") and not blueprint.removes,
        "take-over": run.status != RunStatus.HELD or run.owner != str(user),
    }
    return [action for action in _all_actions(run) if can.get(action.id)]


def override_actions(
    run: Run, overrides: Sequence[Override], leaks: Sequence[Leak], user: User
) -> list[Action]:
    """Asking a second operator, or being that one."""
    if not user.may("run.override"):
        return []
    waiting = _waiting(overrides)
    can = {
        "vouch": not waiting and not any(_left(leaks)) and bool(vouchable_step(run)),
        "confirm": any(one.asked_by_id != user.pk for one in waiting),
        "refuse": bool(waiting),
    }
    return [action for action in _all_actions(run) if can.get(action.id)]


def every_action(run: Run, user: User) -> list[Action]:
    """The dialogs of all buttons that may come while the page is open."""
    return _all_actions(run) if user.may("run.act") else []


def _all_actions(run: Run) -> list[Action]:
    goes_back = bool(run.outcome)
    return [
        _action(
            run,
            "retry",
            _("Go on undoing") if goes_back else _("Try the step again"),
            _("Ends a hold and cuts waiting short: the run goes on from the step it stands at."),
            "primary",
        ),
        _action(
            run,
            "skip",
            _("Skip the step"),
            _("The step it stands at counts as done, and the run goes on behind it."),
            "warning",
        ),
        _action(
            run,
            "replace",
            _("Another node"),
            _("Undoes what was done on this node, then takes another one for the same service."),
            "warning",
            ReplaceForm(auto_id="replace_%s"),
        ),
        _action(
            run,
            "undo",
            _("Undo everything"),
            _("Takes back every step in reverse; the customer is told and never charged."),
            "danger",
        ),
        _action(
            run,
            "take-over",
            _("Take over"),
            _(
                "The run is held under your name, without a timer, until you hand it back by "
                "trying again, skipping, replacing or undoing."
            ),
            "secondary",
        ),
        _action(
            run,
            "vouch",
            _("Vouch for it"),
            _(
                "For what cannot be proven here although it is so. A second operator has to "
                "confirm it within 24 hours."
            ),
            "warning",
            OverrideForm(auto_id="vouch_%s"),
        ),
        _action(
            run,
            "confirm",
            _("Confirm"),
            _("You vouch for it together with who asked: read the evidence on the page."),
            "warning",
        ),
        _action(run, "refuse", _("Refuse"), _("Everything stays as it is."), "secondary"),
    ]


def _action(
    run: Run, verb: str, label: str, text: str, tone: str, form: Form | None = None
) -> Action:
    url = reverse("console:run_act", args=[run.pk, verb])
    return Action(verb, label, url, text, tone, form=form)
