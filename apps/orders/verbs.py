"""What a person may ask of a running service, in words."""

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

LABELS: dict[str, Promise] = {
    "power_off": _("Power off"),
    "power_on": _("Power on"),
    "reboot": _("Reboot"),
    "power_cycle": _("Power cycle"),
    "reinstall": _("Reinstall"),
    "rescue": _("Rescue system"),
    "unrescue": _("Leave the rescue system"),
    "replace_host": _("Replace the host"),
}


def in_words(verb: str) -> "Promise | str":
    """The verb as people read it, in the language of the moment it is shown."""
    return LABELS.get(verb) or format_lazy("{}", verb)
