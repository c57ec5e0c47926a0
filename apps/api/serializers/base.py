"""What shapes share: strict input, output that is only read, instants in UTC, money as text."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, ClassVar, TypeVar

from django.db import models
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.catalog.models import CODE
from apps.core.errors import AppError
from apps.core.money import MINOR_UNITS, Money
from apps.core.paging import SIZE
from apps.core.periods import EndBeforeStart, billing_month

M = TypeVar("M", bound=models.Model)
LARGEST_PAGE = 200


class Instant(serializers.DateTimeField):
    """An instant: ISO 8601, read with any offset, written in UTC with Z."""

    default_error_messages = {"naive": _("Give the offset from UTC, as in 2026-03-01T00:00:00Z.")}

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(default_timezone=UTC, **kwargs)

    def enforce_timezone(self, value: datetime) -> datetime:
        """An instant without an offset is refused rather than guessed."""
        if value.tzinfo is None:
            self.fail("naive")
        try:
            return value.astimezone(UTC)
        except OverflowError:
            self.fail("invalid", format="ISO 8601")


class Strict(serializers.Serializer[Any]):
    """Input whose unknown fields are refused by name, so that a typing mistake is never ignored."""

    default_error_messages = {"unknown": _("There is no such field here. Known: {known}.")}

    def to_internal_value(self, data: Any) -> Any:
        """As usual, and complain of unknown fields together with the others."""
        if not isinstance(data, dict):
            return super().to_internal_value(data)
        known = ", ".join(self.fields) or "—"
        text = self.error_messages["unknown"].format(known=known)
        wrong: dict[str, Any] = {
            str(name): [serializers.ErrorDetail(text, code="unknown_field")]
            for name in data
            if name not in self.fields
        }
        try:
            read = super().to_internal_value(data)
        except serializers.ValidationError as error:
            wrong |= error.detail if isinstance(error.detail, dict) else {"": error.detail}
        if wrong:
            raise serializers.ValidationError(wrong)
        return read


class Month(serializers.CharField):
    """A calendar month, written 2026-03."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(max_length=7, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        """The month, if there is such a one."""
        month = super().to_internal_value(data)
        try:
            billing_month(month, "UTC")
        except AppError as error:
            raise serializers.ValidationError(error.detail, code=error.code) from error
        return month


class Code(serializers.RegexField):
    """The code of a site, an offering, a tenant: a code that cannot be one is refused."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(CODE.regex, max_length=60, **kwargs)


class Currency(serializers.ChoiceField):
    """One of the currencies we know."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(sorted(MINOR_UNITS), **kwargs)


class PageQuery(Strict):
    """Where in a list, and how much of it."""

    cursor = serializers.CharField(
        required=False, max_length=1000, help_text="From the `next` of the page before."
    )
    limit = serializers.IntegerField(
        required=False, min_value=1, max_value=LARGEST_PAGE, default=SIZE
    )


class Filters(PageQuery):
    """Conditions of a list; a field's `source` is the condition it becomes.

    A value that nothing can have is refused, so that a mistake is never an empty list.
    """

    ranges: ClassVar[tuple[tuple[str, str], ...]] = (
        ("since", "until"),
        ("created_at__gte", "created_at__lt"),
    )

    def to_internal_value(self, data: Any) -> Any:
        """The conditions alone, ready for `filter(**...)`."""
        read = super().to_internal_value(data)
        read.pop("cursor", None)
        read.pop("limit", None)
        for start, end in self.ranges:
            if start in read and end in read and read[end] <= read[start]:
                name = next(name for name, field in self.fields.items() if field.source == end)
                error = EndBeforeStart(start=read[start], end=read[end])
                detail = serializers.ErrorDetail(error.detail, code=error.code)
                raise serializers.ValidationError({name: [detail]})
        return read


class _OnlyRead:
    """Every field is only read, and so always there in an answer."""

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """The declared fields, made read-only."""
        fields: dict[str, serializers.Field[Any, Any, Any, Any]] = super().get_fields()  # type: ignore[misc]
        for one in fields.values():
            one.read_only, one.required = True, False
        return fields


class Shown(_OnlyRead, serializers.Serializer[Any]):
    """An answer made of attributes."""


class ShownModel(_OnlyRead, serializers.ModelSerializer[M]):
    """An answer made of a model's columns."""

    serializer_field_mapping = {
        **serializers.ModelSerializer.serializer_field_mapping,
        models.DateTimeField: Instant,
    }


class MoneySerializer(Shown):
    """An exact amount: plain digits with a dot, never a float."""

    amount = serializers.CharField()
    currency = serializers.CharField()


@extend_schema_field(MoneySerializer)
class MoneyField(serializers.Field[Any, Any, dict[str, str] | None, Any]):
    """Money out of two attributes (`amount`, `currency` name them), or out of one Money."""

    def __init__(self, amount: str, currency: str | None = "currency", **kwargs: Any) -> None:
        self.amount, self.currency = amount, currency
        super().__init__(source="*", read_only=True, **kwargs)

    def to_representation(self, value: Any) -> dict[str, str] | None:
        """The amount as text beside its currency; None stays None."""
        amount = _follow(value, self.amount)
        if amount is None:
            return None
        if isinstance(amount, Money):
            return {"amount": str(amount), "currency": amount.currency}
        money = Money(Decimal(amount), _follow(value, str(self.currency)))
        return {"amount": str(money), "currency": money.currency}


class Words(serializers.CharField):
    """Text that may still wait for its language."""

    def to_representation(self, value: Any) -> str:
        """The text in the language of the request."""
        return str(value) if isinstance(value, Promise) else super().to_representation(value)


def _follow(value: Any, path: str) -> Any:
    for name in path.split("."):
        if value is None:
            return None
        value = value[name] if isinstance(value, dict) else getattr(value, name)
    return value


class ProblemPart(Shown):
    """One of the things that are wrong."""

    field = serializers.CharField(allow_null=True)
    code = serializers.CharField()
    detail = serializers.CharField()


class ProblemAlternative(Shown):
    """What can be had instead: the fields of a quote, and in which way it differs."""

    kind = serializers.ChoiceField(
        [(k, k) for k in ("site", "offering", "fewer", "recall", "later")]
    )
    offering = serializers.CharField()
    site = serializers.CharField()
    quantity = serializers.IntegerField()
    starts_at = serializers.CharField(allow_null=True)
    ends_at = serializers.CharField(allow_null=True)
    accepts_recall = serializers.BooleanField()


class ProblemSerializer(Shown):
    """RFC 9457 problem details: `code` is stable and for programs, `detail` is for people."""

    type = serializers.CharField()
    title = serializers.CharField()
    status = serializers.IntegerField()
    code = serializers.CharField()
    detail = serializers.CharField()
    field = serializers.CharField(allow_null=True)
    errors = ProblemPart(many=True)  # type: ignore[assignment]
    request_id = serializers.CharField()
    alternatives = ProblemAlternative(
        many=True, help_text="With `out_of_capacity`: what can be quoted instead."
    )
