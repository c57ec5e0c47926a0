"""Findings, the looks that found them, and what is fixed without a person."""

from rest_framework import serializers

from apps.api.serializers.base import Code, Filters, Shown, ShownModel, Strict
from apps.provisioning.models import Finding, SiteLook
from apps.provisioning.states import FindingKind, FindingStatus


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
