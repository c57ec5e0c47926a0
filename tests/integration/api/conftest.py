"""Programs that talk to the API, and a shop they can buy from."""

from typing import Any

import pytest

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.tenancy.context import platform_context
from apps.tenancy.models import Tenant
from tests.integration.api.program import Program
from tests.integration.provisioning.world import a_fake_site
from tests.people import a_person, an_operator


@pytest.fixture
def owner(acme: Any) -> User:
    """The owner of acme; the test runs in acme."""
    return a_person(Role.OWNER)


@pytest.fixture
def program(owner: User) -> Program:
    """A program with an access key of acme's owner."""
    return Program.of(owner)


@pytest.fixture
def operator(platform: None) -> User:
    """A platform administrator; the test runs on the platform's side."""
    return an_operator()


@pytest.fixture
def console(operator: User) -> Program:
    """A program with an access key of a platform administrator."""
    return Program.of(operator, side="console")


@pytest.fixture
def shop(db: None) -> Any:
    """A site that sells two servers of `bm.h200.8x` at 4000 KRW for a GPU-hour."""
    with platform_context():
        return a_fake_site(nodes=2)


@pytest.fixture
def acme_apart(db: None) -> Any:
    """The tenant acme, while the test stays on the platform's side."""
    with platform_context():
        return Tenant.objects.get(slug="acme")
