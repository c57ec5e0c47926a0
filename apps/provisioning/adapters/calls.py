"""Calls of the fakes: they fail before their effect, or after it, where a test asks for that."""

from collections.abc import Callable
from typing import Any

from apps.core.errors import OutsideError


def _nothing() -> None:
    """No hook."""


class Call:
    """One call: fails before its effect, or after it, if the test asked for that.

    The hooks may raise too, and anything: `begins` before the effect, `ends` after it.
    """

    def __init__(
        self,
        before: list[OutsideError],
        after: list[OutsideError],
        begins: Callable[[], None] = _nothing,
        ends: Callable[[], None] = _nothing,
    ) -> None:
        self._before, self._after = before, after
        self._begins, self._ends = begins, ends

    def __enter__(self) -> None:
        self._begins()
        if self._before:
            raise self._before.pop(0)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is not None:
            return
        self._ends()
        if self._after:
            raise self._after.pop(0)
