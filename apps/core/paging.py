"""Lists by cursor: a page begins after the last row of the one before it."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.core.exceptions import ValidationError
from django.db.models import Model, Q, QuerySet
from django.utils.translation import gettext_lazy as _

from apps.core.errors import Invalid

Row = TypeVar("Row", bound=Model)
SIZE = 50


class BadCursor(Invalid):
    """A cursor we did not make, or of another list."""

    code = "bad_cursor"
    message = _("This place in the list no longer exists. Start again from the first page.")


@dataclass(frozen=True)
class Page(Generic[Row]):
    """Some rows, and the cursor of the rows after them; it is empty on the last page."""

    items: list[Row]
    next: str


def paginate(
    queryset: QuerySet[Row],
    *,
    keys: Sequence[str] = ("-created_at", "-id"),
    cursor: str = "",
    size: int = SIZE,
) -> Page[Row]:
    """The page of `queryset` behind `cursor`, in the order of `keys`, in one query.

    All keys run in the same direction; the last one must be unique and none may be null. Raises
    BadCursor.
    """
    names = [key.lstrip("-") for key in keys]
    rows = queryset.order_by(*keys)
    if cursor:
        values = _decoded(cursor, len(names))
        try:
            rows = rows.filter(_behind(names, values, falling=keys[0].startswith("-")))
        except (ValueError, TypeError, ValidationError) as error:
            raise BadCursor(field="cursor") from error
    items = list(rows[: size + 1])
    if len(items) <= size:
        return Page(items, "")
    items.pop()
    return Page(items, _encoded([getattr(items[-1], name) for name in names]))


def _behind(names: Sequence[str], values: Sequence[Any], *, falling: bool) -> Q:
    comparison = "lt" if falling else "gt"
    behind, same = Q(), Q()
    for name, value in zip(names, values, strict=True):
        behind |= same & Q(**{f"{name}__{comparison}": value})
        same &= Q(**{name: value})
    first = Q(**{f"{names[0]}__{comparison}e": values[0]})  # lets the index do the work
    return first & behind


def _encoded(values: Sequence[Any]) -> str:
    plain = [value.isoformat() if isinstance(value, datetime) else str(value) for value in values]
    text = json.dumps(plain, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _decoded(cursor: str, count: int) -> list[str]:
    try:
        values = json.loads(base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except ValueError as error:
        raise BadCursor(field="cursor") from error
    if not isinstance(values, list) or len(values) != count:
        raise BadCursor(field="cursor")
    if not all(isinstance(value, str) for value in values):
        raise BadCursor(field="cursor")
    return values
