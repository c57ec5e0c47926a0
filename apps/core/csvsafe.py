"""CSV that Excel opens rightly and never runs: cells, quoting, line ends, byte order mark.

The same rules twice: for rows made in Python, and as SQL for rows streamed by COPY.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal

from apps.core.money import Money

BOM = b"\xef\xbb\xbf"
CRLF = "\r\n"
FORMULA_CHARACTERS = "=+-@\t\r"
CONTENT_TYPE = "text/csv; charset=utf-8"

_NEEDS_QUOTES = re.compile(r'[,"\r\n]')
_PLAIN_AMOUNT = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)


def text_cell(value: object) -> str:
    """A cell people wrote: an apostrophe goes before what a spreadsheet would run."""
    if value is None:
        return ""
    text = str(value)
    return f"'{text}" if text[:1] and text[0] in FORMULA_CHARACTERS else text


def identifier_cell(value: object) -> str:
    """An identifier digit for digit, leading zeros kept; the rule of text applies."""
    return text_cell(value)


def amount_cell(value: Money | Decimal | int | str | None) -> str:
    """Plain digits with a dot; a negative number keeps its minus sign, nothing else is added.

    Raises ValueError for anything that is not a plain number, so that nothing slips through.
    """
    if value is None:
        return ""
    text = f"{value:f}" if isinstance(value, Decimal) else str(value)
    if not _PLAIN_AMOUNT.fullmatch(text):
        raise ValueError(f"{text!r} is not a plain amount")
    return text


def field(cell: str) -> str:
    """A cell as it stands in the file: quoted when it holds a comma, a quote, CR or LF."""
    if not _NEEDS_QUOTES.search(cell):
        return cell
    return '"' + cell.replace('"', '""') + '"'


def line(cells: Sequence[str]) -> str:
    """One line of the file, with its line end."""
    return ",".join(field(cell) for cell in cells) + CRLF


def encoded(lines: Iterable[Sequence[str]]) -> Iterator[bytes]:
    """The whole file in pieces: the mark once, then one piece for each line of cells."""
    yield BOM
    for cells in lines:
        yield line(cells).encode()


def sql_text_cell(column_sql: str) -> str:
    """SQL for `text_cell` over a trusted column expression; COPY ... CSV does the quoting.

    An empty text becomes NULL, which COPY writes as nothing between the commas.
    """
    text = f"({column_sql})::text"
    dangerous = r"'=', '+', '-', '@', E'\t', E'\r'"
    return (
        f"CASE WHEN left({text}, 1) IN ({dangerous}) THEN '''' || {text} "
        f"ELSE nullif({text}, '') END"
    )


def copied(chunks: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """What COPY ... CSV sends, as our file: the mark first, CRLF for the LF that ends a row.

    Line feeds inside quoted fields stay as they are, wherever the chunks are cut.
    """
    yield BOM
    quoted = False
    for chunk in chunks:
        pieces = bytes(chunk).split(b'"')
        for index, piece in enumerate(pieces):
            if index:
                quoted = not quoted
            if not quoted:
                pieces[index] = piece.replace(b"\n", b"\r\n")
        yield b'"'.join(pieces)
