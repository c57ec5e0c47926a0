"""What can go wrong with runs, as people read it."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict, Forbidden, Invalid, Unavailable


class RunEnded(Conflict):
    """The run is over; nothing can be done to it."""

    code = "run_ended"
    message = _("The work on {number} has ended; nothing is left to change.")


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
