"""Where tenants would not be kept apart, neither web nor worker starts."""

import os
import subprocess
import sys

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import call_command
from django.core.management.base import SystemCheckError
from django.db import connection, connections

from apps.tenancy import checks
from tests import databases

ROOT = databases.ROOT


@pytest.fixture
def as_superuser(own_database):
    user, password = connection.settings_dict["USER"], connection.settings_dict["PASSWORD"]
    superuser = databases.entry(databases.superuser_url())
    connection.close()
    connection.settings_dict |= {name: superuser[name] for name in ("USER", "PASSWORD")}
    yield
    connection.close()
    connection.settings_dict |= {"USER": user, "PASSWORD": password}


@pytest.fixture
def as_owner(own_database):
    user = connection.settings_dict["USER"]
    connection.close()
    connection.settings_dict["USER"] = "neo_owner"
    yield
    connection.close()
    connection.settings_dict["USER"] = user


def test_the_app_role_is_fine(own_database):
    assert checks.unsafe_database() is None
    checks.refuse_unsafe_database()


def test_a_superuser_is_refused(as_superuser):
    with pytest.raises(ImproperlyConfigured, match="exempt from row level security; use neo_app"):
        checks.refuse_unsafe_database()


def test_the_owner_is_refused(as_owner):
    with pytest.raises(ImproperlyConfigured, match="owns the tables"):
        checks.refuse_unsafe_database()


def test_the_deployment_check_says_the_same(as_owner):
    with pytest.raises(SystemCheckError, match=r"tenancy\.E001"):
        call_command("check", databases=["default"])


def test_two_connections_with_one_backend_are_a_pooler_in_transaction_mode(
    own_database, monkeypatch
):
    assert not checks.transaction_pooler()
    wrapper = type(connections["default"])
    monkeypatch.setattr(wrapper, "copy", lambda self, alias=None: _Shared(self))
    assert checks.transaction_pooler()
    with pytest.raises(ImproperlyConfigured, match="pooler in transaction mode"):
        checks.refuse_unsafe_database()


class _Shared:
    """A connection through PgBouncer in transaction mode: somebody else's backend."""

    def __init__(self, real):
        self._real = real

    def __getattr__(self, name):
        return getattr(self._real, name)

    def close(self):
        """The backend stays with the pooler."""


def _start(role, database, program):
    return subprocess.run(
        [sys.executable, *program],
        cwd=ROOT,
        env={
            **os.environ,
            "DATABASE_URL": databases.url_of(role, database),
            "BROKER_URL": "memory://",
            "DJANGO_SETTINGS_MODULE": "neocloud.settings.test",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )


WEB = ["-c", "import neocloud.wsgi"]
WORKER = ["-m", "celery", "-A", "neocloud", "worker", "--pool", "solo", "--loglevel", "error"]


@pytest.mark.parametrize("program", [WEB, WORKER], ids=["web", "worker"])
def test_a_process_with_the_owners_role_ends_at_once_and_says_why(own_database, program):
    ended = _start("neo_owner", own_database.name, program)
    assert ended.returncode != 0
    assert "owns the tables" in ended.stderr


def test_a_web_process_with_the_app_role_starts(own_database):
    started = _start("neo_app", own_database.name, WEB)
    assert started.returncode == 0, started.stderr
