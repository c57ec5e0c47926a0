"""The frame around every page: language, theme, sign-in, errors, who may see what."""

import pytest
from django.urls import reverse

from apps.accounts.roles import Role
from tests.integration.portal.shop import Shop
from tests.people import Browser, a_browser, a_person


def url(name: str) -> str:
    return reverse(name, urlconf="neocloud.urls_tenant")


def test_the_language_and_the_theme_are_kept_in_this_browser(browser: Browser):
    browser.post(url("preferences"), {"language": "ko", "next": "/catalog/"})
    browser.post(url("preferences"), {"theme": "dark"})
    page = browser.get(url("portal:home"))
    assert '<html lang="ko"' in page.text
    assert 'data-bs-theme="dark"' in page.text


@pytest.mark.parametrize("elsewhere", ["https://evil.example/", "//evil.example", "javascript:x"])
def test_preferences_lead_back_to_this_host_only(browser: Browser, elsewhere: str):
    answer = browser.post(url("preferences"), {"theme": "light", "next": elsewhere})
    assert answer["Location"] == "/"


def test_nobody_sees_a_page_without_signing_in(shop: Shop):
    answer = a_browser().get(url("portal:home"))
    assert answer.status_code == 302
    assert answer["Location"].startswith(url("account_login"))


def test_the_sign_in_page_says_what_was_wrong(shop: Shop):
    page = a_browser().post(
        url("account_login"), {"login": shop.owner.email, "password": "not this one"}
    )
    assert page.status_code == 200
    assert 'role="alert"' in page.text


def test_the_side_bar_shows_only_what_the_role_may_open(shop: Shop):
    page = a_browser(user=a_person(Role.VIEWER)).get(url("portal:home"))
    assert url("portal:catalog") in page.text
    assert f'href="{url("portal:members")}"' not in page.text
    assert "Cost this month" not in page.text


def test_a_page_the_role_may_not_open_names_who_may(shop: Shop):
    page = a_browser(user=a_person(Role.VIEWER)).get(url("portal:members"))
    assert page.status_code == 403
    assert "member.manage" in page.text


def test_an_unknown_address_answers_with_the_number_of_the_request(browser: Browser):
    page = browser.get("/nowhere/")
    assert page.status_code == 404
    assert "Request <code>" in page.text
