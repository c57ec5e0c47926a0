"""Reservations: terms of capacity, quoted, booked and lived on."""

from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, MoneyField, ShownModel, Strict
from apps.api.serializers.people import ProjectRef
from apps.orders.models import Reservation, ReservationProjection
from apps.orders.states import ReservationStatus


class NewReservationQuote(Strict):
    """A term somebody would like to reserve."""

    offering = serializers.CharField(source="offering_sku", max_length=60, help_text="Its SKU.")
    site = serializers.CharField(source="site_code", max_length=60, help_text="Its code.")
    quantity = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    starts_at = Instant(required=False, allow_null=True, default=None, help_text="Null: now.")
    ends_at = Instant()
    currency = serializers.CharField(max_length=3, required=False, allow_null=True)


class NewReservation(Strict):
    """Confirms the quote of a term: it is charged whether it is used or not."""

    quote = serializers.UUIDField(source="quote_id")
    project = serializers.UUIDField(source="project_id")
    name = serializers.CharField(max_length=80)


class ReservationSerializer(ShownModel[Reservation]):
    """Capacity held for a term; servers are ordered under it."""

    number = serializers.CharField()
    project = ProjectRef()
    placed_by = serializers.CharField(source="placed_by.name")
    quote = serializers.UUIDField(source="quote_id", allow_null=True)
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")
    gpus = serializers.IntegerField()
    unit_price = MoneyField("unit_price")

    class Meta:
        model = Reservation
        fields = [
            "id", "number", "name", "status", "status_reason", "project", "placed_by", "quote",
            "offering", "offering_name", "site", "quantity", "gpus_each", "gpus", "unit_price",
            "starts_at", "ends_at", "begun_at", "ended_at", "created_at",
        ]  # fmt: skip


class ReservationFilters(Filters):
    """Conditions on reservations."""

    status = serializers.ChoiceField(ReservationStatus.choices, required=False)
    project = serializers.UUIDField(source="project_id", required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)


class ProjectedReservation(ShownModel[ReservationProjection]):
    """A reservation of any tenant, as operators see it."""

    id = serializers.UUIDField(source="reservation")
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")

    class Meta:
        model = ReservationProjection
        fields = [
            "id", "tenant", "number", "name", "offering", "site", "quantity", "gpus", "starts_at",
            "ends_at", "status", "created_at", "changed_at",
        ]  # fmt: skip


class ProjectedReservationFilters(Filters):
    """Conditions on reservations of all tenants."""

    tenant = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(ReservationStatus.choices, required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)
