"""Status machines: one table decides, draws its picture and names the buttons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.db.models import Choices
from django.utils.translation import gettext_lazy as _

from apps.core.errors import Conflict

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MACHINES: dict[str, Machine] = {}


class WrongStatus(Conflict):
    """The verb exists, but not from the present status."""

    code = "wrong_status"
    message = _(
        "“{verb}” is not possible for the {machine} in status “{status}”; possible: {possible}."
    )


class FinalStatus(WrongStatus):
    """Nothing is possible any more."""

    message = _("“{verb}” is not possible: status “{status}” of the {machine} is final.")


@dataclass(frozen=True, slots=True)
class Move:
    """One row of the table."""

    verb: str
    source: str
    target: str


class Machine:
    """The statuses of one kind of thing, as rows of (verb, from, to); `from` may be a tuple.

    Only `move` sets a status. The machine registers itself under its name, so that the pages in
    `docs/states` cover all of them. Raises ValueError for a table that contradicts itself.
    """

    def __init__(
        self,
        name: str,
        rows: Iterable[tuple[str, str | Sequence[str], str]],
        *,
        labels: Mapping[str, StrOrPromise] | None = None,
    ) -> None:
        self.name = name
        rows = tuple(rows)
        self.moves = tuple(
            Move(verb, str(source), str(target))
            for verb, sources, target in rows
            for source in ((sources,) if isinstance(sources, str) else sources)
        )
        self._labels = dict(labels or {})
        self._status_labels = {
            str(status): status.label  # of TextChoices
            for _verb, sources, target in rows
            for status in (target, *((sources,) if isinstance(sources, str) else sources))
            if isinstance(status, Choices)
        }
        self._targets = {(move.source, move.verb): move.target for move in self.moves}
        self._check(labels or {})
        MACHINES[name] = self

    def __repr__(self) -> str:
        return f"<Machine {self.name}: {len(self.moves)} moves>"

    @property
    def statuses(self) -> tuple[str, ...]:
        """Every status, in the order of the table."""
        ends = (status for move in self.moves for status in (move.source, move.target))
        return tuple(dict.fromkeys(ends))

    @property
    def verbs(self) -> tuple[str, ...]:
        """Every verb, in the order of the table."""
        return tuple(dict.fromkeys(move.verb for move in self.moves))

    @property
    def initial(self) -> tuple[str, ...]:
        """Statuses no other leads to; the first of the table if there is none."""
        reached = {move.target for move in self.moves if move.source != move.target}
        return tuple(s for s in self.statuses if s not in reached) or self.statuses[:1]

    @property
    def final(self) -> tuple[str, ...]:
        """Statuses nothing leads away from."""
        left = {move.source for move in self.moves}
        return tuple(status for status in self.statuses if status not in left)

    def verbs_from(self, status: str) -> tuple[str, ...]:
        """What can be done in that status: the buttons of the page."""
        return tuple(move.verb for move in self.moves if move.source == status)

    def can(self, status: str, verb: str) -> bool:
        """Whether the verb is possible in that status."""
        return (str(status), verb) in self._targets

    def sources(self, verb: str) -> tuple[str, ...]:
        """The statuses a verb starts from, for queries. Raises KeyError for an unknown verb."""
        self._known(verb)
        return tuple(move.source for move in self.moves if move.verb == verb)

    def label(self, verb: str) -> str:
        """The verb as people read it."""
        return str(self._labels.get(verb, verb.replace("_", " ").capitalize()))

    def status_label(self, status: str) -> str:
        """The status as people read it."""
        return str(self._status_labels.get(str(status), status))

    def move(self, obj: Any, verb: str, *, field: str = "status") -> str:
        """Set the status the verb leads to and return the one it had; saving is the caller's.

        Raises WrongStatus naming the verb, the status and what is possible; KeyError when the
        table has no such verb at all.
        """
        self._known(verb)
        before = str(getattr(obj, field))
        target = self._targets.get((before, verb))
        if target is None:
            raise self._refusal(before, verb)
        setattr(obj, field, target)
        return before

    def to_markdown(self) -> str:
        """The page of `docs/states`: a picture, then the table."""
        diagram = [
            "stateDiagram-v2",
            *(f"    [*] --> {status}" for status in self.initial),
            *(f"    {move.source} --> {move.target}: {move.verb}" for move in self.moves),
            *(f"    {status} --> [*]" for status in self.final),
        ]
        table = ["| verb | from | to |", "|---|---|---|"]
        for verb, target in dict.fromkeys((move.verb, move.target) for move in self.moves):
            rows = (m.source for m in self.moves if (m.verb, m.target) == (verb, target))
            table.append(f"| {verb} | {', '.join(rows)} | {target} |")
        title = self.name.replace("_", " ").capitalize()
        parts = [f"# {title}", "```mermaid", *diagram, "```", "", *table]
        return "\n".join(["<!-- Generated from the status tables; do not edit. -->", *parts, ""])

    def _refusal(self, status: str, verb: str) -> WrongStatus:
        possible = self.verbs_from(status)
        kind = WrongStatus if possible else FinalStatus
        return kind(
            verb=self.label(verb),
            machine=self.name.replace("_", " "),
            status=self.status_label(status),
            possible=", ".join(self.label(other) for other in possible),
        )

    def _known(self, verb: str) -> None:
        if verb not in self.verbs:
            raise KeyError(f"machine {self.name} has no verb {verb!r}")

    def _check(self, labels: Mapping[str, StrOrPromise]) -> None:
        if not self.moves:
            raise ValueError(f"machine {self.name} has no rows")
        if len(self._targets) != len(self.moves):
            raise ValueError(f"machine {self.name}: a verb stands twice for one status")
        unknown = set(labels) - set(self.verbs)
        if unknown:
            raise ValueError(f"machine {self.name}: labels for unknown verbs {sorted(unknown)}")
        known = MACHINES.get(self.name)
        if known is not None and known.moves != self.moves:
            raise ValueError(f"there is already another machine {self.name}")


def state_pages() -> dict[str, str]:
    """The pages of `docs/states` by file name: one for each machine and a list of them."""
    pages = {f"{name}.md": MACHINES[name].to_markdown() for name in sorted(MACHINES)}
    links = [f"- [{name.replace('_', ' ')}]({name}.md)" for name in sorted(MACHINES)]
    pages["README.md"] = "\n".join(
        [
            "<!-- Generated from the status tables; do not edit. -->",
            "# Status machines",
            "",
            "Each page is drawn from the table the code decides by.",
            "",
            *links,
            "",
        ]
    )
    return pages


def write_state_pages(folder: Path) -> list[Path]:
    """Bring `folder` up to date with all machines; the files that changed or went."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = state_pages()
    changed = []
    for path in sorted(folder.glob("*.md")):
        if path.name not in pages:
            path.unlink()
            changed.append(path)
    for name, text in pages.items():
        path = folder / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            changed.append(path)
    return changed
