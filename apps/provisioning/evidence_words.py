"""The items of evidence: stored in English once, shown in the reader's language."""

import re

from django.utils.translation import gettext, gettext_noop

GPU_COUNT = gettext_noop("GPU count")
GPU_MODEL = gettext_noop("GPU model")
GPU_IDENTITY = gettext_noop("GPUs are different ones")
GPU_MEMORY = gettext_noop("GPU memory (MiB)")
DRIVER = gettext_noop("NVIDIA driver")
CUDA = gettext_noop("CUDA")
ADDRESS = gettext_noop("IP address")
SSH_KEYS = gettext_noop("SSH keys")
HOST_KEY = gettext_noop("SSH host key")
BOOT_DISK = gettext_noop("boot disk")
INTERFACES = gettext_noop("driver interfaces valid")
NETWORK = gettext_noop("network read back")
CLEANED = gettext_noop("cleaned")
CLEANED_SIMULATED = gettext_noop("cleaned (simulated)")
PRESENT = gettext_noop("present")
NONE = gettext_noop("none")
STATIC_NETWORK = gettext_noop("not verifiable on a static network")


AS_ORDERED = gettext_noop("{n} as ordered")
SOME_OF = gettext_noop("{n} of {of}")

_WITH_FIGURES = {
    phrase: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>\\d+)", re.escape(phrase)))
    for phrase in (AS_ORDERED, SOME_OF)
}


def in_words(text: object) -> str:
    """An item or a value as the reader's language has it; figures and names stay as they are."""
    if text is None or text == "":
        return ""
    if not isinstance(text, str):
        return str(text)
    for phrase, form in _WITH_FIGURES.items():
        if found := form.fullmatch(text):
            return gettext(phrase).format(**found.groupdict())
    return gettext(text)
