"""Runs and policies in words: what errors and pages both say."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from apps.core.errors import FailureKind
from apps.provisioning import blueprints
from apps.provisioning.engine.policies import decision, replacements_allowed
from apps.provisioning.engine.steps import Step
from apps.provisioning.models import FailurePolicy, Run, Then

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

DECISIONS = (
    "on_node_fault",
    "on_no_capacity",
    "on_refused",
    "on_unknown",
    "after_last_try",
    "on_host_fault",
)
FIGURES = (
    "max_replacements",
    "try_minutes",
    "first_wait_seconds",
    "longest_wait_seconds",
    "hold_hours",
    "undo_minutes",
    "leak_retry_minutes",
    "recleanings",
    "host_fault_minutes",
)
LABELS = {
    "on_node_fault": gettext_lazy("Fault of the node"),
    "on_no_capacity": gettext_lazy("No capacity"),
    "on_refused": gettext_lazy("Refused"),
    "on_unknown": gettext_lazy("Unknown answer"),
    "after_last_try": gettext_lazy("After the last try"),
    "on_host_fault": gettext_lazy("Fault under a running service"),
    "host_fault_minutes": gettext_lazy("Minutes a fault under a service may last"),
    "recleanings": gettext_lazy("Cleanings begun anew at most"),
    "max_replacements": gettext_lazy("Other servers at most"),
    "try_minutes": gettext_lazy("Minutes for each server tried"),
    "first_wait_seconds": gettext_lazy("Seconds of the first wait"),
    "longest_wait_seconds": gettext_lazy("Seconds of the longest wait"),
    "hold_hours": gettext_lazy("Hours a run is held"),
    "undo_minutes": gettext_lazy("Minutes to undo"),
    "leak_retry_minutes": gettext_lazy("Minutes between tries at a leak"),
}


def way_of(step: Step) -> "StrOrPromise":
    """What can be done about a step that is never skipped."""
    if step.claim is not None:
        return gettext_lazy(
            "Two operators may vouch for it together: take the run over and ask for that."
        )
    return gettext_lazy("Try it again, or undo everything.")


def value_of(policy: FailurePolicy, name: str) -> str:
    """One value of a policy as people read it."""
    value = getattr(policy, name)
    if name in DECISIONS:
        return str(Then(value).label)
    return _("as the offering says") if value is None else str(value)


def what_follows(run: Run, policy: FailurePolicy) -> Iterator[tuple[str, str]]:
    """What happens next if the run fails now, kind by kind, as its policy has it."""
    yield (
        _("Passing trouble"),
        _("Tried again after {first} s, then more slowly, every {longest} s at most").format(
            first=policy.first_wait_seconds, longest=policy.longest_wait_seconds
        ),
    )
    yield _("Site does not answer"), _("Stands still, uses up no try")
    blueprint = blueprints.get(run.blueprint, run.version)
    if blueprint.removes:
        yield _("Anything else"), _("Held for a person, without an end")
        return
    if not blueprint.risks_node:
        yield _("Anything else"), _("Given up; the server goes on as it was")
        return
    for kind, label in (
        (FailureKind.NODE_FAULT, LABELS["on_node_fault"]),
        (FailureKind.NO_CAPACITY, LABELS["on_no_capacity"]),
        (FailureKind.REFUSED, LABELS["on_refused"]),
        (FailureKind.UNKNOWN, LABELS["on_unknown"]),
    ):
        yield str(label), _in_words(decision(policy, kind, run), run, policy)
    yield str(LABELS["after_last_try"]), _in_words(policy.after_last_try, run, policy)
    yield (
        _("Undoing fails"),
        _("Tried for {undo} min, then listed as a leak and tried every {leak} min").format(
            undo=policy.undo_minutes, leak=policy.leak_retry_minutes
        ),
    )


def _in_words(then: str, run: Run, policy: FailurePolicy) -> str:
    if then == Then.REPLACE:
        left = max(replacements_allowed(policy, run) - run.replacements, 0)
        if not left:
            return _("No other server is left to try: as after the last try")
        return ngettext(
            "Undone here, the node to quarantine, another server ({n} more)",
            "Undone here, the node to quarantine, another server ({n} more)",
            left,
        ).format(n=left)
    if then == Then.HOLD:
        return _("Held for a person for {hours} h, then everything is undone").format(
            hours=policy.hold_hours
        )
    if then == Then.QUEUE:
        return _("Waits at the head of the queue, at its old place")
    return _("Everything is undone; the customer is never charged")
