"""What we sell: GPU models, images, offerings, what they cost when, and contracts."""

from typing import ClassVar

import pgtrigger
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import DateTimeRangeField, RangeOperators
from django.core.validators import MinValueValidator, RegexValidator
from django.db import models
from django.db.models import F, Func, Q
from django.utils.translation import gettext_lazy as _

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7

SPEAKER = "(SELECT current_setting('neo.tenant', true))"
CODE = RegexValidator(r"^[a-z0-9][a-z0-9.-]{0,58}[a-z0-9]$")


class ServiceModel(models.TextChoices):
    """What kind of thing an offering becomes."""

    BARE_METAL = "bare_metal", _("Bare metal server")


class BillingBasis(models.TextChoices):
    """Which time is charged (see the state table in apps.orders.states)."""

    ALLOCATED = "allocated", _("Allocated time")
    RUNNING = "running", _("Running time")


class Plan(models.TextChoices):
    """How it is bought."""

    ON_DEMAND = "on_demand", _("On demand")
    RESERVED = "reserved", _("Reserved")


class Unit(models.TextChoices):
    """What a price is for one of."""

    GPU_HOUR = "gpu_hour", _("GPU-hour")
    GB_MONTH = "gb_month", _("GB-month")
    IP_HOUR = "ip_hour", _("IP-hour")
    ONCE = "once", _("Once")
    MONTH = "month", _("Month")


class PriceKind(models.TextChoices):
    """List prices are for everybody; contract prices for one tenant, and beat list prices."""

    LIST = "list", _("List")
    CONTRACT = "contract", _("Contract")


class PriceRule(models.TextChoices):
    """How the price of an order is found; `fixed` holds to the end of the order's term."""

    IN_FORCE = "in_force", _("Price in force at each second")
    FIXED = "fixed", _("Fixed when the order is placed")


def ends_ahead(name: str) -> pgtrigger.Trigger:
    """What is agreed may end, or end sooner, but never in time that has passed: it is charged."""
    return pgtrigger.Trigger(
        name=name,
        operation=pgtrigger.Update,
        when=pgtrigger.Before,
        condition=pgtrigger.Condition("OLD.effective_to IS DISTINCT FROM NEW.effective_to"),
        func=(
            "IF least(OLD.effective_to, NEW.effective_to)"
            " < public.neo_now() - interval '1 minute' THEN"
            " RAISE EXCEPTION 'time that has passed keeps its terms'"
            " USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW;"
        ),
    )


class GPUModel(realms.Public, models.Model):
    """A GPU as its maker names it."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    code = models.CharField(max_length=60, unique=True, validators=[CODE])
    name = models.CharField(max_length=120)
    reported_name = models.CharField(max_length=120)  # what nvidia-smi calls it
    memory_mib = models.PositiveIntegerField()
    trait = models.CharField(max_length=120)  # the trait its nodes carry, CUSTOM_GPU_H200

    def __str__(self) -> str:
        return self.name


class Image(realms.Public, models.Model):
    """An operating system image a server can be deployed with."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    code = models.CharField(max_length=60, unique=True, validators=[CODE])
    name = models.CharField(max_length=120)
    source = models.CharField(max_length=400)
    checksum = models.CharField(max_length=128)  # SHA-256, hexadecimal
    login = models.CharField(max_length=32, default="ubuntu")
    is_retired = models.BooleanField(default=False)

    def __str__(self) -> str:
        return self.name


class Offering(realms.Public, models.Model):
    """A product: hardware wanted of a node, how its orders are treated. Retired, never deleted."""

    row_policy: ClassVar[str] = (
        "is_for_all OR EXISTS (SELECT FROM public.catalog_offeringaudience a"
        " WHERE a.offering_id = catalog_offering.id)"
    )

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    sku = models.CharField(max_length=60, unique=True, validators=[CODE])
    name = models.CharField(max_length=120)
    description = models.CharField(max_length=400, default="", blank=True)
    name_ko = models.CharField(max_length=120, default="", blank=True)
    description_ko = models.CharField(max_length=400, default="", blank=True)
    service_model = models.CharField(
        max_length=20, choices=ServiceModel.choices, default=ServiceModel.BARE_METAL
    )
    billing_basis = models.CharField(
        max_length=20, choices=BillingBasis.choices, default=BillingBasis.ALLOCATED
    )
    gpu_model = models.ForeignKey(GPUModel, on_delete=models.PROTECT, related_name="offerings")
    gpus = models.PositiveIntegerField(validators=[MinValueValidator(1)])
    cpus = models.PositiveIntegerField()
    memory_gib = models.PositiveIntegerField()
    disk_gb = models.PositiveIntegerField()
    network = models.CharField(max_length=120, default="", blank=True)
    resource_class = models.CharField(max_length=80)
    traits = models.JSONField(default=list)
    images = models.ManyToManyField(Image, through="OfferingImage", related_name="offerings")
    max_replacements = models.PositiveSmallIntegerField(default=2)
    readiness_seconds = models.PositiveIntegerField(default=1200)
    max_quantity = models.PositiveSmallIntegerField(default=8)
    is_for_all = models.BooleanField(default=True)
    retired_at = models.DateTimeField(null=True, blank=True)
    position = models.PositiveSmallIntegerField(default=100)
    created_at = models.DateTimeField(db_default=NeoNow())

    def __str__(self) -> str:
        return self.name


class OfferingImage(realms.Public, models.Model):
    """An image choice of an offering; the lowest position is the default."""

    offering = models.ForeignKey(Offering, on_delete=models.CASCADE)
    image = models.ForeignKey(Image, on_delete=models.PROTECT)
    position = models.PositiveSmallIntegerField(default=100)

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["offering", "image"], name="offering_image_once")
        ]

    def __str__(self) -> str:
        return f"{self.offering_id} {self.image_id}"


class OfferingAudience(realms.Public, models.Model):
    """A tenant that may see an offering which is not for all."""

    offering = models.ForeignKey(Offering, on_delete=models.CASCADE, related_name="audience")
    tenant = models.UUIDField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["offering", "tenant"], name="offering_audience_once")
        ]

    def __str__(self) -> str:
        return f"{self.offering_id} for {self.tenant}"


class PriceBook(realms.Public, models.Model):
    """Prices of one currency: the list, or one tenant's contract."""

    row_policy: ClassVar[str] = f"tenant IS NULL OR tenant::text = {SPEAKER}"

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    code = models.CharField(max_length=60, unique=True, validators=[CODE])
    name = models.CharField(max_length=120)
    currency = models.CharField(max_length=3)
    kind = models.CharField(max_length=10, choices=PriceKind.choices, default=PriceKind.LIST)
    tenant = models.UUIDField(null=True, blank=True)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="contract_book_has_a_tenant",
                condition=Q(kind="list", tenant=None) | Q(kind="contract", tenant__isnull=False),
            ),
            models.UniqueConstraint(
                fields=["currency"], condition=Q(kind="list"), name="one_list_per_currency"
            ),
            models.UniqueConstraint(
                fields=["tenant", "currency"],
                condition=Q(kind="contract"),
                name="one_contract_book_per_tenant_currency",
            ),
        ]

    def __str__(self) -> str:
        return self.name


class _Validity(Func):
    function = "TSTZRANGE"
    output_field = DateTimeRangeField()


class Price(realms.Public, models.Model):
    """What one unit of a SKU costs from an instant to another: [effective_from, effective_to).

    A version is never edited: a change is a new version, and the one before ends where it begins.
    """

    updatable_columns: ClassVar[list[str]] = ["effective_to"]
    row_policy: ClassVar[str] = (  # the book is under a policy itself
        "EXISTS (SELECT FROM public.catalog_pricebook b WHERE b.id = book_id)"
    )

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    book = models.ForeignKey(PriceBook, on_delete=models.PROTECT, related_name="prices")
    code = models.CharField(max_length=60)  # what invoices print: one code may cover two validities
    sku = models.CharField(max_length=60)
    unit = models.CharField(max_length=20, choices=Unit.choices, default=Unit.GPU_HOUR)
    amount = models.DecimalField(max_digits=18, decimal_places=6)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [models.Index(fields=["sku", "unit", "effective_from"], name="price_of_sku")]
        constraints = [
            models.CheckConstraint(name="price_not_negative", condition=Q(amount__gte=0)),
            models.CheckConstraint(
                name="price_ends_after_it_begins",
                condition=Q(effective_to=None) | Q(effective_to__gt=F("effective_from")),
            ),
            ExclusionConstraint(
                name="one_price_at_a_time",
                expressions=[
                    ("book", RangeOperators.EQUAL),
                    ("sku", RangeOperators.EQUAL),
                    ("unit", RangeOperators.EQUAL),
                    (_Validity("effective_from", "effective_to"), RangeOperators.OVERLAPS),
                ],
            ),
        ]
        triggers = [ends_ahead("price_ends_ahead")]

    def __str__(self) -> str:
        return f"{self.sku} {self.amount}"


class Contract(realms.Public, models.Model):
    """One version of what was agreed with a tenant, in force in [effective_from, effective_to).

    A version is never edited: a change is a new version with the same code, and the one before ends
    where it begins.
    """

    updatable_columns: ClassVar[list[str]] = ["effective_to"]

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.UUIDField()
    code = models.CharField(max_length=60, validators=[CODE])
    version = models.PositiveIntegerField(default=1)
    currency = models.CharField(max_length=3)
    effective_from = models.DateTimeField()
    effective_to = models.DateTimeField(null=True, blank=True)
    discount_percent = models.DecimalField(max_digits=7, decimal_places=4, default=0)
    minimum_monthly_charge = models.DecimalField(
        max_digits=20, decimal_places=4, null=True, blank=True
    )
    payment_days = models.PositiveSmallIntegerField(default=30)
    prepaid_credit = models.DecimalField(max_digits=20, decimal_places=4, default=0)
    price_rule = models.CharField(
        max_length=10, choices=PriceRule.choices, default=PriceRule.IN_FORCE
    )
    book = models.ForeignKey(
        PriceBook, null=True, blank=True, on_delete=models.PROTECT, related_name="contracts"
    )
    note = models.CharField(max_length=400, default="", blank=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["code", "version"], name="contract_version_once"),
            models.CheckConstraint(
                name="contract_ends_after_it_begins",
                condition=Q(effective_to=None) | Q(effective_to__gt=F("effective_from")),
            ),
            models.CheckConstraint(
                name="contract_discount_is_a_share",
                condition=Q(discount_percent__gte=0, discount_percent__lte=100),
            ),
            models.CheckConstraint(
                name="contract_amounts_not_negative",
                condition=Q(prepaid_credit__gte=0)
                & (Q(minimum_monthly_charge=None) | Q(minimum_monthly_charge__gte=0)),
            ),
            ExclusionConstraint(
                name="one_contract_at_a_time",
                expressions=[
                    ("tenant", RangeOperators.EQUAL),
                    ("currency", RangeOperators.EQUAL),
                    (_Validity("effective_from", "effective_to"), RangeOperators.OVERLAPS),
                ],
            ),
        ]
        triggers = [ends_ahead("contract_ends_ahead")]

    def __str__(self) -> str:
        return f"{self.code}/{self.version}"
