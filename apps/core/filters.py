"""Lists people narrow down: the filters of the address, and the list they leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest

from apps.core.tables import Table

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LONGEST = 80
Choices = Sequence[tuple[str, Any]]


@dataclass(frozen=True)
class Filter:
    """One filter: a list to choose from, or a text to look for. `value` is "" when it is off."""

    name: str
    label: StrOrPromise
    value: str
    choices: Choices = ()
    any_label: StrOrPromise = ""


def choice(
    request: HttpRequest, name: str, label: StrOrPromise, any_label: StrOrPromise, choices: Choices
) -> Filter:
    """A choice out of the address; what is not among the choices counts as none."""
    value = request.GET.get(name, "")
    known = {str(key) for key, _label in choices}
    return Filter(name, label, value if value in known else "", choices, any_label)


def text(request: HttpRequest, label: StrOrPromise, *, name: str = "q") -> Filter:
    """The text somebody looks for, without the spaces around it."""
    value = request.GET.get(name, "").replace("\x00", "").strip()[:LONGEST]
    return Filter(name, label, value)


@dataclass(frozen=True)
class Listing:
    """A list page: its filters, the rows they leave, and where the following rows are."""

    table: Table
    filters: Sequence[Filter] = ()
    next: str = ""

    @property
    def is_narrowed(self) -> bool:
        """Whether any filter is on."""
        return any(item.value for item in self.filters)
