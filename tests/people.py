"""Builders of people, and browsers they are signed in with."""

from itertools import count
from typing import Any

from django.conf import settings
from django.db import connection
from django.test import Client

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.tenancy.context import switch_to

PASSWORD = "a long enough passphrase"
_numbers = count(1)


def a_person(role: str = Role.OWNER, **columns: Any) -> User:
    """A person of the side the test is on."""
    number = next(_numbers)
    columns = {"email": f"person{number}@example.com", "name": f"Person {number}"} | columns
    user = User(role=role, **columns)
    user.set_password(PASSWORD)
    user.save(force_insert=True)
    return user


def an_operator(role: str = Role.PLATFORM_ADMIN, **columns: Any) -> User:
    """A person of the platform's staff; the test must be on the platform's side."""
    return a_person(role, **columns)


def host(side: str) -> str:
    """The host name of a tenant's slug, or of `console`."""
    return f"{side}.{settings.NEOCLOUD_BASE_DOMAIN}"


class Browser(Client):
    """A test client after whose requests the test is still on its own side."""

    def request(self, **request: Any) -> Any:
        """Ask, then come back."""
        side = connection.tenant
        try:
            return super().request(**request)
        finally:
            switch_to(side)


def a_browser(side: str = "acme", *, user: User | None = None, **options: Any) -> Browser:
    """A browser on that side's host; signed in as `user`, who must live on the current side."""
    browser = Browser(headers={"host": host(side)}, **options)
    if user is not None:
        browser.force_login(user)
    return browser
