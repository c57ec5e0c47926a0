"""How a body is read: JSON, and never deeper than anything here is."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework.exceptions import ParseError
from rest_framework.parsers import JSONParser

DEEPEST = 32  # levels; what is deeper would exhaust the stack of whoever walks through it


class ShallowJSONParser(JSONParser):
    """JSON; a body nested deeper than DEEPEST is malformed."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """The body. Raises ParseError."""
        try:
            data = super().parse(stream, media_type, parser_context)
        except RecursionError as error:
            raise ParseError() from error
        if _is_deep(data):
            raise ParseError()
        return data


def _is_deep(data: Any) -> bool:
    level = [data]
    for _depth in range(DEEPEST + 1):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return False
    return True
