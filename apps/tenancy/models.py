"""Tenants and the hosts they answer on."""

from decimal import Decimal
from typing import ClassVar

from django.conf import settings
from django.core.validators import RegexValidator
from django.db import models
from django_tenants.models import DomainMixin, TenantMixin

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.tenancy.states import TenantStatus

SLUG = RegexValidator(r"^[a-z][a-z0-9-]{1,28}[a-z0-9]$")


class Tenant(realms.Public, TenantMixin):
    """A customer of the operator: a schema, a host, and the terms invoices are made under."""

    auto_create_schema = False
    tenant_column: ClassVar[str] = "id"  # row level security compares this column

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    slug = models.CharField(max_length=30, unique=True, validators=[SLUG])
    name = models.CharField(max_length=200)
    status = models.CharField(
        max_length=20, choices=TenantStatus.choices, default=TenantStatus.CREATING
    )
    schema_version = models.CharField(max_length=64, default="", blank=True)
    currency = models.CharField(max_length=3, default="KRW")
    billing_timezone = models.CharField(max_length=60, default="Asia/Seoul")
    vat_rate = models.DecimalField(max_digits=6, decimal_places=4, default=Decimal("0.1000"))
    language = models.CharField(max_length=8, default="ko", choices=settings.LANGUAGES)
    legal_name = models.CharField(max_length=200, default="", blank=True)
    registration_number = models.CharField(max_length=40, default="", blank=True)
    billing_address = models.CharField(max_length=400, default="", blank=True)
    billing_email = models.EmailField(default="", blank=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="tenant_vat_rate_is_a_share",
                condition=models.Q(vat_rate__gte=0, vat_rate__lt=1),
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def speaks_as(self) -> str:
        """What row level security hears: this tenant's UUID."""
        return str(self.id)

    @property
    def is_ready(self) -> bool:
        """The schema exists in the version this program was written for."""
        from apps.tenancy.upgrades import current_version

        return self.status != TenantStatus.CREATING and self.schema_version == current_version()


class Domain(realms.Public, DomainMixin):
    """A host name that leads to a tenant."""

    tenant_column: ClassVar[str] = "tenant_id"

    def __str__(self) -> str:
        return str(self.domain)
