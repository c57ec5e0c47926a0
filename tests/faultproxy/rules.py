"""Which requests are spoiled, and how."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Literal, get_args

Do = Literal["drop", "hang", "answer", "half", "delay"]


@dataclass(frozen=True)
class Rule:
    """Of the requests that match, from the nth on, so many in a row are spoiled.

    drop: the connection ends without an answer. hang: nothing is said until the client gives up.
    answer: this status and body. half: the real headers, half of the real body. delay: the real
    answer, late. With `after` the service gets the request first, so that it has its effect; half
    and delay always pass it on.
    """

    do: Do
    method: str = ""  # any
    path: str = ""  # a regular expression, searched in path and query
    nth: int = 1
    times: int | None = 1  # None: for ever
    after: bool = False
    seconds: float = 0.0  # waited first
    status: int = 503
    body: str = ""
    content_type: str = "text/html"

    def __post_init__(self) -> None:
        if self.do not in get_args(Do):
            raise ValueError(f"do is one of {', '.join(get_args(Do))}, not {self.do!r}")
        if self.nth < 1 or (self.times is not None and self.times < 1):
            raise ValueError("nth and times count from 1")
        re.compile(self.path)

    @property
    def has_effect(self) -> bool:
        """Does the service get to see the request?"""
        return self.after or self.do in ("half", "delay")

    def matches(self, method: str, path: str) -> bool:
        """Is it about such a request?"""
        return self.method in ("", method) and re.search(self.path, path) is not None


@dataclass
class _Counted:
    rule: Rule
    matched: int = 0
    struck: int = 0


@dataclass
class Rules:
    """The rules in force, each with its own count; the first that strikes decides."""

    _lock: Lock = field(default_factory=Lock)
    _counted: list[_Counted] = field(default_factory=list)

    def add(self, *rules: Rule) -> None:
        """From now on these too."""
        with self._lock:
            self._counted += [_Counted(rule) for rule in rules]

    def clear(self) -> None:
        """From now on nothing is spoiled."""
        with self._lock:
            self._counted.clear()

    def strike(self, method: str, path: str) -> Rule | None:
        """Count a request; the rule that spoils it, or None."""
        chosen = None
        with self._lock:
            for one in self._counted:
                if not one.rule.matches(method, path):
                    continue
                one.matched += 1
                last = None if one.rule.times is None else one.rule.nth + one.rule.times - 1
                if chosen is None and one.rule.nth <= one.matched <= (last or one.matched):
                    chosen = one.rule
                    one.struck += 1
        return chosen

    def unused(self) -> Sequence[Rule]:
        """Rules that have struck nothing: a test that meant them has tested nothing."""
        with self._lock:
            return [one.rule for one in self._counted if not one.struck]


def parse(words: dict[str, Any]) -> Rule:
    """A rule out of JSON. Raises ValueError for what is none."""
    try:
        return Rule(**words)
    except (TypeError, re.error) as error:
        raise ValueError(str(error)) from error
