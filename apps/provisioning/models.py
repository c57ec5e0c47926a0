"""Runs and their steps: work being done, who holds it, what came of it."""

from django.db import models
from django.db.models import Q

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.inventory.models import Node, Site
from apps.provisioning.states import RunStatus, StepStatus


class Run(realms.Public, models.Model):
    """A blueprint being executed for one service.

    A worker holds it by `lease_until`; every claim raises `fence`, and whoever writes names the
    fence it claimed.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    blueprint = models.CharField(max_length=40)
    version = models.PositiveSmallIntegerField()
    tenant = models.UUIDField()
    order = models.UUIDField()
    order_number = models.CharField(max_length=20)
    service = models.UUIDField()
    service_name = models.CharField(max_length=80)
    sku = models.CharField(max_length=60)
    offering = models.UUIDField()
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="runs")
    node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT, related_name="runs")
    status = models.CharField(max_length=12, choices=RunStatus.choices, default=RunStatus.FORWARD)
    outcome = models.CharField(
        max_length=12, default="", blank=True
    )  # why undone: failed, cancelled
    reason = models.CharField(max_length=500, default="", blank=True)  # for operators
    position = models.PositiveSmallIntegerField(default=0)  # the step now at work
    replacements = models.PositiveSmallIntegerField(default=0)
    wanted = models.JSONField(default=dict)  # what was agreed and must be proven; no secret
    inputs = models.JSONField(default=dict)  # outputs of steps, by step name; no secret
    next_try_at = models.DateTimeField(null=True, db_default=NeoNow())  # None: waits for a person
    lease_until = models.DateTimeField(null=True)
    fence = models.PositiveIntegerField(default=0)
    try_deadline = models.DateTimeField(null=True)  # of this node's try
    held_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=NeoNow())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["service"],
                condition=Q(status__in=["forward", "undoing", "held"]),
                name="one_open_run_per_service",
            )
        ]
        indexes = [
            models.Index(
                fields=["next_try_at"],
                name="run_due",
                condition=Q(status__in=["forward", "undoing"]),
            ),
            models.Index(fields=["-created_at", "-id"], name="run_newest"),
        ]

    def __str__(self) -> str:
        return f"{self.blueprint} {self.service_name}"

    @property
    def tail(self) -> str:
        """The last twelve hex digits: unique where the first of a UUIDv7 are a clock."""
        return self.id.hex[-12:]


class RunStep(realms.Public, models.Model):
    """One step of a run: what was intended, when, what came of it."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="steps")
    tenant = models.UUIDField()
    position = models.PositiveSmallIntegerField()
    name = models.CharField(max_length=40)
    status = models.CharField(max_length=10, choices=StepStatus.choices, default=StepStatus.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    intent_at = models.DateTimeField(null=True)  # stored before the external call
    started_at = models.DateTimeField(null=True)
    deadline = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    error_kind = models.CharField(max_length=20, default="", blank=True)
    error = models.CharField(max_length=1000, default="", blank=True)
    output = models.JSONField(default=dict)
    evidence = models.JSONField(default=list)  # [{item, wanted, seen, ok}]

    class Meta:
        ordering = ["position"]
        constraints = [models.UniqueConstraint(fields=["run", "position"], name="run_step_once")]

    def __str__(self) -> str:
        return self.name


class RunEvent(realms.Public, realms.InsertOnly, models.Model):
    """What happened in a run, in order: the page that answers when, why and who decided."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="events")
    tenant = models.UUIDField()
    at = models.DateTimeField(db_default=NeoNow())
    step = models.CharField(max_length=40, default="")
    kind = models.CharField(
        max_length=40
    )  # started, waited, done, failed, undone, replaced, held …
    detail = models.CharField(max_length=1000, default="")
    actor = models.CharField(max_length=200, default="")

    def __str__(self) -> str:
        return f"{self.step} {self.kind}"


class CallHome(realms.Public, models.Model):
    """The one-time invitation of a guest to report, and its report; only the token's
    hash is kept.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="call_homes")
    tenant = models.UUIDField()
    node = models.ForeignKey(Node, on_delete=models.PROTECT)
    token_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField(db_default=NeoNow())
    received_at = models.DateTimeField(null=True)
    remote_address = models.GenericIPAddressField(null=True)
    report = models.JSONField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"call home of {self.run_id}"


class FailurePolicy(realms.Public, models.Model):
    """What an operator decided about failures; the row without site and SKU is the default."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.CASCADE)
    sku = models.CharField(max_length=60, default="", blank=True)
    try_minutes = models.PositiveIntegerField(default=45)
    hold_hours = models.PositiveIntegerField(default=24)
    first_wait_seconds = models.PositiveIntegerField(default=5)
    longest_wait_seconds = models.PositiveIntegerField(default=300)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["site", "sku"], name="one_failure_policy", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.sku}"
