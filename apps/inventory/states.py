"""The status of a node, and of a site."""

from django.db import models
from django.utils.translation import gettext_lazy as _

from apps.core.machine import Machine


class NodeStatus(models.TextChoices):
    """What we think of a node; Ironic's own provision state is kept beside it."""

    ENROLLED = "enrolled", _("Enrolled")
    AVAILABLE = "available", _("Available")
    ALLOCATED = "allocated", _("Allocated")
    CLEANING = "cleaning", _("Cleaning")
    QUARANTINED = "quarantined", _("Quarantined")
    MAINTENANCE = "maintenance", _("Maintenance")
    RETIRED = "retired", _("Retired")


S = NodeStatus

NODE = Machine("node", [
    # verb         from                                      to
    ("admit",      S.ENROLLED,                               S.AVAILABLE),
    ("allocate",   S.AVAILABLE,                              S.ALLOCATED),
    ("release",    S.ALLOCATED,                              S.CLEANING),
    ("recycle",    S.CLEANING,                               S.AVAILABLE),
    ("quarantine", (S.ENROLLED, S.AVAILABLE, S.ALLOCATED, S.CLEANING, S.MAINTENANCE),
                                                             S.QUARANTINED),
    ("service",    (S.ENROLLED, S.AVAILABLE, S.QUARANTINED), S.MAINTENANCE),
    ("restore",    (S.QUARANTINED, S.MAINTENANCE),           S.AVAILABLE),
    ("retire",     (S.ENROLLED, S.AVAILABLE, S.QUARANTINED, S.MAINTENANCE), S.RETIRED),
])  # fmt: skip


class SiteStatus(models.TextChoices):
    """Whether a site sells."""

    ACTIVE = "active", _("Active")
    PAUSED = "paused", _("Paused")


SITE = Machine("site", [
    # verb     from               to
    ("pause",  SiteStatus.ACTIVE, SiteStatus.PAUSED),
    ("resume", SiteStatus.PAUSED, SiteStatus.ACTIVE),
])  # fmt: skip
