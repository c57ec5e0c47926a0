"""A test that lacks a browser or Ironic is skipped, and fails where nothing may be skipped."""

import pytest

from tests import needs

ABSENT = {"browser": (lambda: None, "there is no browser")}


def test_what_is_missing_skips_a_test(monkeypatch):
    monkeypatch.setattr(needs, "MARKERS", ABSENT)
    monkeypatch.delenv("REQUIRE_ALL", raising=False)

    with pytest.raises(pytest.skip.Exception, match="there is no browser"):
        needs.needs(["slow", "browser"])


def test_what_is_missing_fails_where_nothing_may_be_skipped(monkeypatch):
    monkeypatch.setattr(needs, "MARKERS", ABSENT)
    monkeypatch.setenv("REQUIRE_ALL", "1")

    with pytest.raises(pytest.fail.Exception, match="there is no browser; REQUIRE_ALL=1"):
        needs.needs(["browser"])


def test_a_test_that_does_not_need_it_is_not_asked(monkeypatch):
    monkeypatch.setattr(needs, "MARKERS", ABSENT)

    needs.needs(["slow"])
