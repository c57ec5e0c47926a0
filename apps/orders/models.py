"""Quotes, orders, services, the facts of their states, quotas; and the console's projections of
them.
"""

from typing import Any, ClassVar

from django.db import models
from django.db.models import F, Func, Q

from apps.accounts.models import Project, User
from apps.catalog.models import BillingBasis, Plan
from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.orders.states import OrderStatus, ServiceState


class PriceRule(models.TextChoices):
    """How the price of an order is found."""

    IN_FORCE = "in_force", "in_force"
    FIXED = "fixed", "fixed"


class IfUnavailable(models.TextChoices):
    """What the customer chose for the case of no capacity."""

    FAIL = "fail", "fail"
    QUEUE = "queue", "queue"


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


class _Seconds(Func):
    template = "date_trunc('second', %(expressions)s)"
    output_field: Any = models.DateTimeField()


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
        indexes = [models.Index(fields=["service", "start_at"], name="fact_of_service")]
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
    order = models.UUIDField(unique=True)
    site = models.UUIDField()
    offering = models.UUIDField()
    resource_class = models.CharField(max_length=80)
    gpus = models.PositiveIntegerField()
    entered_at = models.DateTimeField(db_default=NeoNow())
    left_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [
            models.Index(
                fields=["site", "resource_class", "entered_at"],
                name="queue_waiting",
                condition=Q(left_at=None),
            )
        ]

    def __str__(self) -> str:
        return f"{self.order}"


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
