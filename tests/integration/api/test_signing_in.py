"""Who may talk to the API: access keys, sessions, nobody else."""

from datetime import timedelta
from typing import Any

from django.test import Client

from apps.accounts.models import AccessKey, User
from apps.accounts.services import revoke_access_key
from apps.core import clock
from tests.integration.api.program import Program
from tests.people import a_browser, host


def test_a_program_with_an_access_key_acts_as_its_person(program: Program, owner: User) -> None:
    me = program.get("me")

    assert me["id"] == str(owner.pk)
    assert me["tenant"]["slug"] == "acme"
    assert "order.place" in me["permissions"]


def test_without_a_key_the_answer_asks_for_one(acme: Any) -> None:
    response = Program().ask("GET", "me")

    assert response.status_code == 401
    assert response["WWW-Authenticate"] == "Bearer"
    assert response.json()["code"] == "sign_in_required"


def test_an_unknown_token_is_refused(acme: Any) -> None:
    problem = Program(token="neo_0123456789").refused("GET", "me", status=401)

    assert problem["code"] == "token_refused"


def test_a_revoked_key_stops_working_at_once(program: Program, owner: User) -> None:
    revoke_access_key(key_id=AccessKey.objects.get(user=owner).pk, actor=owner)

    assert program.ask("GET", "me").status_code == 401


def test_an_expired_key_is_refused(program: Program, owner: User) -> None:
    AccessKey.objects.filter(user=owner).update(expires_at=clock.now() - timedelta(seconds=1))

    assert program.ask("GET", "me").status_code == 401


def test_a_key_of_one_tenant_is_unknown_to_another(owner: User, globex: Any) -> None:
    from apps.accounts.services import create_access_key

    _key, token = create_access_key(name="tests", actor=owner)

    assert Program(side="globex", token=token).ask("GET", "me").status_code == 401


def test_a_session_of_the_pages_may_read(owner: User) -> None:
    answer = a_browser(user=owner).get("/api/v1/me")

    assert answer.json()["email"] == owner.email


def test_a_session_changes_nothing_without_its_csrf_token(owner: User) -> None:
    browser = a_browser(user=owner, enforce_csrf_checks=True)

    answer = browser.post("/api/v1/projects", {"name": "vision"}, content_type="application/json")

    assert answer.status_code == 403
    assert answer.json()["code"] == "csrf_failed"


def test_the_description_is_open_to_everybody(acme: Any) -> None:
    answer = Client(headers={"host": host("acme")}).get("/api/v1/openapi.json")

    assert answer.json()["openapi"].startswith("3.1")
