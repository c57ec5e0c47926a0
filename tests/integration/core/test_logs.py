"""What goes through the product leaves no secret in its logs or its audit trail."""

import structlog
from django.db import connection

from apps.accounts.services import create_access_key, create_person
from tests.people import PASSWORD, a_browser, a_person


def _all_rows(table):
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT string_agg(to_jsonb(t)::text, ' ') FROM {table} t")
        return cursor.fetchone()[0] or ""


def test_signing_in_and_keys_leave_no_secret_behind(acme, capfd, caplog):
    wrong = "wrong-passphrase"
    person = a_person(email="kim@example.com")
    browser = a_browser("acme")
    browser.post("/account/login/", {"login": "kim@example.com", "password": wrong})
    browser.post("/account/login/", {"login": "kim@example.com", "password": PASSWORD})
    session = browser.cookies["neo_session"].value
    _key, token = create_access_key(name="ci", actor=person)
    create_person(
        email="new@example.com", name="New", role="viewer", actor=person, password="Tr0ub4dor and 3"
    )
    browser.get("/account/login/", headers={"authorization": f"Bearer {token}"})
    structlog.get_logger("test").info("token.seen", token=token, url=f"https://u:{wrong}@host/")
    printed = "".join(capfd.readouterr()) + caplog.text
    left = printed + _all_rows("audit_auditentry") + _all_rows("public.notices_notice")
    assert "request.done" in printed
    assert "token.seen" in printed
    for secret in (wrong, PASSWORD, session, token, "Tr0ub4dor and 3"):
        assert secret not in left
