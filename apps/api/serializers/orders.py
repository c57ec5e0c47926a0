"""Quotes, orders, services, the ledger of their states."""

from datetime import timedelta
from typing import Any

from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, MoneyField, Shown, ShownModel, Strict
from apps.api.serializers.people import ProjectRef
from apps.api.serializers.provisioning import EvidenceSerializer
from apps.orders import causes
from apps.orders.errors import WrongPatience
from apps.orders.models import (
    Approval,
    Fact,
    IfUnavailable,
    Order,
    OrderPolicy,
    OrderProjection,
    Quote,
    Service,
    ServiceProjection,
)
from apps.orders.services.choices import LONGEST_HOURS
from apps.orders.states import ApprovalStatus, OrderStatus, ServiceState
from apps.provisioning.standing import WORDS

UNKNOWN = "unknown"


class NewQuote(Strict):
    """What somebody would like to have."""

    offering = serializers.CharField(source="offering_sku", max_length=60, help_text="Its SKU.")
    site = serializers.CharField(source="site_code", max_length=60, help_text="Its code.")
    quantity = serializers.IntegerField(min_value=1, max_value=2**31 - 1)
    currency = serializers.CharField(max_length=3, required=False, allow_null=True)
    starts_at = Instant(required=False, allow_null=True, help_text="Null: as soon as possible.")
    ends_at = Instant(required=False, allow_null=True, help_text="Null: until terminated.")
    accepts_recall = serializers.BooleanField(
        required=False,
        help_text="A server may be one that is reserved for later; it ends by itself before.",
    )
    reservation = serializers.UUIDField(
        source="reservation_id",
        required=False,
        allow_null=True,
        help_text="Take the servers of this reservation.",
    )


class QuoteSerializer(ShownModel[Quote]):
    """Terms offered until an instant; an order turns them into an agreement."""

    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")
    unit_price = MoneyField("unit_price")
    reservation = serializers.UUIDField(source="reservation_id", allow_null=True)
    terms = serializers.DictField()

    class Meta:
        model = Quote
        fields = [
            "id", "offering", "offering_name", "site", "quantity", "gpus_each", "plan",
            "billing_basis", "price_rule", "price_kind", "unit_price", "vat_rate", "starts_at",
            "ends_at", "accepts_recall", "reservation", "terms", "created_at", "valid_until",
        ]  # fmt: skip


class NewOrder(Strict):
    """Confirms a quote."""

    quote = serializers.UUIDField(source="quote_id")
    project = serializers.UUIDField(source="project_id")
    name = serializers.CharField(max_length=80)
    image = serializers.CharField(
        source="image_code", max_length=60, required=False, allow_blank=True, default=""
    )
    ssh_keys = serializers.ListField(
        child=serializers.UUIDField(), source="ssh_key_ids", max_length=50, required=False
    )
    ssh_public_keys = serializers.ListField(
        child=serializers.CharField(max_length=8000), max_length=50, required=False
    )
    if_unavailable = serializers.ChoiceField(IfUnavailable.choices, default=IfUnavailable.FAIL)
    queue_hours = serializers.IntegerField(
        required=False, allow_null=True, help_text="How long it waits at most; 168 unless said."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Hours as the length of time they are."""
        hours = attrs.pop("queue_hours", None)
        try:
            return attrs if hours is None else attrs | {"patience": timedelta(hours=hours)}
        except OverflowError:
            raise WrongPatience(most=LONGEST_HOURS, asked=hours, field="queue_hours") from None


class ProgressSerializer(Shown):
    """Where the work under way is: step k of n."""

    step = serializers.IntegerField()
    of = serializers.IntegerField()
    label = serializers.CharField()  # type: ignore[assignment]
    status = serializers.CharField()


class StandingSerializer(Shown):
    """The one honest status people see, finer than `status`: a code that stays, and words."""

    code = serializers.ChoiceField([(code, code) for code in WORDS])
    label = serializers.CharField()  # type: ignore[assignment]
    detail = serializers.CharField()


class OrderSerializer(ShownModel[Order]):
    """What was agreed."""

    number = serializers.CharField()
    project = ProjectRef()
    placed_by = serializers.CharField(source="placed_by.name")
    quote = serializers.UUIDField(source="quote_id")
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")
    image = serializers.CharField(source="image_code")
    gpus = serializers.IntegerField()
    unit_price = MoneyField("unit_price")
    reservation = serializers.UUIDField(source="reservation_id", allow_null=True)

    class Meta:
        model = Order
        fields = [
            "id", "number", "name", "status", "status_reason", "project", "placed_by", "quote",
            "offering", "offering_name", "site", "quantity", "gpus_each", "gpus", "image",
            "plan", "billing_basis", "price_rule", "unit_price", "if_unavailable", "starts_at",
            "ends_at", "accepts_recall", "reservation", "placed_at", "decided_at", "created_at",
        ]  # fmt: skip


class ServiceSerializer(ShownModel[Service]):
    """What the customer has; charged by its `status`, `condition` says what goes on."""

    order = serializers.UUIDField(source="order_id")
    order_number = serializers.CharField(source="order.number")
    project = ProjectRef()
    status = serializers.ChoiceField(ServiceState.choices, source="state")
    status_reason = serializers.CharField(source="condition_detail")
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")
    run = serializers.UUIDField(source="run_id", allow_null=True)

    reservation = serializers.UUIDField(source="reservation_id", allow_null=True)

    class Meta:
        model = Service
        fields = [
            "id", "name", "order", "order_number", "project", "offering", "gpus", "site",
            "status", "condition", "status_reason", "run", "is_protected", "tags", "ends_at",
            "recalled_at", "reservation",
            "suspended_until", "ready_at", "ended_at", "created_at",
        ]  # fmt: skip


class ServiceInWork(ServiceSerializer):
    """A service with the work under way; `progress` is null when there is none."""

    standing = StandingSerializer()
    progress = ProgressSerializer(allow_null=True)
    expected_at = serializers.CharField(
        allow_null=True,
        help_text="An instant; `unknown` until enough such work was seen; null without work.",
    )

    class Meta(ServiceSerializer.Meta):
        fields = [*ServiceSerializer.Meta.fields, "standing", "progress", "expected_at"]


class OrderProgress(Shown):
    """How many of the order's servers are ready."""

    ready = serializers.IntegerField()
    of = serializers.IntegerField()
    queue_place = serializers.IntegerField(allow_null=True)
    queue_expected_at = serializers.CharField(
        allow_null=True, help_text="When its turn is expected: an instant, or `unknown`."
    )
    queue_expires_at = Instant(allow_null=True)


class ApprovalSerializer(ShownModel[Approval]):
    """A question to those who may approve, and its answer."""

    order = serializers.UUIDField(source="order_id", allow_null=True)
    reservation = serializers.UUIDField(source="reservation_id", allow_null=True)
    rule = serializers.SerializerMethodField()
    number = serializers.SerializerMethodField(help_text="Of the order or the reservation.")
    asked_by = serializers.CharField(source="asked_by.name")
    decided_by = serializers.CharField(source="decided_by.name", allow_null=True, default=None)

    class Meta:
        model = Approval
        fields = [
            "id", "order", "reservation", "number", "status", "rule", "asked_by", "asked_at",
            "expires_at", "decided_by", "decided_at", "reason",
        ]  # fmt: skip

    def get_rule(self, approval: Approval) -> str:
        """Why it was asked, in the reader's language."""
        return causes.rule_in_words(approval.rule)

    def get_number(self, approval: Approval) -> str:
        """What people call it."""
        return str(approval.order or approval.reservation)


class OrderInWork(OrderSerializer):
    """An order with its servers and the work under way."""

    standing = StandingSerializer()
    approval = ApprovalSerializer(source="question", allow_null=True)
    services = ServiceInWork(source="servers", many=True)
    progress = OrderProgress()
    expected_at = serializers.CharField(
        allow_null=True,
        help_text="When the last server is expected: an instant, `unknown`, or null when none is.",
    )

    class Meta(OrderSerializer.Meta):
        fields = [
            *OrderSerializer.Meta.fields, "standing", "approval", "services", "progress",
            "expected_at",
        ]  # fmt: skip


class OrderFilters(Filters):
    """Conditions on orders."""

    status = serializers.ChoiceField(OrderStatus.choices, required=False)
    project = serializers.UUIDField(source="project_id", required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)
    created_after = Instant(source="created_at__gte", required=False)
    created_before = Instant(source="created_at__lt", required=False)


class ServiceFilters(Filters):
    """Conditions on services."""

    status = serializers.ChoiceField(ServiceState.choices, source="state", required=False)
    order = serializers.UUIDField(source="order_id", required=False)
    project = serializers.UUIDField(source="project_id", required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)


class Reason(Strict):
    """Why; it stays in the audit trail."""

    reason = serializers.CharField(max_length=300, required=False, allow_blank=True, default="")


class ApprovalFilters(Filters):
    """Conditions on questions."""

    status = serializers.ChoiceField(ApprovalStatus.choices, required=False)


class Why(Strict):
    """The reason, which others read later."""

    reason = serializers.CharField(min_length=3, max_length=300)


class Schedule(Strict):
    """From when to when an order runs that has not begun."""

    starts_at = Instant(allow_null=True, help_text="Null: begin at once.")
    ends_at = Instant(allow_null=True, help_text="Null: until terminated.")


class Extension(Reason):
    """Until when a service runs."""

    ends_at = Instant(allow_null=True, help_text="Earlier or later; null: until terminated.")


class OrderPolicySerializer(ShownModel[OrderPolicy]):
    """What the organisation's administrators decided about orders."""

    class Meta:
        model = OrderPolicy
        fields = ["approval_from_gpus", "approval_hours", "longest_days", "updated_at"]


class OrderPolicyChange(Strict):
    """All of the order policy."""

    approval_from_gpus = serializers.IntegerField(
        min_value=1, allow_null=True, help_text="Null: nobody's orders need approval."
    )
    approval_hours = serializers.IntegerField(
        min_value=1, help_text="How long a question waits before it expires."
    )
    longest_days = serializers.IntegerField(
        min_value=1, allow_null=True, help_text="Of a service; null: as long as it likes."
    )


class Termination(Reason):
    """Ends a service; `confirm_name` guards against ending another one."""

    confirm_name = serializers.CharField(max_length=80)


class Protection(Strict):
    """Termination protection."""

    is_protected = serializers.BooleanField()


class AccessSerializer(Shown):
    """How to reach a service: check the host key before trusting it. Empty until it is ready."""

    address = serializers.CharField()
    login = serializers.CharField()
    ssh_command = serializers.CharField()
    host_keys = serializers.ListField(child=serializers.CharField())


class StateSerializer(ShownModel[Fact]):
    """A recorded state of a service; a live one lasts until the next."""

    class Meta:
        model = Fact
        fields = [
            "id", "version", "state", "start_at", "end_at", "recorded_at", "source", "cause",
            "supersedes",
        ]  # fmt: skip


class Span(Strict):
    """A stretch of time, [since, until)."""

    since = Instant()
    until = Instant()


class IntervalSerializer(Shown):
    """Charged time of a service; `goes_on` when it lasts beyond the time asked for."""

    fact_id = serializers.UUIDField()
    service_id = serializers.UUIDField()
    version = serializers.IntegerField()
    state = serializers.CharField()
    start_at = Instant()
    end_at = Instant()
    seconds = serializers.IntegerField()
    goes_on = serializers.BooleanField()
    source = serializers.CharField()  # type: ignore[assignment]
    cause = serializers.CharField()
    recorded_at = Instant()


class HealthSerializer(Shown):
    """What goes on in a service, and what its server last proved of itself."""

    status = serializers.ChoiceField(ServiceState.choices)
    condition = serializers.CharField()
    status_reason = serializers.CharField()
    ready_at = Instant(allow_null=True)
    evidence = EvidenceSerializer(many=True)


class ProjectedOrder(ShownModel[OrderProjection]):
    """An order of any tenant, as operators see it."""

    id = serializers.UUIDField(source="order")
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")

    class Meta:
        model = OrderProjection
        fields = [
            "id", "tenant", "number", "name", "offering", "site", "quantity", "gpus", "status",
            "status_reason", "created_at", "changed_at",
        ]  # fmt: skip


class ProjectedService(ShownModel[ServiceProjection]):
    """A service of any tenant, as operators see it."""

    id = serializers.UUIDField(source="service")
    order_number = serializers.CharField(source="number")
    status = serializers.ChoiceField(ServiceState.choices, source="state")
    offering = serializers.CharField(source="sku")
    site = serializers.CharField(source="site_code")

    class Meta:
        model = ServiceProjection
        fields = [
            "id", "tenant", "order", "order_number", "name", "offering", "site", "node_name",
            "gpus", "status", "condition", "run", "ready_at", "ended_at", "created_at",
            "changed_at",
        ]  # fmt: skip


class ProjectedOrderFilters(Filters):
    """Conditions on orders of all tenants."""

    tenant = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(OrderStatus.choices, required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)


class ProjectedServiceFilters(Filters):
    """Conditions on services of all tenants."""

    tenant = serializers.UUIDField(required=False)
    status = serializers.ChoiceField(ServiceState.choices, source="state", required=False)
    offering = Code(source="sku", required=False)
    site = Code(source="site_code", required=False)
