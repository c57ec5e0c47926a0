"""What an import did, row by row."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.api.serializers.base import Shown
from apps.catalog.reports import ImportRow


class RowErrorSerializer(Shown):
    """Why a row was refused."""

    field = serializers.CharField()
    code = serializers.CharField()
    message = serializers.CharField()


class ChangeSerializer(Shown):
    """A field before and after."""

    field = serializers.CharField()
    before = serializers.JSONField(allow_null=True)
    after = serializers.JSONField(allow_null=True)


class ImportRowSerializer(Shown):
    """One row: created, changed, unchanged or refused."""

    place = serializers.CharField()
    name = serializers.CharField()
    result = serializers.CharField()
    changes = serializers.SerializerMethodField()
    errors = RowErrorSerializer(many=True)  # type: ignore[assignment]

    @extend_schema_field(ChangeSerializer(many=True))
    def get_changes(self, row: ImportRow) -> list[dict[str, Any]]:
        """What differs, field by field; values that JSON does not have are shown as text."""
        return [
            {"field": name, "before": _plain(before), "after": _plain(after)}
            for name, (before, after) in row.changes.items()
        ]


class ImportReportSerializer(Shown):
    """All rows of an import; in a dry run nothing was kept."""

    is_dry_run = serializers.BooleanField()
    was_applied = serializers.BooleanField()
    counts = serializers.DictField(child=serializers.IntegerField())
    rows = ImportRowSerializer(many=True)


def _plain(value: Any) -> Any:
    return value if value is None or isinstance(value, bool | int | list | dict) else str(value)
