"""Invoices, credit notes, their lines; use and its cost."""

from rest_framework import serializers

from apps.api.serializers.base import (
    Currency,
    Filters,
    Instant,
    MoneyField,
    Month,
    Shown,
    ShownModel,
    Strict,
)
from apps.api.serializers.catalog import PriceSerializer
from apps.invoicing.models import (
    Document,
    DocumentKind,
    DocumentLine,
    DocumentStatus,
    InvoiceProjection,
    InvoiceRun,
    InvoiceRunTenant,
)
from apps.invoicing.states import RunStatus


class DocumentSerializer(ShownModel[Document]):
    """An invoice or a credit note of one billing month."""

    subtotal = MoneyField("subtotal")
    tax = MoneyField("tax")
    total = MoneyField("total")
    corrects = serializers.UUIDField(source="corrects_id", allow_null=True)

    class Meta:
        model = Document
        fields = [
            "id", "kind", "status", "number", "period", "period_start", "period_end",
            "supply_end", "billing_timezone", "currency", "vat_rate", "subtotal", "tax", "total",
            "as_of", "corrects", "reason", "created_at", "issued_at", "due_on",
        ]  # fmt: skip


class DocumentLineSerializer(ShownModel[DocumentLine]):
    """One amount and all it follows from."""

    unit_price = MoneyField("unit_price", "document.currency", allow_null=True)
    amount = MoneyField("amount", "document.currency")
    corrects = serializers.UUIDField(source="corrects_id", allow_null=True)

    class Meta:
        model = DocumentLine
        fields = [
            "id", "position", "kind", "ref", "description", "service_id", "service_name",
            "version", "order_id", "order_number", "project_id", "project_name", "node_names",
            "sku", "quantity", "first_at", "last_at", "gpu_seconds", "gpu_hours", "price_id",
            "price_code", "price_kind", "unit_price", "amount", "contract_id", "terms", "corrects",
        ]  # fmt: skip


class DocumentFilters(Filters):
    """Conditions on invoices."""

    kind = serializers.ChoiceField(DocumentKind.choices, required=False)
    status = serializers.ChoiceField(DocumentStatus.choices, required=False)
    period = Month(required=False)


class RatedLineSerializer(Shown):
    """A line as it would be invoiced now."""

    service_id = serializers.UUIDField()
    service_name = serializers.CharField()
    version = serializers.IntegerField()
    order_id = serializers.UUIDField()
    order_number = serializers.CharField()
    project_id = serializers.UUIDField()
    project_name = serializers.CharField()
    sku = serializers.CharField()
    quantity = serializers.IntegerField()
    first_at = Instant()
    last_at = Instant()
    gpu_seconds = serializers.IntegerField()
    gpu_hours = serializers.CharField()
    price_code = serializers.CharField()
    price_kind = serializers.CharField()
    unit_price = serializers.CharField(help_text="In the currency of the whole.")
    amount = serializers.CharField(help_text="In the currency of the whole.")


class AgreedLineSerializer(Shown):
    """A discount, reservation or minimum as it would be invoiced now."""

    kind = serializers.CharField()
    description = serializers.CharField()
    amount = MoneyField("amount", None)


class CostSerializer(Shown):
    """What the running month would be invoiced with if it ended at `until`."""

    period = serializers.CharField()
    currency = serializers.CharField()
    since = Instant()
    until = Instant()
    lines = RatedLineSerializer(many=True)
    agreed_lines = AgreedLineSerializer(many=True)
    late_lines = RatedLineSerializer(many=True)
    subtotal = MoneyField("subtotal", None)
    tax = MoneyField("tax", None)
    total = MoneyField("total", None)


class UsedTime(Shown):
    """Charged time of one fact under one price."""

    start_at = Instant()
    end_at = Instant()
    seconds = serializers.IntegerField()
    gpus = serializers.IntegerField()
    state = serializers.CharField()
    fact_id = serializers.UUIDField()
    source = serializers.CharField()  # type: ignore[assignment]
    cause = serializers.CharField()
    run_id = serializers.UUIDField(allow_null=True)
    node = serializers.CharField()
    recorded_at = Instant()


class ExplanationSerializer(Shown):
    """All a line follows from; the GPU-seconds of `usage` add up to the line's."""

    line = DocumentLineSerializer()
    corrects = serializers.UUIDField(source="corrects.id", allow_null=True, default=None)
    invoice = serializers.UUIDField(source="document.id")
    number = serializers.CharField(source="document.number", allow_null=True)
    order = serializers.UUIDField(source="order.id", allow_null=True, default=None)
    order_number = serializers.CharField(source="order.number", allow_null=True, default=None)
    service = serializers.UUIDField(source="service.id", allow_null=True, default=None)
    service_name = serializers.CharField(source="service.name", allow_null=True, default=None)
    project = serializers.CharField(source="project.name", allow_null=True, default=None)
    reservation = serializers.UUIDField(source="reservation.id", allow_null=True, default=None)
    contract = serializers.CharField(allow_null=True, default=None)
    price = PriceSerializer(allow_null=True)
    usage = UsedTime(many=True)
    seconds = serializers.IntegerField()
    gpu_seconds = serializers.IntegerField()
    rules = serializers.ListField(child=serializers.CharField())
    arithmetic = serializers.CharField()


class ProjectedInvoice(ShownModel[InvoiceProjection]):
    """An invoice or a credit note of any tenant, as finance sees it."""

    id = serializers.UUIDField(source="document")
    subtotal = MoneyField("subtotal")
    tax = MoneyField("tax")
    total = MoneyField("total")

    class Meta:
        model = InvoiceProjection
        fields = [
            "id", "tenant", "kind", "status", "number", "period", "currency", "subtotal", "tax",
            "total", "issued_at", "due_on", "created_at",
        ]  # fmt: skip


class ProjectedInvoiceFilters(DocumentFilters):
    """Conditions on invoices of all tenants."""

    tenant = serializers.UUIDField(required=False)
    currency = Currency(required=False)


class ExportChoice(Strict):
    """Which issued documents a file is about; all of them without."""

    period = Month(required=False, default="")
    currency = Currency(required=False, default="")


class NewDraft(Strict):
    """A month of one tenant to rate; `final`: also a running month, if every service ended."""

    tenant = serializers.UUIDField()
    period = Month()
    final = serializers.BooleanField(default=False)


class NewInvoiceRun(Strict):
    """A month to close: drafts for every tenant of a currency."""

    period = Month()
    currency = Currency()


class InvoiceRunSerializer(ShownModel[InvoiceRun]):
    """The closing of a month in one currency."""

    class Meta:
        model = InvoiceRun
        fields = ["id", "period", "currency", "status", "started_by", "started_at", "ended_at"]


class InvoiceRunFilters(Filters):
    """Conditions on invoice runs."""

    period = Month(required=False)
    currency = Currency(required=False)
    status = serializers.ChoiceField(RunStatus.choices, required=False)


class RunWarning(Shown):
    """What a reviewer should look at."""

    code = serializers.CharField()
    figures = serializers.DictField(child=serializers.CharField())


class InvoiceRunTenantSerializer(ShownModel[InvoiceRunTenant]):
    """What became of one tenant's month in a run."""

    tenant_name = serializers.CharField()
    subtotal = MoneyField("subtotal", "run.currency", allow_null=True)
    total = MoneyField("total", "run.currency", allow_null=True)
    previous_total = MoneyField("previous_total", "run.currency", allow_null=True)
    warnings = RunWarning(many=True)

    class Meta:
        model = InvoiceRunTenant
        fields = [
            "tenant", "tenant_name", "status", "document", "number", "subtotal", "total",
            "previous_total", "warnings", "error_code", "error", "attempts", "changed_at",
        ]  # fmt: skip


class RunChoice(Strict):
    """Which tenants of a run; all of them without."""

    tenants = serializers.ListField(
        child=serializers.UUIDField(), required=False, allow_null=True, max_length=1000
    )


class RunTold(Shown):
    """How many tenants it concerns."""

    tenants = serializers.IntegerField()


class NewCredit(Strict):
    """Lines of an issued invoice to give back: all that is left of each, or an amount."""

    invoice = serializers.UUIDField()
    line_ids = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=500)
    amounts = serializers.DictField(
        child=serializers.CharField(max_length=40),
        required=False,
        help_text="By line id, before tax: plain digits in the currency's smallest unit.",
    )
    reason = serializers.CharField(max_length=300)
