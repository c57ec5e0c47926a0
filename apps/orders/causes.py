"""Why a service entered a state: recorded in English once, shown in the reader's language."""

from django.utils.translation import gettext, gettext_noop

ORDER_ACCEPTED = gettext_noop("order accepted")
PROVEN = gettext_noop("user-ready, proven")
PROVISIONING_FAILED = gettext_noop("provisioning failed")
TERMINATED = gettext_noop("terminated by customer")
ORDER_CANCELLED = gettext_noop("order cancelled")
END_REACHED = gettext_noop("agreed end reached")
SUSPENDED = gettext_noop("suspended by the operator")
RESUMED = gettext_noop("resumed by the operator")
SUSPENSION_ENDED = gettext_noop("suspended too long")
REMOVED = gettext_noop("removed")


def in_words(cause: str) -> str:
    """The cause as the reader's language has it; one that was imported stays as it is."""
    return gettext(cause) if cause else ""
