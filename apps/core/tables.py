"""What `components/table.html` draws: columns, rows of finished cells, what an empty table says."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


@dataclass(frozen=True)
class Column:
    """A heading and how its cells stand; `hide` leaves it out below that width (sm, md, lg, xl)."""

    label: StrOrPromise
    number: bool = False
    hide: str = ""
    wrap: bool = False

    @property
    def css(self) -> str:
        """The classes of the heading and of every cell."""
        return " ".join(
            part
            for part in (
                "text-end" if self.number else "",
                f"d-none d-{self.hide}-table-cell" if self.hide else "",
                "" if self.wrap else "text-nowrap",
            )
            if part
        )


@dataclass(frozen=True)
class Row:
    """Cells in the order of the columns: text or safe HTML. `tone` colours the row
    (red, yellow).
    """

    cells: Sequence[Any]
    id: str = ""
    tone: str = ""


@dataclass(frozen=True)
class Empty:
    """What an empty table says, and what to do next."""

    title: StrOrPromise
    hint: StrOrPromise = ""
    url: str = ""
    action: StrOrPromise = ""
    icon: str = "inbox"


@dataclass(frozen=True)
class Table:
    """A table ready to draw. `caption` is read by screen readers; `foot` is a row of sums."""

    columns: Sequence[Column]
    rows: Sequence[Row]
    caption: StrOrPromise
    empty: Empty | None = None
    foot: Row | None = None
    selectable: str = ""  # the name of the check boxes; every row then needs its id
    id: str = ""

    @property
    def drawn(self) -> Iterable[tuple[Row, list[tuple[Column, Any]]]]:
        """Every row with its cells under their columns."""
        for row in self.rows:
            yield row, list(zip(self.columns, row.cells, strict=True))

    @property
    def foot_cells(self) -> list[tuple[Column, Any]]:
        """The sums under their columns."""
        return list(zip(self.columns, self.foot.cells, strict=True)) if self.foot else []


@dataclass(frozen=True)
class Figure:
    """A number worth a card: what, how much, in which light, and where more stands."""

    label: StrOrPromise
    value: Any
    hint: Any = ""
    url: str = ""
    icon: str = ""
    tone: str = ""


@dataclass(frozen=True)
class StepView:
    """One step as a stepper draws it; `state` is done, now, next, failed or
    undone.
    """

    label: Any
    state: str
    note: Any = ""
    at: Any = ""


@dataclass(frozen=True)
class Term:
    """A line of a definition list: the word and what it means here."""

    label: StrOrPromise
    value: Any
    hint: Any = field(default="")
