"""Why a service entered a state: recorded in English once, shown in the reader's language."""

from django.utils.translation import gettext, gettext_noop

ORDER_ACCEPTED = gettext_noop("order accepted")
PROVEN = gettext_noop("user-ready, proven")
PROVISIONING_FAILED = gettext_noop("provisioning failed")
TERMINATED = gettext_noop("terminated by customer")
ORDER_CANCELLED = gettext_noop("order cancelled")
END_REACHED = gettext_noop("agreed end reached")
RECALLED = gettext_noop("server called back for its reservation")
TERM_OVER = gettext_noop("reservation ended")
SUSPENDED = gettext_noop("suspended by the operator")
RESUMED = gettext_noop("resumed by the operator")
SUSPENSION_ENDED = gettext_noop("suspended too long")
POWERED_OFF = gettext_noop("powered off by customer")
POWERED_ON = gettext_noop("powered on by customer")
HOST_LOST = gettext_noop("host lost")
REMOVED = gettext_noop("removed")


_MANY_GPUS = "gpus:"


def many_gpus(*, limit: int, gpus: int) -> str:
    """The rule by which approval was asked, as it is kept."""
    return f"{_MANY_GPUS}{limit}:{gpus}"


def rule_in_words(rule: str) -> str:
    """The rule in the reader's language; words of another kind stay as they are."""
    if not rule.startswith(_MANY_GPUS):
        return gettext(rule) if rule else ""
    limit, gpus = rule.removeprefix(_MANY_GPUS).split(":")
    return gettext("Orders of {limit} GPUs or more need approval; this one has {gpus}.").format(
        limit=limit, gpus=gpus
    )


def in_words(cause: str) -> str:
    """The cause as the reader's language has it; one that was imported stays as it is."""
    return gettext(cause) if cause else ""
