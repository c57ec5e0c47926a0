"""Runs and their steps: work being done, who holds it, what came of it."""

from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.inventory.models import Node, Site
from apps.provisioning.states import FindingKind, FindingStatus, RunStatus, StepStatus


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
    )  # why undone: failed, cancelled, replace
    owner = models.CharField(max_length=200, default="", blank=True)  # who took it over by hand
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
    stopped_at = models.DateTimeField(null=True)  # its deadlines stand still since then
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
            models.Index(
                fields=["site", "lease_until"],
                name="run_at_work",
                condition=Q(lease_until__isnull=False),
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
    skip_reason = models.CharField(max_length=500, default="", blank=True)

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


class Then(models.TextChoices):
    """What a failure policy may say."""

    REPLACE = "replace", _("Take another server")
    QUEUE = "queue", _("Wait in the queue")
    AS_ORDERED = "as_ordered", _("As the order chose")
    HOLD = "hold", _("Hold for a person")
    UNDO = "undo", _("Undo everything")


class FailurePolicy(realms.Public, models.Model):
    """What an operator decided about failures; the row without site and SKU is the default."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, null=True, blank=True, on_delete=models.CASCADE)
    sku = models.CharField(max_length=60, default="", blank=True)
    try_minutes = models.PositiveIntegerField(default=45)  # per node tried
    hold_hours = models.PositiveIntegerField(default=24)
    first_wait_seconds = models.PositiveIntegerField(default=5)
    longest_wait_seconds = models.PositiveIntegerField(default=300)
    after_last_try = models.CharField(max_length=10, choices=Then.choices, default=Then.UNDO)
    on_node_fault = models.CharField(max_length=10, choices=Then.choices, default=Then.REPLACE)
    on_no_capacity = models.CharField(max_length=10, choices=Then.choices, default=Then.AS_ORDERED)
    on_refused = models.CharField(max_length=10, choices=Then.choices, default=Then.HOLD)
    on_unknown = models.CharField(max_length=10, choices=Then.choices, default=Then.HOLD)
    max_replacements = models.PositiveSmallIntegerField(null=True)  # None: as the offering says
    recleanings = models.PositiveSmallIntegerField(default=2)  # when the site's conductor died
    on_host_fault = models.CharField(  # of a running service: another host, or a person decides
        max_length=10, choices=Then.choices, default=Then.HOLD
    )
    host_fault_minutes = models.PositiveIntegerField(default=10)  # some heal by themselves
    undo_minutes = models.PositiveIntegerField(default=45)  # then it is a leak
    leak_retry_minutes = models.PositiveIntegerField(default=15)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["site", "sku"], name="one_failure_policy", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.site_id} {self.sku}"


class Leak(realms.Public, models.Model):
    """Something a run made and could not undo: tried again until it is gone."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="leaks")
    tenant = models.UUIDField()
    service = models.UUIDField()
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="leaks")
    node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT, related_name="leaks")
    step = models.CharField(max_length=40)
    what = models.CharField(max_length=200)  # the thing with its id at the provider
    detail = models.CharField(max_length=1000, default="")
    owner = models.CharField(max_length=200, default="", blank=True)  # who looks after it
    price_per_hour = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    currency = models.CharField(max_length=3, default="", blank=True)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    made_with = models.JSONField(default=dict)  # the run's outputs when the thing was made
    took_node = models.BooleanField(default=False)  # the node is out of the pool for this alone
    since = models.DateTimeField(db_default=NeoNow())
    gone_at = models.DateTimeField(null=True)
    gone_how = models.CharField(max_length=400, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "step"], condition=Q(gone_at=None), name="one_open_leak_of_step"
            )
        ]

    def __str__(self) -> str:
        return self.what


class Override(realms.Public, models.Model):
    """A person claims what a step that cannot be skipped would prove; a second one confirms it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    run = models.ForeignKey(Run, on_delete=models.PROTECT, related_name="overrides")
    tenant = models.UUIDField()
    step = models.CharField(max_length=40)
    evidence = models.TextField()  # what was done and seen instead
    asked_by = models.CharField(max_length=200)
    asked_by_id = models.UUIDField()
    asked_at = models.DateTimeField(db_default=NeoNow())
    expires_at = models.DateTimeField()
    decided_by = models.CharField(max_length=200, default="", blank=True)
    decided_by_id = models.UUIDField(null=True)
    decided_at = models.DateTimeField(null=True)
    is_confirmed = models.BooleanField(default=False)
    reason = models.CharField(max_length=500, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["run", "step"], condition=Q(decided_at=None), name="one_open_override"
            ),
            models.CheckConstraint(
                name="override_by_two",
                condition=Q(decided_by_id=None) | ~Q(decided_by_id=F("asked_by_id")),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.step} of {self.run_id}"


class Finding(realms.Public, models.Model):
    """Belief and reality differ at a site: fixed by policy, or a work item for a person."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, on_delete=models.PROTECT, related_name="findings")
    kind = models.CharField(max_length=40, choices=FindingKind.choices)
    subject = models.CharField(max_length=120)  # what it is about: the provider's id
    node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT, related_name="findings")
    tenant = models.UUIDField(null=True)
    service = models.UUIDField(null=True)
    status = models.CharField(
        max_length=10, choices=FindingStatus.choices, default=FindingStatus.OPEN
    )
    believed = models.CharField(max_length=300, default="")
    seen = models.CharField(max_length=300, default="")
    looks = models.PositiveIntegerField(default=1)  # how often it was seen: one look may be a race
    fix = models.CharField(max_length=40, default="", blank=True)  # the one click
    detail = models.CharField(max_length=1000, default="", blank=True)
    fix_by = models.CharField(max_length=200, default="", blank=True)  # "": by policy
    fix_by_id = models.UUIDField(null=True)
    fix_began_at = models.DateTimeField(null=True)
    fix_tries = models.PositiveIntegerField(default=0)  # how often a fix was asked for
    acted_at = models.DateTimeField(null=True)  # the fix was carried out; a look must confirm it
    next_try_at = models.DateTimeField(null=True)  # of the fix under way
    lease_until = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField(db_default=NeoNow())
    last_seen_at = models.DateTimeField(db_default=NeoNow())
    closed_at = models.DateTimeField(null=True)
    closed_by = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["site", "kind", "subject"],
                condition=Q(closed_at=None),
                name="one_open_finding",
            )
        ]
        indexes = [
            models.Index(fields=["-last_seen_at"], name="finding_open", condition=Q(closed_at=None))
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class SiteLook(realms.Public, models.Model):
    """When a site's reality is compared with our belief next, and what the last look found."""

    site = models.OneToOneField(
        Site, primary_key=True, on_delete=models.CASCADE, related_name="look"
    )
    due_at = models.DateTimeField(db_default=NeoNow())
    lease_until = models.DateTimeField(null=True)
    looked_at = models.DateTimeField(null=True)
    seconds = models.FloatField(null=True)
    counts = models.JSONField(default=dict)  # nodes, claims, ports, volumes, opened, closed, fixed
    checked = models.JSONField(default=dict)  # node → change whose history was read already
    error = models.CharField(max_length=1000, default="", blank=True)

    def __str__(self) -> str:
        return f"look at {self.site_id}"


class FixPolicy(realms.Public, models.Model):
    """Whether a kind of finding is fixed without a person; the row without site is the default."""

    site = models.ForeignKey(Site, null=True, on_delete=models.CASCADE)
    kind = models.CharField(max_length=40, choices=FindingKind.choices)
    is_automatic = models.BooleanField(default=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["site", "kind"], name="one_fix_policy", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}"


class SiteCheck(realms.Public, models.Model):
    """A validation of a site: what was asked of each component, what came, how long it took."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    site = models.ForeignKey(Site, on_delete=models.CASCADE, related_name="checks")
    actor = models.CharField(max_length=200, default="", blank=True)
    started_at = models.DateTimeField(db_default=NeoNow())
    ended_at = models.DateTimeField(null=True)
    rows = models.JSONField(default=list)  # [{component, item, ok, detail, seconds}]
    node = models.ForeignKey(Node, null=True, on_delete=models.PROTECT)  # deployed for the trial
    stage = models.CharField(max_length=20, default="", blank=True)  # of the trial; "" when over
    stage_began_at = models.DateTimeField(null=True)
    next_try_at = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    is_good = models.BooleanField(null=True)

    class Meta:
        indexes = [models.Index(fields=["site", "-started_at"], name="site_check_newest")]

    def __str__(self) -> str:
        return f"check of {self.site_id}"
