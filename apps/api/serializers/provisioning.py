"""Runs, their steps and events, evidence."""

from typing import Any

from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, Shown, ShownModel, Strict
from apps.api.serializers.inventory import NeededReason
from apps.core.errors import NotFound
from apps.inventory.models import Site
from apps.provisioning.models import FailurePolicy, Leak, Override, Run, RunEvent, Then
from apps.provisioning.states import RunStatus, StepStatus
from apps.provisioning.words import DECISIONS, FIGURES


class EvidenceSerializer(Shown):
    """What was agreed beside what was seen; `ok` null: it cannot be checked at this site."""

    point = serializers.CharField(source="group", default="")
    item = serializers.CharField()
    wanted = serializers.JSONField()
    seen = serializers.JSONField()
    ok = serializers.BooleanField(allow_null=True)


class RunSerializer(ShownModel[Run]):
    """A blueprint being executed for one service."""

    site = serializers.CharField(source="site.code")
    node = serializers.UUIDField(source="node_id", allow_null=True)
    node_name = serializers.CharField(source="node.name", allow_null=True, default=None)
    status_reason = serializers.CharField(source="reason")
    offering = serializers.CharField(source="sku")

    class Meta:
        model = Run
        fields = [
            "id", "blueprint", "version", "tenant", "order", "order_number", "service",
            "service_name", "offering", "site", "node", "node_name", "status", "outcome",
            "status_reason", "position", "replacements", "next_try_at", "try_deadline",
            "held_at", "created_at", "ended_at",
        ]  # fmt: skip


class RunFilters(Filters):
    """Conditions on runs."""

    status = serializers.ChoiceField(RunStatus.choices, required=False)
    tenant = serializers.UUIDField(required=False)
    service = serializers.UUIDField(required=False)
    site = Code(source="site__code", required=False)


class RunStepSerializer(Shown):
    """One step of a run, with the evidence it gathered."""

    name = serializers.CharField()
    label = serializers.CharField()  # type: ignore[assignment]
    status = serializers.ChoiceField(StepStatus.choices)
    attempts = serializers.IntegerField()
    started_at = Instant(allow_null=True)
    ended_at = Instant(allow_null=True)
    error_kind = serializers.CharField()
    error = serializers.CharField()
    evidence = EvidenceSerializer(many=True)


class RunEventSerializer(ShownModel[RunEvent]):
    """Something that happened in a run."""

    class Meta:
        model = RunEvent
        fields = ["id", "at", "step", "kind", "detail", "actor"]


class Replacing(NeededReason):
    """Whose fault it is, and why another node is wanted."""

    blames_node = serializers.BooleanField(
        help_text="true: quarantined with a ticket; false: cleaned and sold again."
    )


class Vouching(Strict):
    """What was done and seen in place of the proof."""

    evidence = serializers.CharField(max_length=2000)


class OverrideSerializer(ShownModel[Override]):
    """What one person vouched for and a second one decided."""

    class Meta:
        model = Override
        fields = [
            "id", "run", "step", "evidence", "asked_by", "asked_at", "expires_at", "decided_by",
            "decided_at", "is_confirmed", "reason",
        ]  # fmt: skip


class LeakSerializer(ShownModel[Leak]):
    """Something a run made and could not undo."""

    site = serializers.CharField(source="site.code")
    node = serializers.UUIDField(source="node_id", allow_null=True)
    price_per_hour = serializers.CharField(allow_null=True)

    class Meta:
        model = Leak
        fields = [
            "id", "run", "tenant", "service", "site", "node", "step", "what", "detail", "owner",
            "price_per_hour", "currency", "attempts", "next_try_at", "since", "gone_at", "gone_how",
        ]  # fmt: skip


class LeakFilters(Filters):
    """Conditions on leaks."""

    is_gone = serializers.BooleanField(source="gone_at__isnull", required=False)
    run = serializers.UUIDField(required=False)
    site = Code(source="site__code", required=False)

    def to_internal_value(self, data: Any) -> Any:
        """Gone is an instant in the row."""
        read = super().to_internal_value(data)
        if "gone_at__isnull" in read:
            read["gone_at__isnull"] = not read["gone_at__isnull"]
        return read


POLICY_FIELDS = [*DECISIONS, *FIGURES]


class FailurePolicySerializer(ShownModel[FailurePolicy]):
    """What follows failures, by default or at a site and for an offering."""

    site = serializers.CharField(source="site.code", allow_null=True, default=None)
    offering = serializers.CharField(source="sku")

    class Meta:
        model = FailurePolicy
        fields = ["id", "site", "offering", *POLICY_FIELDS]


class EffectivePolicySerializer(Shown):
    """What applies, and the policy it comes from; null: what the product came with."""

    policy = FailurePolicySerializer()
    decided_by = FailurePolicySerializer(source="source", allow_null=True)


class PolicyPlace(Strict):
    """A site and an offering; leave out for all."""

    site = Code(required=False)
    offering = Code(required=False)

    def validate_site(self, code: str) -> Site:
        """The site of that code."""
        site = Site.objects.filter(code=code).first()
        if site is None:
            raise serializers.ValidationError(NotFound().detail, code="unknown_site")
        return site


class PolicySetting(PolicyPlace):
    """What is decided; what is left out stays as it is there now."""

    reason = serializers.CharField(max_length=300)
    on_node_fault = serializers.ChoiceField(Then.choices, required=False)
    on_no_capacity = serializers.ChoiceField(Then.choices, required=False)
    on_refused = serializers.ChoiceField(Then.choices, required=False)
    on_unknown = serializers.ChoiceField(Then.choices, required=False)
    after_last_try = serializers.ChoiceField(Then.choices, required=False)
    on_host_fault = serializers.ChoiceField(Then.choices, required=False)
    max_replacements = serializers.IntegerField(required=False, allow_null=True)
    try_minutes = serializers.IntegerField(required=False)
    first_wait_seconds = serializers.IntegerField(required=False)
    longest_wait_seconds = serializers.IntegerField(required=False)
    hold_hours = serializers.IntegerField(required=False)
    undo_minutes = serializers.IntegerField(required=False)
    leak_retry_minutes = serializers.IntegerField(required=False)
    recleanings = serializers.IntegerField(required=False)
    host_fault_minutes = serializers.IntegerField(required=False)
