"""Running servers by API alone: power, reinstallation, rescue, screen, name and tags."""

import pytest

from apps.orders.models import Service
from apps.provisioning.models import Run
from apps.tenancy.context import tenant_context
from tests.integration.api.program import Program
from tests.integration.provisioning import world


@pytest.fixture
def service(shop, program):
    return world.until_ready(world.an_accepted_order())


@pytest.mark.parametrize(
    ("verb", "condition"),
    [
        ("power-off", "powering"),
        ("reboot", "rebooting"),
        ("power-cycle", "rebooting"),
        ("reinstall", "reinstalling"),
    ],
)
def test_a_verb_answers_with_the_work_it_began(program: Program, service, verb, condition):
    answer = program.post(f"services/{service.pk}/{verb}", {"reason": "x"}, status=202)

    assert (answer["status"], answer["condition"]) == ("active", condition)
    assert answer["progress"]["step"] == 1
    assert answer["run"] == str(Run.objects.filter(service=service.pk).latest("created_at").pk)


def test_what_is_refused_says_why(program: Program, service):
    problem = program.refused("POST", f"services/{service.pk}/power-on", {}, status=409)
    assert problem["code"] == "not_now"

    program.post(f"services/{service.pk}/reboot", {}, status=202)
    problem = program.refused("POST", f"services/{service.pk}/reboot", {}, status=409)
    assert problem["code"] == "work_under_way"


def test_the_same_key_begins_one_work(program: Program, service):
    first = program.post(f"services/{service.pk}/reboot", {}, status=202, Idempotency_Key="r-1")
    again = program.post(f"services/{service.pk}/reboot", {}, status=202, Idempotency_Key="r-1")

    assert first["run"] == again["run"]
    assert Run.objects.filter(service=service.pk).count() == 2


def test_rescue_needs_a_password_and_shows_none(program: Program, service):
    program.refused("POST", f"services/{service.pk}/rescue", {}, status=422)
    answer = program.post(
        f"services/{service.pk}/rescue", {"password": "a long password"}, status=202
    )
    assert answer["condition"] == "rescuing"
    assert "a long password" not in str(answer)


def test_name_and_tags(program: Program, service):
    answer = program.ask("PUT", f"services/{service.pk}/name", {"name": "trainer-9"})
    assert answer.json()["name"] == "trainer-9"
    answer = program.ask("PUT", f"services/{service.pk}/tags", {"tags": {"team": "vision"}})
    assert answer.json()["tags"] == {"team": "vision"}
    program.refused("PUT", f"services/{service.pk}/tags", {"tags": {"A B": "x"}}, status=422)
    program.refused("PUT", f"services/{service.pk}/tags", {"tags": ["x"]}, status=422)


def test_a_console_is_shown_where_there_is_one(program: Program, service):
    path = f"services/{service.pk}/console"
    assert program.refused("POST", path, {}, status=409)["code"] == "no_console"
    for node in world.fake().nodes.values():
        node.console_url = "http://127.0.0.1:9/"

    shown = program.post(path, {}, status=200)

    assert shown == {"kind": "shellinabox", "url": "http://127.0.0.1:9/"}
    assert Service.objects.get(pk=service.pk).condition == ""


def test_an_operator_replaces_a_lost_host_with_a_reason(shop, console: Program, acme_apart):
    with tenant_context(acme_apart):
        service = world.until_ready(world.an_accepted_order())
    path = f"services/{service.pk}/replace-host"

    console.refused("POST", path, {}, status=422)
    answer = console.post(path, {"reason": "no answer"}, status=202)

    assert (answer["status"], answer["condition"]) == ("suspended", "replacing")
