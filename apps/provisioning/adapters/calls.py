"""Calls of the fakes: they fail before their effect, or after it, where a test asks for that."""

from typing import Any

from apps.core.errors import OutsideError


class Call:
    """One call: fails before its effect, or after it, if the test asked for that."""

    def __init__(self, before: list[OutsideError], after: list[OutsideError]) -> None:
        self._failures, self._after = before, after

    def __enter__(self) -> None:
        if self._failures:
            raise self._failures.pop(0)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        if kind is None and self._after:
            raise self._after.pop(0)
