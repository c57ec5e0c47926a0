"""Images, offerings, prices."""

from rest_framework import serializers

from apps.api.serializers.base import (
    Code,
    Currency,
    Filters,
    Instant,
    MoneyField,
    Shown,
    ShownModel,
    Strict,
)
from apps.catalog.models import (
    Contract,
    GPUModel,
    Image,
    Offering,
    Price,
    PriceBook,
    PriceKind,
    PriceRule,
    Unit,
)


class ImageSerializer(ShownModel[Image]):
    """An operating system a server can be deployed with."""

    class Meta:
        model = Image
        fields = ["id", "code", "name", "login"]


class GPUModelSerializer(ShownModel[GPUModel]):
    """A GPU as its maker names it."""

    class Meta:
        model = GPUModel
        fields = ["code", "name", "memory_mib"]


class SiteAvailability(Shown):
    """Servers of an offering at one site: how many could be had now."""

    site = serializers.CharField(source="site_code")
    site_name = serializers.CharField()
    free = serializers.IntegerField()
    total = serializers.IntegerField()


class OfferingSerializer(ShownModel[Offering]):
    """A product: its hardware, its images, how it is charged."""

    gpu_model = GPUModelSerializer()
    images = ImageSerializer(many=True)

    class Meta:
        model = Offering
        fields = [
            "id", "sku", "name", "name_ko", "description", "description_ko", "service_model",
            "billing_basis", "gpu_model", "gpus", "cpus", "memory_gib", "disk_gb", "network",
            "max_quantity", "images",
        ]  # fmt: skip


class PricedOffering(OfferingSerializer):
    """An offering with what it costs this organisation now, and where it is free."""

    unit_price = MoneyField("price.amount", "price.book.currency", allow_null=True)
    price_unit = serializers.CharField(source="price.unit", allow_null=True, default=None)
    price_kind = serializers.CharField(source="price.book.kind", allow_null=True, default=None)
    availability = SiteAvailability(many=True)

    class Meta(OfferingSerializer.Meta):
        fields = [
            *OfferingSerializer.Meta.fields,
            "unit_price",
            "price_unit",
            "price_kind",
            "availability",
        ]


class PlatformOffering(OfferingSerializer):
    """An offering as the operator keeps it."""

    class Meta(OfferingSerializer.Meta):
        fields = [
            *OfferingSerializer.Meta.fields,
            "resource_class", "traits", "max_replacements",
            "readiness_seconds", "is_for_all", "retired_at", "position", "created_at",
        ]  # fmt: skip


class OfferingFilters(Filters):
    """Conditions on offerings."""

    sku = Code(required=False)
    is_on_sale = serializers.BooleanField(source="retired_at__isnull", required=False)


class PriceBookSerializer(ShownModel[PriceBook]):
    """Prices of one currency: the list, or one tenant's contract."""

    class Meta:
        model = PriceBook
        fields = ["id", "code", "name", "currency", "kind", "tenant"]


class NewPriceBook(Strict):
    """A price book; a contract names its tenant, a list has none."""

    code = serializers.CharField(max_length=60)
    name = serializers.CharField(max_length=120)
    currency = Currency()
    kind = serializers.ChoiceField(PriceKind.choices, default=PriceKind.LIST)
    tenant = serializers.UUIDField(required=False, allow_null=True)


class PriceBookFilters(Filters):
    """Conditions on price books."""

    currency = Currency(required=False)
    kind = serializers.ChoiceField(PriceKind.choices, required=False)
    tenant = serializers.UUIDField(required=False)


class PriceSerializer(ShownModel[Price]):
    """What one unit costs from an instant to another."""

    amount = MoneyField("amount", "book.currency")
    book = serializers.UUIDField(source="book_id")

    class Meta:
        model = Price
        fields = [
            "id", "book", "code", "sku", "unit", "amount", "effective_from", "effective_to",
            "created_at",
        ]  # fmt: skip


class PriceFilters(Filters):
    """Conditions on prices."""

    sku = Code(required=False)
    unit = serializers.ChoiceField(Unit.choices, required=False)


class NewPrice(Strict):
    """A new version of a price; the running one ends where it begins."""

    sku = serializers.CharField(max_length=60)
    unit = serializers.ChoiceField(Unit.choices, default=Unit.GPU_HOUR)
    amount = serializers.CharField(max_length=40, help_text="Plain digits, at most six decimals.")
    effective_from = Instant()
    code = serializers.CharField(max_length=60, required=False, allow_blank=True)


class ContractSerializer(ShownModel[Contract]):
    """One version of a contract; the newest has no end, or one still to come."""

    minimum_monthly_charge = MoneyField("minimum_monthly_charge", allow_null=True)
    prepaid_credit = MoneyField("prepaid_credit")
    book = serializers.UUIDField(source="book_id", allow_null=True)

    class Meta:
        model = Contract
        fields = [
            "id", "tenant", "code", "version", "currency", "effective_from", "effective_to",
            "discount_percent", "minimum_monthly_charge", "payment_days", "prepaid_credit",
            "price_rule", "book", "note", "created_at",
        ]  # fmt: skip


class ContractFilters(Filters):
    """Conditions on contracts."""

    tenant = serializers.UUIDField(required=False)
    code = Code(required=False)
    currency = Currency(required=False)


class ContractTerms(Strict):
    """What is agreed; in a change what is left out stays as it is."""

    discount_percent = serializers.CharField(max_length=20, required=False)
    minimum_monthly_charge = serializers.CharField(
        max_length=40, required=False, allow_null=True, help_text="Before tax; null: none."
    )
    payment_days = serializers.IntegerField(min_value=0, max_value=365, required=False)
    prepaid_credit = serializers.CharField(max_length=40, required=False)
    price_rule = serializers.ChoiceField(PriceRule.choices, required=False)
    note = serializers.CharField(max_length=400, required=False, allow_blank=True)


class NewContract(ContractTerms):
    """A contract of one tenant, in its currency."""

    tenant = serializers.UUIDField()
    code = serializers.RegexField(r"^[a-z0-9][a-z0-9.-]{0,58}[a-z0-9]$", max_length=60)
    effective_from = Instant()
    effective_to = Instant(required=False, allow_null=True)


class ContractChange(ContractTerms):
    """Terms from an instant on."""

    at = Instant()


class ContractEnd(Strict):
    """When the contract ends."""

    at = Instant()


class CatalogText(Strict):
    """A catalog as YAML; with `dry_run` nothing is changed and the differences are shown."""

    text = serializers.CharField(max_length=1_000_000, trim_whitespace=False)
    dry_run = serializers.BooleanField(default=False)


class CatalogExport(Shown):
    """The catalog as YAML, ready to be imported again."""

    text = serializers.CharField()
