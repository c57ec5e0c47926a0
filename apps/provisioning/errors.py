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
