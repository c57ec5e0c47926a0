"""Runs, their steps and events, evidence."""

from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, Shown, ShownModel
from apps.provisioning.models import Run, RunEvent
from apps.provisioning.states import RunStatus, StepStatus


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
