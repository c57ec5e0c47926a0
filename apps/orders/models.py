"""Quotes, orders, services, the facts of their states, quotas; and the console's projections of
them.
"""

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Func, Q

from apps.accounts.models import Project, User
from apps.catalog.models import BillingBasis, Plan, PriceRule
from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.orders.states import ApprovalStatus, OrderStatus, ReservationStatus, ServiceState


class IfUnavailable(models.TextChoices):
    """What the customer chose for the case of no capacity."""

    FAIL = "fail", "fail"
    QUEUE = "queue", "queue"


class _Seconds(Func):
    template = "date_trunc('second', %(expressions)s)"
    output_field: Any = models.DateTimeField()


class TenantLimit(realms.Public, models.Model):
    """The platform's limits of a tenant; the row is the lock under which use is counted."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.UUIDField(unique=True)
    max_gpus = models.PositiveIntegerField(default=64)
    max_services = models.PositiveIntegerField(default=64)

    def __str__(self) -> str:
        return f"{self.max_gpus} GPUs"


class ProjectLimit(realms.Tenant, models.Model):
    """A tenant's own limit of a project; the row is the lock, after the tenant's."""

    project = models.OneToOneField(Project, on_delete=models.CASCADE, related_name="limit")
    max_gpus = models.PositiveIntegerField()

    def __str__(self) -> str:
        return f"{self.max_gpus} GPUs"


class Quote(realms.Tenant, models.Model):
    """Terms offered until an instant; confirming turns them into an order, once."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    offering_id = models.UUIDField()
    sku = models.CharField(max_length=60)
    offering_name = models.CharField(max_length=120)
    site_id = models.UUIDField()
    site_code = models.CharField(max_length=60)
    quantity = models.PositiveSmallIntegerField()
    gpus_each = models.PositiveIntegerField()
    currency = models.CharField(max_length=3)
    plan = models.CharField(max_length=20, choices=Plan.choices)
    billing_basis = models.CharField(max_length=20, choices=BillingBasis.choices)
    price_rule = models.CharField(max_length=10, choices=PriceRule.choices)
    price_id = models.UUIDField()
    unit_price = models.DecimalField(max_digits=18, decimal_places=6)
    price_kind = models.CharField(max_length=10)
    contract_id = models.UUIDField(null=True)
    vat_rate = models.DecimalField(max_digits=6, decimal_places=4)
    reservation_id = models.UUIDField(null=True)  # an order under a reservation
    starts_at = models.DateTimeField(null=True)
    ends_at = models.DateTimeField(null=True)
    accepts_recall = models.BooleanField(default=False)
    terms = models.JSONField(default=dict)  # what the customer was shown
    created_by = models.ForeignKey(User, on_delete=models.PROTECT)
    created_at = models.DateTimeField(db_default=NeoNow())
    valid_until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.quantity} × {self.sku}"


class Order(realms.Tenant, models.Model):
    """What was agreed: frozen when placed."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    serial = models.PositiveIntegerField(unique=True, editable=False)  # from order_number_seq
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="orders")
    placed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="orders")
    quote = models.OneToOneField(Quote, on_delete=models.PROTECT, related_name="order")
    status = models.CharField(max_length=20, choices=OrderStatus.choices, default=OrderStatus.DRAFT)
    status_reason = models.CharField(max_length=400, default="", blank=True)
    name = models.CharField(max_length=80)
    offering_id = models.UUIDField()
    sku = models.CharField(max_length=60)
    offering_name = models.CharField(max_length=120)
    site_id = models.UUIDField()
    site_code = models.CharField(max_length=60)
    quantity = models.PositiveSmallIntegerField()
    gpus_each = models.PositiveIntegerField()
    image_code = models.CharField(max_length=60)
    ssh_keys = models.JSONField(default=list)  # the public keys themselves, as agreed
    currency = models.CharField(max_length=3)
    plan = models.CharField(max_length=20, choices=Plan.choices)
    billing_basis = models.CharField(max_length=20, choices=BillingBasis.choices)
    price_rule = models.CharField(max_length=10, choices=PriceRule.choices)
    price_id = models.UUIDField()
    unit_price = models.DecimalField(max_digits=18, decimal_places=6)
    contract_id = models.UUIDField(null=True)
    reservation = models.ForeignKey(
        "Reservation", null=True, on_delete=models.PROTECT, related_name="orders"
    )
    starts_at = models.DateTimeField(null=True)  # asked for; None: as soon as possible
    ends_at = models.DateTimeField(null=True)  # agreed end; None: until terminated
    accepts_recall = models.BooleanField(default=False)  # may lose a server that is reserved later
    if_unavailable = models.CharField(max_length=10, choices=IfUnavailable.choices)
    placed_at = models.DateTimeField(null=True)
    decided_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["-created_at", "-id"], name="order_newest")]

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """What people call it: ORD-000017."""
        return f"ORD-{self.serial:06d}"

    @property
    def gpus(self) -> int:
        """All GPUs it asks for."""
        return self.quantity * self.gpus_each


class Reservation(realms.Tenant, models.Model):
    """Capacity held for a term, paid whether used or not, at one price to the end of the term."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    serial = models.PositiveIntegerField(unique=True, editable=False)
    quote = models.OneToOneField(
        Quote, null=True, on_delete=models.PROTECT, related_name="reservation"
    )
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="reservations")
    placed_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="reservations")
    status = models.CharField(
        max_length=20, choices=ReservationStatus.choices, default=ReservationStatus.REQUESTED
    )
    status_reason = models.CharField(max_length=400, default="", blank=True)
    name = models.CharField(max_length=80)
    offering_id = models.UUIDField()
    sku = models.CharField(max_length=60)
    offering_name = models.CharField(max_length=120)
    site_id = models.UUIDField()
    site_code = models.CharField(max_length=60)
    quantity = models.PositiveSmallIntegerField()
    gpus_each = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    currency = models.CharField(max_length=3)
    price_id = models.UUIDField()
    unit_price = models.DecimalField(max_digits=18, decimal_places=6)  # of one GPU-hour
    contract_id = models.UUIDField(null=True)
    begun_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)  # the end that counts: never the time of a late job
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["-created_at", "-id"], name="reservation_newest")]
        constraints = [
            models.CheckConstraint(
                name="reservation_ends_after_it_begins", condition=Q(ends_at__gt=F("starts_at"))
            ),
            models.CheckConstraint(
                name="reservation_in_whole_seconds",
                condition=Q(starts_at=_Seconds("starts_at")) & Q(ends_at=_Seconds("ends_at")),
            ),
        ]

    def __str__(self) -> str:
        return self.number

    @property
    def number(self) -> str:
        """What people call it: RSV-000003."""
        return f"RSV-{self.serial:06d}"

    @property
    def gpus(self) -> int:
        """All GPUs it holds."""
        return self.quantity * self.gpus_each


class OrderPolicy(realms.Tenant, models.Model):
    """What a tenant's administrators decided about orders of their own people; at most one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    approval_from_gpus = models.PositiveIntegerField(null=True)  # None: no approval is needed
    approval_hours = models.PositiveIntegerField(default=72)
    longest_days = models.PositiveIntegerField(null=True)  # of a service; None: no limit
    updated_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [models.CheckConstraint(name="one_order_policy", condition=Q(id=1))]

    def __str__(self) -> str:
        return f"approval from {self.approval_from_gpus} GPUs"


class Approval(realms.Tenant, models.Model):
    """A question to the tenant's administrators about an order or a reservation."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    order = models.OneToOneField(
        Order, null=True, on_delete=models.PROTECT, related_name="approval"
    )
    reservation = models.OneToOneField(
        Reservation, null=True, on_delete=models.PROTECT, related_name="approval"
    )
    status = models.CharField(
        max_length=12, choices=ApprovalStatus.choices, default=ApprovalStatus.WAITING
    )
    asked_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    asked_at = models.DateTimeField(db_default=NeoNow())
    rule = models.CharField(max_length=200)  # why it was asked: the rule and its figures
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(User, null=True, on_delete=models.PROTECT, related_name="+")
    decided_at = models.DateTimeField(null=True)
    reason = models.CharField(max_length=400, default="", blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="approval_of_one_thing",
                condition=Q(order__isnull=False, reservation=None)
                | Q(order=None, reservation__isnull=False),
            )
        ]

    def __str__(self) -> str:
        return f"{self.status}"


class Condition(models.TextChoices):
    """What the customer sees on top of the ledger state."""

    NONE = "", ""
    IN_QUEUE = "in_queue", "in_queue"
    WORKING = "working", "working"
    RETRYING = "retrying", "retrying"
    REPLACING = "replacing", "replacing"
    DELAYED = "delayed", "delayed"
    LOOKED_AT = "looked_at", "looked_at"
    DEGRADED = "degraded", "degraded"
    POWERING = "powering", "powering"
    REBOOTING = "rebooting", "rebooting"
    REINSTALLING = "reinstalling", "reinstalling"
    RESCUING = "rescuing", "rescuing"
    RESCUE = "rescue", "rescue"


class Service(realms.Tenant, models.Model):
    """What the customer has. Its id survives replacement and reinstall."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    order = models.ForeignKey(Order, on_delete=models.PROTECT, related_name="services")
    project = models.ForeignKey(Project, on_delete=models.PROTECT, related_name="services")
    ordinal = models.PositiveSmallIntegerField()  # which of the order's servers, from 1
    name = models.CharField(max_length=80)
    state = models.CharField(
        max_length=20, choices=ServiceState.choices, default=ServiceState.PROVISIONING
    )
    condition = models.CharField(
        max_length=20, choices=Condition.choices, default=Condition.NONE, blank=True
    )
    condition_detail = models.CharField(max_length=300, default="", blank=True)
    sku = models.CharField(max_length=60)
    gpus = models.PositiveIntegerField()
    site_id = models.UUIDField()
    site_code = models.CharField(max_length=60)
    node_id = models.UUIDField(null=True)
    node_name = models.CharField(max_length=120, default="", blank=True)
    address = models.CharField(max_length=60, default="", blank=True)
    login = models.CharField(max_length=32, default="", blank=True)
    host_keys = models.JSONField(default=list)
    run_id = models.UUIDField(null=True)  # the work under way or last done
    version = models.PositiveIntegerField(default=1)  # quantity version: a resize is a new one
    is_protected = models.BooleanField(default=False)
    tags = models.JSONField(default=dict)  # the customer's own names and values
    reservation_id = models.UUIDField(null=True)  # lives on a node of this reservation
    ends_at = models.DateTimeField(null=True)  # terminated by itself at this instant
    recalled_at = models.DateTimeField(null=True)  # when it has to leave a borrowed node
    degraded_at = models.DateTimeField(null=True)  # when the fault it now runs with was seen
    suspended_until = models.DateTimeField(null=True)  # a suspension is capped, then it ends
    ready_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["-created_at", "-id"], name="service_newest")]
        constraints = [
            models.UniqueConstraint(fields=["order", "ordinal"], name="service_of_order_once")
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def leaves_at(self) -> datetime | None:
        """When it is terminated by itself: its agreed end, or a recall of its node before."""
        return min((at for at in (self.ends_at, self.recalled_at) if at), default=None)


class ServiceVersion(realms.Tenant, realms.InsertOnly, models.Model):
    """The hardware of one quantity version of a service that was resized: charged by its own size.

    A service that was never resized has no row; a resized one has a row for each of its versions.
    """

    service = models.ForeignKey(Service, on_delete=models.PROTECT, related_name="versions")
    version = models.PositiveIntegerField()
    sku = models.CharField(max_length=60)
    gpus = models.PositiveIntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["service", "version"], name="service_version_once")
        ]

    def __str__(self) -> str:
        return f"{self.service_id} version {self.version}: {self.gpus} × {self.sku}"


class FactSource(models.TextChoices):
    """Where a fact came from."""

    LIVE = "live", "live"
    IMPORTED = "imported", "imported"
    CORRECTION = "correction", "correction"


class Fact(realms.Tenant, realms.InsertOnly, models.Model):
    """A service entered a state: the basis of every bill. Rows are only added.

    A live fact has no end: its interval ends at the next live fact. Imported and late records carry
    both ends. A correction names the fact it replaces; without a state it only takes that fact
    back.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    service = models.ForeignKey(Service, on_delete=models.PROTECT, related_name="facts")
    version = models.PositiveIntegerField(default=1)
    state = models.CharField(max_length=20, choices=ServiceState.choices, default="", blank=True)
    start_at = models.DateTimeField()
    end_at = models.DateTimeField(null=True)
    recorded_at = models.DateTimeField(db_default=NeoNow())
    source = models.CharField(max_length=12, choices=FactSource.choices, default=FactSource.LIVE)
    source_key = models.CharField(max_length=120, unique=True)
    cause = models.CharField(max_length=120)
    run_id = models.UUIDField(null=True)
    node_id = models.UUIDField(null=True)
    supersedes = models.OneToOneField(
        "self", null=True, on_delete=models.PROTECT, related_name="superseded_by"
    )

    class Meta:
        indexes = [
            models.Index(fields=["service", "start_at"], name="fact_of_service"),
            models.Index(fields=["recorded_at"], name="fact_recorded"),
            models.Index(fields=["start_at"], name="fact_started"),
            models.Index(
                fields=["service"],
                name="fact_out_of_line",
                condition=Q(end_at__isnull=False) | Q(supersedes__isnull=False),
            ),
        ]
        constraints = [
            models.CheckConstraint(
                name="fact_ends_after_it_begins",
                condition=Q(end_at=None) | Q(end_at__gte=F("start_at")),
            ),
            models.CheckConstraint(
                name="fact_in_whole_seconds",
                condition=Q(start_at=_Seconds("start_at"))
                & (Q(end_at=None) | Q(end_at=_Seconds("end_at"))),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.state} from {self.start_at}"


class QueueEntry(realms.Public, models.Model):
    """An order waiting for capacity: holds its place and its tenant's quota, no node."""

    id = models.BigAutoField(primary_key=True)
    tenant = models.UUIDField()
    order = models.UUIDField()
    site = models.UUIDField()
    offering = models.UUIDField()
    resource_class = models.CharField(max_length=80)
    plan = models.CharField(max_length=20, choices=Plan.choices, default=Plan.ON_DEMAND)
    reservation = models.UUIDField(null=True)  # waits for a node of it, beside the pool's queue
    gpus = models.PositiveIntegerField()
    quantity = models.PositiveSmallIntegerField(default=1)
    service = models.UUIDField(null=True)  # a service that lost its node; it goes before orders
    entered_at = models.DateTimeField(db_default=NeoNow())
    expires_at = models.DateTimeField(null=True)
    left_at = models.DateTimeField(null=True)
    is_served = models.BooleanField(default=False)  # left with what it waited for

    class Meta:
        indexes = [
            models.Index(
                fields=["site", "resource_class", "entered_at"],
                name="queue_waiting",
                condition=Q(left_at=None),
            ),
            models.Index(
                fields=["site", "resource_class", "-left_at"],
                name="queue_served",
                condition=Q(is_served=True),
            ),
        ]
        constraints = [
            models.UniqueConstraint(
                fields=["order", "service"], name="one_place_in_queue", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return f"{self.order}"


class Deadline(realms.Public, models.Model):
    """Something falls due for a tenant's thing at an instant; one dispatcher serves them all.

    The instant that counts is `due_at`, however late the dispatcher comes.
    """

    id = models.BigAutoField(primary_key=True)
    tenant = models.UUIDField()
    kind = models.CharField(max_length=40)  # order.start, service.end, reservation.begin …
    subject = models.UUIDField()
    due_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()  # due_at at first; later after a failure
    last_error = models.CharField(max_length=400, default="", blank=True)
    done_at = models.DateTimeField(null=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["kind", "subject"], condition=Q(done_at=None), name="one_open_deadline"
            )
        ]
        indexes = [
            models.Index(fields=["next_try_at"], name="deadline_due", condition=Q(done_at=None))
        ]

    def __str__(self) -> str:
        return f"{self.kind} at {self.due_at}"


class ReservationProjection(realms.Public, models.Model):
    """What the console's lists show of reservations; written in the transaction of the change."""

    reservation = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    number = models.CharField(max_length=20)
    name = models.CharField(max_length=80)
    sku = models.CharField(max_length=60)
    site_code = models.CharField(max_length=60)
    quantity = models.PositiveSmallIntegerField()
    gpus = models.PositiveIntegerField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    status = models.CharField(max_length=20, choices=ReservationStatus.choices)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(db_default=NeoNow())

    def __str__(self) -> str:
        return self.number


class OrderProjection(realms.Public, models.Model):
    """What the console's lists show of orders; written in the transaction of the change."""

    order = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    number = models.CharField(max_length=20)
    name = models.CharField(max_length=80)
    sku = models.CharField(max_length=60)
    site_code = models.CharField(max_length=60)
    quantity = models.PositiveSmallIntegerField()
    gpus = models.PositiveIntegerField()
    status = models.CharField(max_length=20, choices=OrderStatus.choices)
    status_reason = models.CharField(max_length=400, default="", blank=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["-created_at", "-order"], name="order_projection_new")]

    def __str__(self) -> str:
        return self.number


class ServiceProjection(realms.Public, models.Model):
    """What the console's lists show of services; written in the transaction of the change."""

    tenant_column: ClassVar[str] = "tenant"

    service = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    order = models.UUIDField()
    number = models.CharField(max_length=20)  # the order's number
    name = models.CharField(max_length=80)
    sku = models.CharField(max_length=60)
    site_code = models.CharField(max_length=60)
    node_name = models.CharField(max_length=120, default="", blank=True)
    gpus = models.PositiveIntegerField()
    state = models.CharField(max_length=20, choices=ServiceState.choices)
    condition = models.CharField(max_length=20, default="", blank=True)
    run = models.UUIDField(null=True)
    ready_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    changed_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["-created_at", "-service"], name="service_projection_new")]

    def __str__(self) -> str:
        return self.name
