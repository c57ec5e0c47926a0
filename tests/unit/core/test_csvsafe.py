"""CSV cells: what Excel opens rightly and never runs."""

import csv
import io
import json
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from apps.core import csvsafe
from apps.core.money import Money

CASES = json.loads((Path(__file__).parents[2] / "data" / "csv_cells.json").read_text())["cells"]
CELLS = {
    "text": csvsafe.text_cell,
    "amount": csvsafe.amount_cell,
    "identifier": csvsafe.identifier_cell,
}


@pytest.mark.parametrize("case", CASES, ids=lambda case: str(case["value"]))
def test_a_cell_stands_in_the_file_as_the_case_says(case):
    cell = CELLS[case["column"]](case["value"])
    assert csvsafe.field(cell) == case["field_in_file"]


@pytest.mark.parametrize("first", list("=+-@\t\r"))
def test_every_formula_character_is_disarmed(first):
    assert csvsafe.text_cell(f"{first}x") == f"'{first}x"
    assert csvsafe.identifier_cell(f"{first}1") == f"'{first}1"


def test_amounts_are_plain_and_nothing_else_passes():
    assert csvsafe.amount_cell(Money.of(-110880, "KRW")) == "-110880"
    assert csvsafe.amount_cell(Money.of("14803.1", "USD")) == "14803.10"
    assert csvsafe.amount_cell(Decimal("1E+3")) == "1000"
    assert csvsafe.amount_cell(None) == ""
    for wrong in ("=1+2", "1,000", "-", "1e3", "NaN"):
        with pytest.raises(ValueError, match="plain amount"):
            csvsafe.amount_cell(wrong)


def test_the_file_starts_with_the_mark_once_and_its_lines_end_with_crlf():
    data = b"".join(csvsafe.encoded([["이름", "금액"], ["a", "1"]]))
    assert data == b"\xef\xbb\xbf" + "이름,금액\r\na,1\r\n".encode()


@given(
    st.lists(
        st.lists(
            st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=2, max_size=4
        ),
        max_size=5,
    )
)
def test_any_reader_of_csv_gets_the_cells_back(rows):
    data = b"".join(csvsafe.encoded(rows))
    text = data.removeprefix(csvsafe.BOM).decode()
    assert list(csv.reader(io.StringIO(text, newline=""))) == rows


@given(
    st.lists(
        st.lists(st.sampled_from(["a", "x\ny", 'q"\n"', "r\r\nz", ""]), min_size=2, max_size=3),
        max_size=5,
    ),
    st.integers(1, 9),
)
def test_line_feeds_inside_copied_fields_stay_wherever_the_chunks_are_cut(rows, size):
    ours = b"".join(csvsafe.encoded(rows))
    copy = "".join(",".join(map(csvsafe.field, row)) + "\n" for row in rows).encode()
    chunks = [copy[i : i + size] for i in range(0, len(copy), size)]
    assert b"".join(csvsafe.copied(chunks)) == ours


def test_the_sql_names_every_formula_character():
    sql = csvsafe.sql_text_cell("o.name")
    assert sql.count("(o.name)::text") == 3
    for character in ("'='", "'+'", "'-'", "'@'", r"E'\t'", r"E'\r'"):
        assert character in sql
