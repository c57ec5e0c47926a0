"""What can go wrong with runs, as people read it."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Forbidden, Invalid, Unavailable


class RunEnded(Conflict):
    """The run is over; nothing can be done to it."""

    code = "run_ended"
    message = _("The work on {number} has ended; nothing is left to change.")


class TakenOver(Conflict):
    """Somebody else looks after the run."""

    code = "taken_over"
    message = _("{owner} has taken this run over; take it over yourself to decide about it.")


class BeingWorkedAt(Conflict):
    """A worker may be waiting for the site's answer."""

    code = "being_worked_at"
    message = _(
        "“{step}” is being worked at right now, until {until} at the latest; wait until it waits "
        "or fails, or take the run over."
    )


class NothingToSkip(Conflict):
    """The run is going back."""

    code = "nothing_to_skip"
    message = _(
        "The work on {number} is being undone; a step can only be skipped while going forward."
    )


class NeverSkipped(Conflict):
    """What the step proves or ends must be real."""

    code = "never_skipped"
    message = _("“{step}” is never skipped: what it proves or ends must be real. {way}")


class NothingToReplace(Conflict):
    """Another node would not help."""

    code = "nothing_to_replace"
    message = _("{blueprint} works on the node the service has; another one would not help here.")


class AlreadyGoingBack(Conflict):
    """Undoing has begun."""

    code = "already_going_back"
    message = _("The work on {number} is being undone already; wait until that has ended.")


class RemovalStays(Conflict):
    """Who left has left."""

    code = "removal_stays"
    message = _(
        "The removal of {name} cannot be undone: its customer has left. Try the step again, or "
        "take the run over."
    )


class NothingToVouchFor(Conflict):
    """No step here may be vouched for."""

    code = "nothing_to_vouch_for"
    message = _(
        "Only readiness and cleaning can be vouched for: take the run over while it stands at "
        "such a step, or ask on the last run of a quarantined node. {step} is no such step."
    )


class EvidenceMissing(Invalid):
    """What was done and seen must be said."""

    code = "evidence_missing"
    message = _("Say in at least {least} characters what was done and seen instead of the proof.")


class OverrideOpen(Conflict):
    """One question at a time."""

    code = "override_open"
    message = _("{asked_by} has asked for this already; a second operator decides by {until}.")


class OverrideDecided(Conflict):
    """It was decided, or nobody came in time."""

    code = "override_decided"
    message = _("This override is no longer open: {how}.")


class OverrideByTwo(Forbidden):
    """Nobody confirms their own claim."""

    code = "override_by_two"
    message = _("You asked for this override; somebody else has to confirm or refuse it.")


class LeakFirst(Conflict):
    """Something of a customer may still be on the node."""

    code = "leak_first"
    message = _("{what} is not undone yet; nobody can vouch for the node before that is closed.")


class LeakGone(Conflict):
    """Nothing is left of it."""

    code = "leak_gone"
    message = _("This leak is gone already: {how}.")


class NothingToRetry(Conflict):
    """The run is going back."""

    code = "nothing_to_retry"
    message = _(
        "The work on {number} is being undone; a step can only be tried again while going forward."
    )


class ReasonMissing(Invalid):
    """Operators say why."""

    code = "reason_missing"
    message = _("Say why in a few words; the reason is kept in the audit trail.")


class SiteSilent(Unavailable):
    """What has to be asked of the site cannot be asked now."""

    code = "site_silent"
    message = _("{site} does not answer, so it cannot be asked: {detail}. Try again when it does.")


class CallHomeRefused(Forbidden):
    """Unknown run, wrong token, or the invitation has ended: one answer for all."""

    code = "call_home_refused"
    message = _("This report was not asked for.")


class CallHomeTooLarge(Invalid):
    """No honest report is that large."""

    code = "call_home_too_large"
    message = _("A report may have at most {most} bytes.")


class CallHomeMalformed(Invalid):
    """Not a JSON object."""

    code = "call_home_malformed"
    message = _("A report is a JSON object.")


class NoFix(Conflict):
    """Only a person can tell what to do."""

    code = "no_fix"
    message = _(
        "There is no fix for {subject} that the platform can carry out. Follow its page in the "
        "runbooks, or accept it with a reason."
    )


class WorkUnderWay(Conflict):
    """One work at a time for a service."""

    code = "work_under_way"
    message = _(
        "{name} is being worked on ({what}). Wait until that is done; its page shows how far it is."
    )


class NotNow(Conflict):
    """The verb does not fit the service's state."""

    code = "not_now"
    message = _("“{verb}” is not possible: {name} is “{state}”.")


class NotWhileInRescue(Conflict):
    """The rescue system runs, or does not."""

    code = "not_while_in_rescue"
    message = _(
        "“{verb}” is not possible for {name} now: while the rescue system runs only leaving it, "
        "reinstalling and terminating are, and only then can it be left."
    )


class BadPassword(Invalid):
    """The rescue system is reached with it."""

    code = "bad_password"
    message = _("Choose a password of {least} to {most} printable characters.")


class NoConsole(Conflict):
    """The site has none for this server."""

    code = "no_console"
    message = _("{site} offers no console for this server. Use the rescue system, or ask us.")


class ThenImpossible(Invalid):
    """A policy may not answer this kind of failure that way."""

    code = "policy_impossible"
    message = _("“{then}” makes no sense for {kind}; possible: {possible}.")


class FigureOutOfRange(Invalid):
    """A figure of a policy is too small or too large to be meant."""

    code = "policy_figure"
    message = _("{name} is {asked}; it may be {least} to {most}.")


class WaitsCross(Invalid):
    """The first wait is the shortest one, and a try has room for the longest."""

    code = "policy_waits"
    message = _(
        "The first wait ({first} s) may be no longer than the longest ({longest} s), and the "
        "longest must fit into a try ({tries} min)."
    )


class NoReplacement(Invalid):
    """Another server is wanted, and none is allowed."""

    code = "policy_no_replacement"
    message = _(
        "A fault of the node is to take another server, but 0 others are allowed; allow at least "
        "1, or choose to hold or to undo."
    )


class PolicyExists(Conflict):
    """There is one policy for each site and offering."""

    code = "policy_exists"
    message = _("There is a policy for {where} already; change that one.")


class DefaultStays(Conflict):
    """Something must apply where nothing else does."""

    code = "policy_default"
    message = _("The default policy can be changed and never removed.")
