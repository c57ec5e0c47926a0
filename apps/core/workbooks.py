"""A spreadsheet file from the rows of a CSV export: the same cells, numbers as numbers."""

import csv
import tempfile
from collections.abc import Collection, Iterable, Iterator
from typing import IO

import xlsxwriter
from django.utils.translation import gettext_lazy as _

from apps.core.csvsafe import FORMULA_CHARACTERS
from apps.core.errors import Invalid

CONTENT_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
MOST_ROWS = 1_048_575  # of a sheet, without its header
EXACT = 15  # digits a spreadsheet keeps of a number


class TooManyRows(Invalid):
    """More than a sheet can hold."""

    code = "too_many_rows"
    message = _(
        "A spreadsheet holds {most} rows; this export has more. Narrow it, or take the CSV file."
    )


def workbook(pieces: Iterable[bytes], *, numbers: Collection[str]) -> Iterator[bytes]:
    """An .xlsx in pieces, from a CSV export in pieces; made in a file, never whole in memory.

    Columns named in `numbers` become numbers when a spreadsheet keeps all their digits. Nothing is
    ever a formula. Raises TooManyRows before the first piece.
    """
    spool = tempfile.TemporaryFile()  # noqa: SIM115 - read by the generator after this returns
    try:
        _write(spool, _rows(pieces), numbers)
    except BaseException:
        spool.close()
        raise
    return _read(spool)


def _rows(pieces: Iterable[bytes]) -> Iterator[list[str]]:
    return csv.reader(_lines(pieces))


def _lines(pieces: Iterable[bytes]) -> Iterator[str]:
    """The file's lines with their ends, wherever the pieces are cut."""
    left = b""
    for piece in pieces:
        *whole, left = (left + piece).split(b"\n")
        yield from ((line + b"\n").decode("utf-8-sig") for line in whole)
    if left:
        yield left.decode("utf-8-sig")


def _write(spool: object, rows: Iterator[list[str]], numbers: Collection[str]) -> None:
    book = xlsxwriter.Workbook(
        spool, {"constant_memory": True, "strings_to_formulas": False, "strings_to_urls": False}
    )
    try:
        sheet = book.add_worksheet()
        sheet.freeze_panes(1, 0)
        header = next(rows, [])
        bold = book.add_format({"bold": True})
        for column, name in enumerate(header):
            sheet.write_string(0, column, name, bold)
            sheet.set_column(column, column, max(10, min(28, len(name) + 2)))
        for number, cells in enumerate(rows, start=1):
            if number > MOST_ROWS:
                raise TooManyRows(most=MOST_ROWS)
            for column, cell in enumerate(cells):
                if header[column] in numbers and _is_exact(cell):
                    sheet.write_number(number, column, float(cell))
                elif cell:
                    sheet.write_string(number, column, _plain(cell))
    finally:
        book.close()


def _is_exact(cell: str) -> bool:
    digits = cell.lstrip("-").replace(".", "", 1)
    return digits.isascii() and digits.isdigit() and len(digits.lstrip("0")) <= EXACT


def _plain(cell: str) -> str:
    """Without the apostrophe that keeps a CSV cell from being run: a string cell never is."""
    guarded = cell[:1] == "'" and cell[1:2] != "" and cell[1] in FORMULA_CHARACTERS
    return cell[1:] if guarded else cell


def _read(spool: IO[bytes]) -> Iterator[bytes]:
    with spool:
        spool.seek(0)
        while piece := spool.read(1 << 16):
            yield piece
