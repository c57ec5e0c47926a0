"""What an import did, row by row: shared by the catalogue's and the inventory's."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from apps.core.errors import AppError

CREATED, CHANGED, UNCHANGED, REFUSED = "created", "changed", "unchanged", "refused"


@dataclass(frozen=True)
class RowError:
    """Why a row was refused: the field, and a message that names the rule and the way out."""

    field: str
    message: str
    code: str


@dataclass(frozen=True)
class ImportRow:
    """One row: `result` is created, changed, unchanged or refused.

    `changes` maps field → (old, new).
    """

    place: str
    name: str
    result: str
    changes: dict[str, tuple[Any, Any]] = field(default_factory=dict)
    errors: tuple[RowError, ...] = ()


@dataclass(frozen=True)
class ImportReport:
    """All rows of an import; in a dry run nothing was kept."""

    rows: tuple[ImportRow, ...]
    is_dry_run: bool = False
    was_applied: bool = True

    @property
    def counts(self) -> dict[str, int]:
        """How many rows ended how."""
        found = Counter(row.result for row in self.rows)
        return {result: found[result] for result in (CREATED, CHANGED, UNCHANGED, REFUSED)}

    @property
    def refused(self) -> tuple[ImportRow, ...]:
        """The rows that were not taken."""
        return tuple(row for row in self.rows if row.result == REFUSED)

    def lines(self) -> list[str]:
        """The report as people read it: what differs, then the sums."""
        found: list[str] = []
        for row in self.rows:
            if row.result == UNCHANGED:
                continue
            found.append(f"{row.result:9} {row.place} {row.name}".rstrip())
            found += [f"          {error.field}: {error.message}" for error in row.errors]
            found += [
                f"          {name}: {old} → {new}" for name, (old, new) in row.changes.items()
            ]
        found.append(", ".join(f"{count} {result}" for result, count in self.counts.items()))
        return found


def row_errors(error: AppError) -> tuple[RowError, ...]:
    """The single errors of one refusal."""
    return tuple(
        RowError(field=part.field or "", message=part.detail, code=part.code)
        for part in error.errors
    )
