"""How values look on a page, in both languages."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from django.utils import translation

from apps.core import instants, show
from apps.core.errors import Conflict


@pytest.mark.parametrize(
    ("length", "english", "korean"),
    [
        (131, "2 min 11 s", "2분 11초"),
        (timedelta(days=3, hours=4, minutes=5), "3 d 4 h", "3일 4시간"),
        (timedelta(hours=1), "1 h", "1시간"),
        (0, "0 s", "0초"),
        (-5, "-5 s", "-5초"),
    ],
)
def test_a_length_of_time_is_written_as_the_language_writes_it(length, english, korean):
    assert show.duration(length) == english
    with translation.override("ko"):
        assert show.duration(length) == korean


def test_an_instant_in_words_names_its_zone():
    at = datetime(2026, 12, 1, 0, 30, 5, tzinfo=UTC)
    assert instants.in_words(at, of=ZoneInfo("Asia/Seoul")) == "2026-12-01 09:30:05 KST"


def test_an_instant_no_zone_can_show_stays_as_it_is():
    first = datetime(1, 1, 1, tzinfo=UTC)
    assert instants.in_words(first, of=ZoneInfo("America/Los_Angeles")).startswith("0001-01-01T")


def test_an_error_tells_an_instant_as_pages_do():
    at = datetime(2026, 12, 1, 0, 30, tzinfo=UTC)
    told = Conflict("Not before {at}.", at=at).detail
    assert told == f"Not before {instants.in_words(at)}."
    assert "T00:30" not in told
