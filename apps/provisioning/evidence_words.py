"""The items of evidence: stored in English once, shown in the reader's language."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext, gettext_noop

# The seven points of a usable server, in the order they are shown.
RESOURCE = gettext_noop("Resource visible")
REACHABLE = gettext_noop("Network reachable")
STORAGE = gettext_noop("Storage attached")
GPUS = gettext_noop("GPUs recognised")
CREDENTIAL = gettext_noop("Credential works")
RUNTIME = gettext_noop("Runtime present")
HEALTH = gettext_noop("Health good")
POINTS = (RESOURCE, REACHABLE, STORAGE, GPUS, CREDENTIAL, RUNTIME, HEALTH)

HOSTNAME = gettext_noop("host name")
AT_SITE = gettext_noop("state at the site")
POWER = gettext_noop("power")
INSTANCE = gettext_noop("instance at the site")
ALLOCATION = gettext_noop("allocation at the site")
IMAGE = gettext_noop("image")
CHECKSUM = gettext_noop("image checksum")
LESSEE = gettext_noop("lessee")
ROOT_DEVICE = gettext_noop("root device hints")
LEFT_BEHIND = gettext_noop("left on the node")
MAINTENANCE = gettext_noop("maintenance at the site")
DISKS = gettext_noop("disks (GB)")
PORT_OPEN = gettext_noop("SSH port answers from outside")
HOST_KEY_SEEN = gettext_noop("SSH host key as seen from outside")
GPUS_ANSWER = gettext_noop("GPUs that report their health")
ECC = gettext_noop("uncorrected memory errors")
MEMORY_ROWS = gettext_noop("GPUs with failing memory rows")
XID = gettext_noop("driver errors (Xid)")
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
READY_CLAIMED = gettext_noop("ready: vouched for, not measured")
CLEAN_CLAIMED = gettext_noop("clean: vouched for, not measured")
PRESENT = gettext_noop("present")
NONE = gettext_noop("none")
NOTHING = gettext_noop("nothing")
OURS = gettext_noop("ours")
OFF = gettext_noop("off")
ON = gettext_noop("on")
NOT_TOLD = gettext_noop("not reported")
STATIC_NETWORK = gettext_noop("not verifiable on a static network")
NO_ROUTE = gettext_noop("not verifiable: no route from here to the servers")
AS_ORDERED = gettext_noop("{n} as ordered")
SOME_OF = gettext_noop("{n} of {of}")

_WITH_FIGURES = {
    phrase: re.compile(re.sub(r"\\{(\w+)\\}", r"(?P<\1>\\d+)", re.escape(phrase)))
    for phrase in (AS_ORDERED, SOME_OF)
}


@dataclass(frozen=True)
class Point:
    """One of the seven points: how many of its items hold, and the items."""

    label: str
    verdict: bool | None  # None: nothing of it could be checked
    items: list[dict[str, Any]]


def points(evidence: Iterable[dict[str, Any]]) -> list[Point]:
    """Evidence by the points it proves; what belongs to none comes last, without a label."""
    rows = list(evidence)
    known = [(label, [row for row in rows if row.get("group") == label]) for label in POINTS]
    others = [row for row in rows if row.get("group") not in POINTS]
    found = [Point(in_words(label), _verdict(items), items) for label, items in known if items]
    return [*found, Point("", _verdict(others), others)] if others else found


def _verdict(items: Iterable[dict[str, Any]]) -> bool | None:
    known = [row.get("ok") for row in items if row.get("ok") is not None]
    return all(known) if known else None


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
