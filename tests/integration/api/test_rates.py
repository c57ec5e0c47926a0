"""One person can ask only so often; others are not held up by it."""

import pytest

from apps.accounts.models import User
from apps.api.throttling import ChangeThrottle, PersonThrottle
from tests.integration.api.program import Program
from tests.people import a_person


def test_who_asks_too_often_is_told_when_to_come_back(
    program: Program, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PersonThrottle, "rate", "2/min")

    answers = [program.ask("GET", "me") for _ in range(3)]

    assert [one.status_code for one in answers] == [200, 200, 429]
    assert answers[2]["Content-Type"] == "application/problem+json"
    assert answers[2].json()["code"] == "too_many_requests"
    assert 1 <= int(answers[2]["Retry-After"]) <= 60


def test_two_keys_of_one_person_share_the_limit_and_other_people_have_their_own(
    program: Program, owner: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    second, other = Program.of(owner), Program.of(a_person())
    monkeypatch.setattr(PersonThrottle, "rate", "1/min")

    assert program.ask("GET", "me").status_code == 200
    assert second.ask("GET", "me").status_code == 429
    assert other.ask("GET", "me").status_code == 200


def test_reading_does_not_use_up_the_changes(
    program: Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ChangeThrottle, "rate", "1/min")

    assert [program.ask("GET", "me").status_code for _ in range(3)] == [200] * 3
    program.post("projects", {"name": "vision"})
    program.refused("POST", "projects", {"name": "speech"}, status=429)
