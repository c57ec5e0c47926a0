"""Tenants and their limits."""

from decimal import Decimal

from django.conf import settings
from rest_framework import serializers

from apps.api.serializers.base import Code, Currency, Filters, ShownModel, Strict
from apps.orders.models import TenantLimit
from apps.tenancy.models import Tenant
from apps.tenancy.states import TenantStatus


class TenantSerializer(ShownModel[Tenant]):
    """A customer and the terms its invoices are made under."""

    class Meta:
        model = Tenant
        fields = [
            "id", "slug", "name", "status", "currency", "billing_timezone", "vat_rate",
            "language", "legal_name", "registration_number", "billing_address", "billing_email",
            "created_at",
        ]  # fmt: skip


class NewTenant(Strict):
    """A tenant to make; its slug becomes its host name and never changes."""

    slug = serializers.CharField(max_length=30)
    name = serializers.CharField(max_length=200)
    owner_email = serializers.EmailField(max_length=254)
    owner_name = serializers.CharField(max_length=120)
    currency = Currency(required=False)
    billing_timezone = serializers.CharField(max_length=60, required=False)
    vat_rate = serializers.DecimalField(
        max_digits=6,
        decimal_places=4,
        min_value=Decimal(0),
        max_value=Decimal("0.9999"),
        required=False,
    )
    language = serializers.ChoiceField(settings.LANGUAGES, required=False)
    legal_name = serializers.CharField(max_length=200, required=False)
    registration_number = serializers.CharField(max_length=40, required=False)
    billing_address = serializers.CharField(max_length=400, required=False)
    billing_email = serializers.EmailField(required=False)


class TenantFilters(Filters):
    """Conditions on tenants."""

    status = serializers.ChoiceField(TenantStatus.choices, required=False)
    slug = Code(required=False)


class TenantLimitSerializer(ShownModel[TenantLimit]):
    """How much a tenant may have at once."""

    class Meta:
        model = TenantLimit
        fields = ["tenant", "max_gpus", "max_services"]


class NewLimits(Strict):
    """Limits to set."""

    max_gpus = serializers.IntegerField(min_value=0, max_value=100_000)
    max_services = serializers.IntegerField(min_value=0, max_value=100_000)
