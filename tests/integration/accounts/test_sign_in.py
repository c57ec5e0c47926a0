"""Signing in: with a password, locked out after five wrong ones, always with a way back."""

import re

from django.contrib.sessions.models import Session
from django.core import mail
from django.test import Client

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.tenancy.context import platform_context, tenant_context
from tests.people import PASSWORD, a_browser, a_person

LOGIN = "/account/login/"


def _try(browser: Client, email: str, password: str, **extra):
    return browser.post(LOGIN, {"login": email, "password": password, **extra})


def test_a_person_signs_in_with_mail_and_password(acme):
    person = a_person(email="kim@example.com")
    browser = a_browser("acme")
    answer = _try(browser, "Kim@Example.com", PASSWORD)
    assert answer.status_code == 302
    assert browser.session["_auth_user_id"] == str(person.pk)
    assert AuditEntry.objects.get(action="person.signed_in").actor_id == person.pk


def test_after_signing_in_a_person_is_where_they_wanted_to_go(acme):
    a_person(email="kim@example.com")
    answer = _try(a_browser("acme"), "kim@example.com", PASSWORD, next="/orders/")
    assert answer["Location"] == "/orders/"


def test_finance_begins_at_its_desk_and_everybody_else_at_the_start(platform):
    for role, start in ((Role.FINANCE, "/finance/"), (Role.OPERATOR, "/")):
        with platform_context():
            person = a_person(role)
        browser = a_browser("console")
        assert browser.get("/")["Location"] == LOGIN
        assert _try(browser, person.email, PASSWORD)["Location"] == start


def test_a_way_back_to_another_host_is_not_followed(acme):
    a_person(email="kim@example.com")
    answer = _try(a_browser("acme"), "kim@example.com", PASSWORD, next="https://elsewhere.test/")
    assert answer["Location"] == "/"


def test_five_wrong_passwords_lock_the_account_and_say_when_to_try_again(acme):
    a_person(email="kim@example.com")
    browser = a_browser("acme")
    for _attempt in range(5):
        assert _try(browser, "kim@example.com", "wrong").status_code == 200
    answer = _try(browser, "KIM@example.com", PASSWORD)
    text = answer.content.decode()
    assert "_auth_user_id" not in browser.session
    assert re.search(r"Too many failed sign-ins. Try again in [1-5] minutes", text)
    assert AuditEntry.objects.filter(action="person.sign_in_failed").count() == 5
    assert AuditEntry.objects.filter(action="person.locked_out").count() == 1


def test_a_lock_out_does_not_touch_the_same_address_of_another_tenant(acme, globex):
    a_person(email="kim@example.com")
    with tenant_context(globex):
        a_person(email="kim@example.com")
    browser = a_browser("acme")
    for _attempt in range(6):
        _try(browser, "kim@example.com", "wrong")
    assert _try(a_browser("globex"), "kim@example.com", PASSWORD).status_code == 302
    with tenant_context(globex):
        assert not AuditEntry.objects.filter(action="person.locked_out").exists()


def test_a_wrong_password_and_an_unknown_address_read_the_same(acme):
    a_person(email="kim@example.com")
    known = _try(a_browser("acme"), "kim@example.com", "wrong").content.decode()
    unknown = _try(a_browser("acme"), "lee@example.com", "wrong").content.decode()
    hide = re.compile(r"kim@example.com|lee@example.com|value=\"\w{64}\"|\w{64}")
    assert hide.sub("", known) == hide.sub("", unknown)


def test_a_person_of_one_tenant_cannot_sign_in_at_another(acme):
    a_person(email="kim@example.com")
    browser = a_browser("globex")
    assert _try(browser, "kim@example.com", PASSWORD).status_code == 200
    assert "_auth_user_id" not in browser.session


def test_staff_sign_in_at_the_console_only(platform, acme):
    with platform_context():
        a_person("operator", email="ops@example.com")
    assert _try(a_browser("acme"), "ops@example.com", PASSWORD).status_code == 200
    assert _try(a_browser("console"), "ops@example.com", PASSWORD).status_code == 302


def test_a_session_of_one_tenant_is_nobody_on_another_host(acme, globex):
    browser = a_browser("acme", user=a_person())
    key = browser.cookies["neo_session"].value
    assert Session.objects.filter(pk=key).exists()
    other = a_browser("globex")
    other.cookies["neo_session"] = key
    answer = other.get("/account/password/change/")
    assert answer.status_code == 302
    assert answer["Location"].startswith(LOGIN)
    with tenant_context(globex):
        assert not Session.objects.filter(pk=key).exists()


def test_nobody_signs_up(acme):
    answer = a_browser("acme").post(
        "/account/signup/", {"email": "new@example.com", "password1": PASSWORD}
    )
    assert answer.status_code == 200
    assert not Session.objects.exists()
    assert not User.objects.filter(email="new@example.com").exists()


def test_a_forgotten_password_is_set_anew_by_mail(acme):
    person = a_person(email="kim@example.com")
    browser = a_browser("acme")
    browser.post("/account/password/reset/", {"email": "kim@example.com"})
    link = re.search(r"http\S+/account/password/reset/key/\S+", mail.outbox[0].body)
    assert link
    path = link[0].split("acme.localhost", 1)[1]
    form = browser.get(path[path.index("/") :], follow=True)
    chosen = "another long passphrase"
    browser.post(form.request["PATH_INFO"], {"password1": chosen, "password2": chosen})
    person.refresh_from_db()
    assert person.check_password(chosen)
    assert AuditEntry.objects.filter(action="person.password_changed").exists()


def test_a_person_shut_out_is_nobody_at_the_next_click(acme):
    person = a_person()
    browser = a_browser("acme", user=person)
    assert browser.get("/account/password/change/").status_code == 200
    person.is_active = False
    person.save()
    assert browser.get("/account/password/change/")["Location"].startswith(LOGIN)


def test_the_language_chosen_stays_with_the_person(acme):
    person = a_person()
    browser = a_browser("acme", user=person)
    answer = browser.post("/preferences", {"language": "ko", "next": "/"})
    person.refresh_from_db()
    assert (answer.status_code, person.language) == (302, "ko")
    assert browser.cookies["neo_language"].value == "ko"
