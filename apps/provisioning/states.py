"""The statuses of runs and of their steps."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class RunStatus(models.TextChoices):
    """Where a run is: going forward, going back, waiting for a person, or ended."""

    FORWARD = "forward", _("Working")
    UNDOING = "undoing", _("Undoing")
    HELD = "held", _("Needs a person")
    SUCCEEDED = "succeeded", _("Succeeded")
    UNDONE = "undone", _("Undone")


R = RunStatus

RUN = Machine("run", [
    # verb      from                   to
    ("succeed", R.FORWARD,             R.SUCCEEDED),
    ("hold",    (R.FORWARD, R.UNDOING), R.HELD),
    ("retry",   R.HELD,                R.FORWARD),
    ("undo",    (R.FORWARD, R.HELD),   R.UNDOING),
    ("replace", R.UNDOING,             R.FORWARD),
    ("undone",  R.UNDOING,             R.UNDONE),
])  # fmt: skip

OPEN = (R.FORWARD, R.UNDOING, R.HELD)
MOVING = (R.FORWARD, R.UNDOING)


class StepStatus(models.TextChoices):
    """Where a step of a run is."""

    PENDING = "pending", _("Not yet")
    RUNNING = "running", _("Working")
    WAITING = "waiting", _("Waiting")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")
    UNDONE = "undone", _("Undone")
    LEAKED = "leaked", _("Not undone")


T = StepStatus

STEP = Machine("step", [
    # verb      from                                      to
    ("start",   (T.PENDING, T.WAITING, T.FAILED, T.UNDONE, T.RUNNING), T.RUNNING),
    ("wait",    T.RUNNING,                                T.WAITING),
    ("finish",  T.RUNNING,                                T.DONE),
    ("fail",    (T.RUNNING, T.WAITING),                   T.FAILED),
    ("undo",    (T.RUNNING, T.WAITING, T.DONE, T.FAILED, T.LEAKED), T.UNDONE),
    ("leak",    (T.RUNNING, T.WAITING, T.DONE, T.FAILED), T.LEAKED),
])  # fmt: skip
