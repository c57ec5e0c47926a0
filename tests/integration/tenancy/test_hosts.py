"""The host decides the side: known, unknown, not ready."""

import json

import pytest
from django.core.cache import cache
from django.test import Client

from apps.core.realms import speaker
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.middleware import forget_hosts
from apps.tenancy.models import Tenant
from apps.tenancy.states import TENANT
from tests.people import a_browser, host

PAGE = "/account/login/"


def _status(host_name, path=PAGE, **headers):
    return Client(headers={"host": host_name} | headers).get(path).status_code


@pytest.mark.parametrize("side", ["acme", "globex", "console"])
def test_a_known_host_answers(db, side):
    assert _status(host(side)) == 200


@pytest.mark.parametrize(
    "name", ["nobody.localhost", "acme.example.com", "localhost", "console.acme.localhost", "a..b"]
)
def test_an_unknown_host_is_not_found_and_has_no_side(db, name):
    assert _status(name) == 404


def test_case_and_port_of_a_host_do_not_matter(db):
    assert _status("ACME.localhost:8000") == 200


def test_the_console_is_not_on_a_tenants_host_nor_the_portal_on_the_console(db):
    assert _status(host("acme"), "/finance/") == 404
    assert _status(host("acme"), "/readyz") != 404  # health answers on any host


@pytest.fixture
def behind(platform):
    Tenant.objects.filter(slug="acme").update(schema_version="of another program")
    forget_hosts()
    yield
    forget_hosts()


def test_a_tenant_of_another_version_answers_503_and_the_others_go_on(behind):
    answer = Client(headers={"host": host("acme")}).get(PAGE)
    assert answer.status_code == 503
    assert answer["Retry-After"] == "60"
    assert _status(host("globex")) == 200
    problem = Client(headers={"host": host("acme")}).get("/api/v1/me")
    assert json.loads(problem.content)["code"] == "tenant_not_ready"


def test_a_tenant_of_another_version_is_not_entered_by_code_either(behind):
    from apps.tenancy.errors import TenantNotReady

    with platform_context():
        acme = Tenant.objects.get(slug="acme")
    with pytest.raises(TenantNotReady), tenant_context(acme):
        pass


def test_a_closed_tenant_is_gone(platform):
    acme = Tenant.objects.get(slug="acme")
    TENANT.move(acme, "close")
    acme.save()
    forget_hosts()
    assert _status(host("acme")) == 404


def test_a_request_leaves_the_connection_speaking_for_nobody(db):
    Client(headers={"host": host("acme")}).get(PAGE)
    assert speaker() == ""


def test_cached_answers_are_kept_by_tenant(acme, globex):
    cache.set("figure", 111)
    with tenant_context(globex):
        assert cache.get("figure") is None
        cache.set("figure", 222)
    with platform_context():
        assert cache.get("figure") is None
    assert cache.get("figure") == 111


def test_what_a_host_remembers_is_asked_of_the_database_once(db, django_assert_num_queries):
    a_browser("acme").get(PAGE)
    with django_assert_num_queries(0):
        Client(headers={"host": host("acme")}).get("/no-such-page")
