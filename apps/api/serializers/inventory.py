"""Sites, nodes, GPUs, allocations, tickets."""

from datetime import datetime
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, Shown, ShownModel, Strict
from apps.inventory.models import GPU, NIC, Allocation, Node, NodeEvent, Site, Ticket
from apps.inventory.states import NodeStatus, SiteStatus


class SiteSerializer(ShownModel[Site]):
    """A place with servers; its password is never shown."""

    class Meta:
        model = Site
        fields = [
            "id", "code", "name", "name_ko", "timezone", "driver", "endpoint", "username",
            "call_home_url", "is_simulated", "is_routable", "console_url", "turn_around_minutes",
            "status", "status_reason", "cleans_automatically",
            "concurrency", "failing_since", "last_error", "last_seen_at", "created_at",
        ]  # fmt: skip


class SiteFilters(Filters):
    """Conditions on sites."""

    status = serializers.ChoiceField(SiteStatus.choices, required=False)


class NeededReason(Strict):
    """Why; other operators and auditors read it."""

    reason = serializers.CharField(max_length=300)


class DryRun(Strict):
    """With `dry_run` nothing is changed, and what would change is shown."""

    dry_run = serializers.BooleanField(default=False)


class NICSerializer(ShownModel[NIC]):
    """A network port."""

    class Meta:
        model = NIC
        fields = ["mac", "name", "switch", "switch_port"]


class NodeSerializer(ShownModel[Node]):
    """A server: our belief (`status`) and what the infrastructure last said (`seen_*`)."""

    site = serializers.CharField(source="site.code")
    gpu_model = serializers.CharField(source="gpu_model.code", allow_null=True, default=None)

    class Meta:
        model = Node
        fields = [
            "id", "site", "infra_id", "name", "status", "status_reason", "is_cordoned",
            "resource_class",
            "traits", "gpu_model", "gpu_count", "cpus", "memory_mib", "disk_gb", "rack", "unit",
            "serial", "bmc_address", "seen_provision_state", "seen_target_state",
            "seen_power_state", "seen_maintenance", "seen_fault", "seen_last_error",
            "seen_changed_at", "seen_at", "cleaned_at", "created_at",
        ]  # fmt: skip


class NodeDetail(NodeSerializer):
    """A server with its ports and the proof of its last cleaning."""

    nics = NICSerializer(many=True)
    clean_proof = serializers.DictField(allow_null=True)

    class Meta(NodeSerializer.Meta):
        fields = [*NodeSerializer.Meta.fields, "nics", "clean_proof"]


class NodeFilters(Filters):
    """Conditions on nodes."""

    site = Code(source="site__code", required=False)
    status = serializers.ChoiceField(NodeStatus.choices, required=False)
    resource_class = serializers.CharField(max_length=80, required=False)
    name = serializers.CharField(max_length=120, required=False)


class NodeEventSerializer(ShownModel[NodeEvent]):
    """Something that happened to a node."""

    class Meta:
        model = NodeEvent
        fields = ["id", "at", "verb", "status", "reason", "actor"]


class GPUSerializer(ShownModel[GPU]):
    """A GPU in its slot."""

    node = serializers.UUIDField(source="node_id")
    node_name = serializers.CharField(source="node.name")
    model = serializers.CharField(source="model.code")

    class Meta:
        model = GPU
        fields = ["id", "node", "node_name", "position", "model", "uuid", "serial", "memory_mib"]


class GPUFilters(Filters):
    """Conditions on GPUs."""

    node = serializers.UUIDField(source="node_id", required=False)
    model = Code(source="model__code", required=False)
    site = Code(source="node__site__code", required=False)


class AllocationSerializer(ShownModel[Allocation]):
    """A tenant holds a node from an instant until it gives it back."""

    node = serializers.UUIDField(source="node_id")
    node_name = serializers.CharField(source="node.name")
    start_at = serializers.SerializerMethodField()
    end_at = serializers.SerializerMethodField()

    class Meta:
        model = Allocation
        fields = [
            "id", "node", "node_name", "tenant", "order", "service", "gpu_count", "start_at",
            "end_at", "created_at", "released_at",
        ]  # fmt: skip

    @extend_schema_field(Instant(allow_null=True))
    def get_start_at(self, allocation: Allocation) -> Any:
        """The lower bound of the time it is held."""
        return _bound(allocation.during.lower)

    @extend_schema_field(Instant(allow_null=True))
    def get_end_at(self, allocation: Allocation) -> Any:
        """The upper bound, null for no end in sight."""
        return _bound(allocation.during.upper)


def _bound(value: Any) -> str | None:
    return Instant().to_representation(value) if isinstance(value, datetime) else None


class AllocationFilters(Filters):
    """Conditions on allocations."""

    tenant = serializers.UUIDField(required=False)
    node = serializers.UUIDField(source="node_id", required=False)
    service = serializers.UUIDField(required=False)
    is_live = serializers.BooleanField(source="released_at__isnull", required=False)


class TicketSerializer(ShownModel[Ticket]):
    """Work on broken hardware."""

    node = serializers.UUIDField(source="node_id")
    node_name = serializers.CharField(source="node.name")

    class Meta:
        model = Ticket
        fields = [
            "id", "node", "node_name", "title", "detail", "category", "action", "opened_at",
            "updated_at", "closed_at", "resolution",
        ]  # fmt: skip


class TicketFilters(Filters):
    """Conditions on tickets."""

    node = serializers.UUIDField(source="node_id", required=False)
    is_open = serializers.BooleanField(source="closed_at__isnull", required=False)


class Resolution(Strict):
    """What was done."""

    resolution = serializers.CharField(max_length=2000)


class CapacitySerializer(Shown):
    """Nodes of one kind at one site, counted by status; `free` is what could be sold now."""

    site = serializers.CharField(source="site_code")
    site_name = serializers.CharField()
    resource_class = serializers.CharField()
    total = serializers.IntegerField()
    free = serializers.IntegerField()
    allocated = serializers.IntegerField()
    cleaning = serializers.IntegerField()
    quarantined = serializers.IntegerField()
    maintenance = serializers.IntegerField()
    enrolled = serializers.IntegerField()


class NewSite(Strict):
    """A site to add, or to change by its code; the password is sealed and never shown."""

    code = serializers.CharField(max_length=60)
    name = serializers.CharField(max_length=120)
    name_ko = serializers.CharField(max_length=120, required=False, allow_blank=True)
    endpoint = serializers.CharField(max_length=200)
    call_home_url = serializers.CharField(max_length=200)
    username = serializers.CharField(max_length=120, required=False, allow_blank=True)
    password = serializers.CharField(
        max_length=200, required=False, allow_null=True, trim_whitespace=False, write_only=True
    )
    timezone = serializers.CharField(max_length=60, required=False)
    concurrency = serializers.IntegerField(min_value=1, max_value=1000, required=False)
    is_simulated = serializers.BooleanField(required=False)
    is_routable = serializers.BooleanField(required=False)
    console_url = serializers.CharField(max_length=200, required=False, allow_blank=True)
    turn_around_minutes = serializers.IntegerField(
        min_value=0, max_value=7 * 24 * 60, required=False
    )
