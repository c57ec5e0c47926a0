"""The statuses of orders and services, and the one table that says which state is charged."""

from dataclasses import dataclass

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class OrderStatus(models.TextChoices):
    """What became of a request."""

    DRAFT = "draft", _("Draft")
    PLACED = "placed", _("Waiting for approval")
    APPROVED = "approved", _("Approved")
    SCHEDULED = "scheduled", _("Scheduled")
    QUEUED = "queued", _("In queue")
    ACCEPTED = "accepted", _("Accepted")
    REFUSED = "refused", _("Refused")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Expired")
    CLOSED = "closed", _("Closed")


O = OrderStatus  # noqa: E741 - reads as a column heading below

ORDER = Machine("order", [
    # verb      from                                 to
    ("place",   O.DRAFT,                             O.PLACED),
    ("approve", O.PLACED,                            O.APPROVED),
    ("schedule", O.APPROVED,                         O.SCHEDULED),
    ("queue",   (O.APPROVED, O.SCHEDULED),           O.QUEUED),
    ("accept",  (O.APPROVED, O.SCHEDULED, O.QUEUED), O.ACCEPTED),
    ("refuse",  (O.PLACED, O.APPROVED, O.SCHEDULED, O.QUEUED), O.REFUSED),
    ("expire",  (O.PLACED, O.SCHEDULED, O.QUEUED),   O.EXPIRED),
    ("cancel",  (O.DRAFT, O.PLACED, O.APPROVED, O.SCHEDULED, O.QUEUED, O.ACCEPTED),
                                                     O.CANCELLED),
    ("close",   O.ACCEPTED,                          O.CLOSED),
])  # fmt: skip


class ReservationStatus(models.TextChoices):
    """Where an agreement on future capacity is; every open status expires with its term."""

    REQUESTED = "requested", _("Waiting for approval")
    BOOKED = "booked", _("Booked")
    ACTIVE = "active", _("Active")
    SUSPENDED = "suspended", _("Suspended")
    REFUSED = "refused", _("Refused")
    CANCELLED = "cancelled", _("Cancelled")
    EXPIRED = "expired", _("Expired")


V = ReservationStatus

RESERVATION = Machine("reservation", [
    # verb      from                                               to
    ("book",    V.REQUESTED,                                       V.BOOKED),
    ("refuse",  V.REQUESTED,                                       V.REFUSED),
    ("begin",   V.BOOKED,                                          V.ACTIVE),
    ("suspend", (V.BOOKED, V.ACTIVE),                              V.SUSPENDED),
    ("resume",  V.SUSPENDED,                                       V.BOOKED),
    ("cancel",  (V.REQUESTED, V.BOOKED),                           V.CANCELLED),
    ("expire",  (V.REQUESTED, V.BOOKED, V.ACTIVE, V.SUSPENDED),    V.EXPIRED),
])  # fmt: skip


# Charged for their term whether used or not; an expired one too, if its term had begun.
TAKES_OR_PAYS = (V.BOOKED, V.ACTIVE, V.SUSPENDED)


class ApprovalStatus(models.TextChoices):
    """What became of a question to the tenant's administrators."""

    WAITING = "waiting", _("Waiting")
    APPROVED = "approved", _("Approved")
    REFUSED = "refused", _("Refused")
    EXPIRED = "expired", _("Expired")
    WITHDRAWN = "withdrawn", _("Withdrawn")


P = ApprovalStatus

APPROVAL = Machine("approval", [
    # verb       from       to
    ("approve",  P.WAITING, P.APPROVED),
    ("refuse",   P.WAITING, P.REFUSED),
    ("expire",   P.WAITING, P.EXPIRED),
    ("withdraw", P.WAITING, P.WITHDRAWN),
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
