"""Findings, the looks that found them, and what is fixed without a person."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Instant, Shown, ShownModel, Strict
from apps.inventory.models import Maintenance, Qualification
from apps.inventory.services import CATEGORIES
from apps.provisioning.models import Finding, SiteCheck, SiteLook
from apps.provisioning.states import FindingKind, FindingStatus
from apps.provisioning.validation.rows import told


class FindingSerializer(ShownModel[Finding]):
    """Belief and reality differ: what was expected, what was seen, the fix there is."""

    site = serializers.CharField(source="site.code")
    node = serializers.UUIDField(source="node_id", allow_null=True)
    node_name = serializers.CharField(source="node.name", allow_null=True, default=None)

    class Meta:
        model = Finding
        fields = [
            "id", "site", "kind", "subject", "node", "node_name", "tenant", "service", "status",
            "believed", "seen", "looks", "fix", "fix_by", "fix_tries", "detail",
            "first_seen_at", "last_seen_at", "acted_at", "closed_at", "closed_by",
        ]  # fmt: skip


class FindingFilters(Filters):
    """Conditions on findings."""

    site = Code(source="site__code", required=False)
    node = serializers.UUIDField(source="node_id", required=False)
    kind = serializers.ChoiceField(FindingKind.choices, required=False)
    status = serializers.ChoiceField(FindingStatus.choices, required=False)
    is_open = serializers.BooleanField(source="closed_at__isnull", required=False)


class OptionalReason(Strict):
    """Why, if there is more to say."""

    reason = serializers.CharField(max_length=300, required=False, allow_blank=True)


class SiteCheckRow(Shown):
    """One thing a site needs before it can sell; `ok` null: nobody can say."""

    component = serializers.CharField()
    item = serializers.CharField()
    about = serializers.CharField()
    ok = serializers.BooleanField(allow_null=True)
    detail = serializers.CharField()
    seconds = serializers.FloatField()
    way_out = serializers.CharField()


class SiteCheckSerializer(ShownModel[SiteCheck]):
    """A check of a site, and its trial while `stage` is not empty."""

    site = serializers.CharField(source="site.code")
    node = serializers.UUIDField(source="node_id", allow_null=True)
    rows = serializers.SerializerMethodField()

    class Meta:
        model = SiteCheck
        fields = [
            "id", "site", "actor", "started_at", "ended_at", "is_good", "stage", "node", "rows",
        ]  # fmt: skip

    @extend_schema_field(SiteCheckRow(many=True))
    def get_rows(self, check: SiteCheck) -> Any:
        """Each row with its words in the reader's language."""
        return SiteCheckRow([told(row) for row in check.rows], many=True).data


class WithTrial(Strict):
    """With `with_trial` one free node is deployed and cleaned, without a customer."""

    with_trial = serializers.BooleanField(default=False)


class NewTicket(Strict):
    """Work on a node."""

    node = serializers.UUIDField()
    title = serializers.CharField(max_length=200)
    category = serializers.ChoiceField(CATEGORIES, default="node")
    detail = serializers.CharField(max_length=4000, required=False, allow_blank=True)
    action = serializers.CharField(max_length=200, required=False, allow_blank=True)


class TicketChange(Strict):
    """How the work goes on."""

    category = serializers.ChoiceField(CATEGORIES, required=False)
    detail = serializers.CharField(max_length=4000, required=False, allow_blank=True)
    action = serializers.CharField(max_length=200, required=False, allow_blank=True)


class RackCordon(Strict):
    """A rack whose nodes are given to nobody new, or sold again."""

    rack = serializers.CharField(max_length=40)
    is_cordoned = serializers.BooleanField(default=True)
    reason = serializers.CharField(max_length=300)


class RackCordonResult(Shown):
    """The nodes that changed."""

    nodes = serializers.ListField(child=serializers.CharField())


class DrainSerializer(Shown):
    """A cordoned node and the services that must move or end before it is empty."""

    node = serializers.UUIDField()
    services = serializers.ListField(child=serializers.UUIDField())


class MaintenanceSerializer(ShownModel[Maintenance]):
    """Planned work on nodes."""

    site = serializers.CharField(source="site.code")
    node_count = serializers.IntegerField()
    service_count = serializers.IntegerField()

    class Meta:
        model = Maintenance
        fields = [
            "id", "site", "title", "detail", "starts_at", "ends_at", "is_retirement",
            "announced_at", "ended_at", "node_count", "service_count", "created_at",
        ]  # fmt: skip


class MaintenanceFilters(Filters):
    """Conditions on planned work."""

    site = Code(source="site__code", required=False)
    is_open = serializers.BooleanField(source="ended_at__isnull", required=False)


class NewMaintenance(Strict):
    """Work to plan; its nodes are cordoned at once, nobody is told yet."""

    site = Code()
    nodes = serializers.ListField(child=serializers.UUIDField(), min_length=1, max_length=1000)
    title = serializers.CharField(max_length=200)
    detail = serializers.CharField(max_length=4000, required=False, allow_blank=True)
    starts_at = Instant()
    ends_at = Instant()
    is_retirement = serializers.BooleanField(default=False)


class QualificationSerializer(ShownModel[Qualification]):
    """A combination of hardware and firmware that was really deployed, proven and cleaned."""

    hardware = serializers.DictField()
    last_node = serializers.UUIDField(source="last_node_id", allow_null=True)

    class Meta:
        model = Qualification
        fields = [
            "id", "fingerprint", "hardware", "is_simulated", "deploys", "cleanings",
            "first_proven_at", "last_proven_at", "last_cleaned_at", "last_node", "last_run",
        ]  # fmt: skip


class SiteLookSerializer(ShownModel[SiteLook]):
    """The last comparison of a site: when, how long it took, what it came to."""

    counts = serializers.DictField()

    class Meta:
        model = SiteLook
        fields = ["looked_at", "seconds", "due_at", "counts", "error"]


class FixPolicySerializer(Shown):
    """Whether a kind of finding is fixed without a person at the site."""

    kind = serializers.CharField()
    is_automatic = serializers.BooleanField()


class NewFixPolicy(Strict):
    """Whether a kind of finding is fixed without a person."""

    kind = serializers.ChoiceField(FindingKind.choices)
    is_automatic = serializers.BooleanField()
