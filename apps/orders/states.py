"""The statuses of orders and services, and the one table that says which state is charged."""

from dataclasses import dataclass

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class OrderStatus(models.TextChoices):
    """What became of a request."""

    DRAFT = "draft", _("Draft")
    PLACED = "placed", _("Placed")
    APPROVED = "approved", _("Approved")
    QUEUED = "queued", _("In queue")
    ACCEPTED = "accepted", _("Accepted")
    REFUSED = "refused", _("Refused")
    CANCELLED = "cancelled", _("Cancelled")
    CLOSED = "closed", _("Closed")


O = OrderStatus  # noqa: E741 - reads as a column heading below

ORDER = Machine("order", [
    # verb      from                                 to
    ("place",   O.DRAFT,                             O.PLACED),
    ("approve", O.PLACED,                            O.APPROVED),
    ("queue",   O.APPROVED,                          O.QUEUED),
    ("accept",  (O.APPROVED, O.QUEUED),              O.ACCEPTED),
    ("refuse",  (O.PLACED, O.APPROVED, O.QUEUED),    O.REFUSED),
    ("cancel",  (O.DRAFT, O.PLACED, O.APPROVED, O.QUEUED, O.ACCEPTED), O.CANCELLED),
    ("close",   O.ACCEPTED,                          O.CLOSED),
])  # fmt: skip


class ServiceState(models.TextChoices):
    """The ledger states: what facts record and rating reads."""

    PROVISIONING = "provisioning", _("Provisioning")
    ACTIVE = "active", _("Active")
    STOPPED = "stopped", _("Stopped")
    SUSPENDED = "suspended", _("Suspended")
    PREEMPTED = "preempted", _("Interrupted")
    FAILED = "failed", _("Failed (never charged)")
    DELETING = "deleting", _("Terminating")
    TERMINATED = "terminated", _("Terminated")


S = ServiceState

SERVICE = Machine("service", [
    # verb        from                                     to
    ("ready",     S.PROVISIONING,                          S.ACTIVE),
    ("fail",      S.PROVISIONING,                          S.FAILED),
    ("stop",      S.ACTIVE,                                S.STOPPED),
    ("start",     S.STOPPED,                               S.ACTIVE),
    ("suspend",   (S.ACTIVE, S.STOPPED),                   S.SUSPENDED),
    ("resume",    S.SUSPENDED,                             S.ACTIVE),
    ("terminate", (S.PROVISIONING, S.ACTIVE, S.STOPPED, S.SUSPENDED), S.DELETING),
    ("finish",    S.DELETING,                              S.TERMINATED),
])  # fmt: skip


@dataclass(frozen=True)
class Charge:
    """One row of the table customers, rating and tests read."""

    state: str
    customers_see: Promise
    allocated: bool
    running: bool


CHARGES = (
    Charge(S.PROVISIONING, _("in queue, provisioning, retrying, being looked at"), False, False),
    Charge(S.ACTIVE, _("active, degraded, rebooting, reinstalling, rescue"), True, True),
    Charge(S.STOPPED, _("stopped"), True, False),
    Charge(S.SUSPENDED, _("suspended"), False, False),
    Charge(S.PREEMPTED, _("interrupted"), False, False),
    Charge(S.FAILED, _("failed (never charged)"), False, False),
    Charge(S.DELETING, _("terminating"), False, False),
    Charge(S.TERMINATED, _("terminated"), False, False),
)


def charged_states(basis: str) -> list[str]:
    """The ledger states a billing basis charges: `allocated` or `running`."""
    return [str(row.state) for row in CHARGES if getattr(row, basis)]
