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
    SKIPPED = "skipped", _("Skipped")
    UNDONE = "undone", _("Undone")
    LEAKED = "leaked", _("Not undone")


T = StepStatus

STEP = Machine("step", [
    # verb      from                                      to
    ("start",   (T.PENDING, T.WAITING, T.FAILED, T.UNDONE, T.RUNNING), T.RUNNING),
    ("wait",    T.RUNNING,                                T.WAITING),
    ("finish",  T.RUNNING,                                T.DONE),
    ("fail",    (T.RUNNING, T.WAITING),                   T.FAILED),
    ("skip",    (T.PENDING, T.RUNNING, T.WAITING, T.FAILED), T.SKIPPED),
    ("undo",    (T.RUNNING, T.WAITING, T.DONE, T.SKIPPED, T.FAILED, T.LEAKED), T.UNDONE),
    ("leak",    (T.RUNNING, T.WAITING, T.DONE, T.SKIPPED, T.FAILED), T.LEAKED),
])  # fmt: skip


class FindingKind(models.TextChoices):
    """How belief and reality may differ."""

    ORPHAN_SERVER = "orphan_server", _("A server runs that no service owns")
    LOST_SERVER = "lost_server", _("A service's server is not running")
    WRONG_INSTANCE = "wrong_instance", _("The node serves another instance than we believe")
    POWER = "power", _("Power is not as it should be")
    MAINTENANCE = "maintenance", _("The node is in maintenance at the site")
    NODE_GONE = "node_gone", _("The site no longer lists the node")
    NODE_UNKNOWN = "node_unknown", _("The site has a node we do not know")
    NOT_CLEANED = "not_cleaned", _("Available at the site without a cleaning since its last lease")
    STUCK = "stuck", _("In one state for longer than it may take")
    LESSEE = "lessee", _("The node still carries a former customer")
    ORPHAN_CLAIM = "orphan_claim", _("A claim at the site that no run holds")
    ORPHAN_PORT = "orphan_port", _("A network port that no service owns")
    ORPHAN_VOLUME = "orphan_volume", _("A volume that no service owns")
    ORPHAN_ADDRESS = "orphan_address", _("An address is held for a service that has ended")


class FindingStatus(models.TextChoices):
    """What became of a finding."""

    OPEN = "open", _("Open")
    FIXING = "fixing", _("Being fixed")
    FIXED = "fixed", _("Fixed")
    GONE = "gone", _("No longer seen")
    ACCEPTED = "accepted", _("Accepted")


F = FindingStatus

FINDING = Machine("finding", [
    # verb      from                to
    ("fix",     F.OPEN,             F.FIXING),
    ("fixed",   (F.OPEN, F.FIXING), F.FIXED),
    ("reopen",  (F.FIXING, F.ACCEPTED), F.OPEN),
    ("vanish",  (F.OPEN, F.FIXING), F.GONE),
    ("accept",  F.OPEN,             F.ACCEPTED),
])  # fmt: skip
