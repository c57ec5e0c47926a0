"""The door servers call home at: who may, what is read, and that it tells nobody anything."""

import json
import re
from datetime import timedelta

import pytest
from django.db import connection
from django.test import Client

from apps.core import clock
from apps.core.uuids import uuid7
from apps.orders.states import ServiceState
from apps.provisioning import services
from apps.provisioning.models import CallHome, Run
from apps.tenancy.context import platform_context, switch_to
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def waiting(platform, acme):
    """A deployed server that has not called yet: its run and its token."""
    with platform_context():
        world.a_fake_site(nodes=3)
    order = world.an_accepted_order()
    for _round in range(5):
        world.step()
    service = world.the_service(order)
    with platform_context():
        run = Run.objects.get(service=service.pk)
        return run, world.token_of(run.node_id)


def post(run_id, token, body, *, host="203.0.113.7", **headers):
    """What a server sends, from anywhere to any host name."""
    side = connection.tenant
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    given = {"host": host} | headers
    if token is not None:
        given["authorization"] = f"Bearer {token}"
    try:
        return Client().post(
            f"/call-home/{run_id}", data=body, content_type="application/json", headers=given
        )
    finally:
        switch_to(side)


def untouched(run):
    with platform_context():
        return not CallHome.objects.filter(run=run, received_at__isnull=False).exists()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "nowhere.example", "acme.localhost", "console.localhost"]
)
def test_a_report_is_taken_at_any_host_and_wakes_the_run(waiting, host):
    run, token = waiting
    Run.objects.filter(pk=run.pk).update(next_try_at=clock.now() + timedelta(hours=1))

    answer = post(run.pk, token, world.healthy(run), host=host)

    assert answer.status_code == 202
    run.refresh_from_db()
    assert run.next_try_at <= clock.now()
    world.step()
    assert world.Service.objects.get(pk=run.service).state == ServiceState.ACTIVE


def test_the_same_report_again_is_taken_quietly_and_changes_nothing(waiting):
    run, token = waiting
    post(run.pk, token, world.healthy(run))
    with platform_context():
        before = CallHome.objects.get(run=run, received_at__isnull=False)

    answer = post(run.pk, token, {"gpus": []})

    assert answer.status_code == 200
    with platform_context():
        after = CallHome.objects.get(pk=before.pk)
    assert (after.report, after.received_at) == (before.report, before.received_at)


def test_nobody_learns_which_part_was_wrong(waiting, globex):
    run, token = waiting
    other = world.an_accepted_order(name="other")
    for _round in range(5):
        world.step()
    service = world.the_service(other)
    with platform_context():
        second = Run.objects.get(service=service.pk)
        ended = world.token_of(second.node_id)
        CallHome.objects.filter(run=second).update(revoked_at=clock.now())
    report = world.healthy(run)

    answers = [
        post(run.pk, "neo_home_wrong", report),
        post(run.pk, None, report),
        post(run.pk, "", report),
        post(uuid7(), token, report),  # no such run
        post(second.pk, token, report),  # the token of another run
        post(second.pk, ended, report),  # revoked
    ]

    assert {answer.status_code for answer in answers} == {403}
    told = {_without_marks(answer) for answer in answers}
    assert len(told) == 1, told
    assert untouched(run)
    assert untouched(second)


def _without_marks(answer):
    """The answer without what differs at every request: its id and the script nonce."""
    return re.sub(
        r"[0-9a-f-]{32,}|nonce-\\S+|\"[A-Za-z0-9+/_=-]{20,}\"", "", answer.content.decode()
    )


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b"3",
        b"{",
        b"\xff\xfe",
        b'{"gpus": NaN}',
        b'{"gpus": 1e999}',
        b'{"gpus": "\\u0000"}',
        b'{"gpus": "\\ud800"}',
        b'{"gpus": ' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    ],
)
def test_a_body_that_is_no_report_is_refused_and_the_server_may_try_again(waiting, body):
    run, token = waiting

    answer = post(run.pk, token, body)

    assert answer.status_code == 422, answer.content
    assert untouched(run)
    assert post(run.pk, token, world.healthy(run)).status_code == 202


@pytest.mark.parametrize("promised", [None, "10", "70000", "none", "-1", "9" * 40])
def test_no_more_than_the_limit_is_read_whatever_the_header_promises(waiting, promised):
    run, token = waiting
    body = b'{"x": "' + b"y" * services.LARGEST_REPORT + b'"}'
    extra = {} if promised is None else {"content-length": promised}

    answer = post(run.pk, token, body, **extra)

    assert answer.status_code == 422
    assert untouched(run)


def test_other_methods_are_refused(waiting):
    run, _token = waiting
    side = connection.tenant
    answers = [getattr(Client(), verb)(f"/call-home/{run.pk}") for verb in ("get", "put", "delete")]
    switch_to(side)

    assert {answer.status_code for answer in answers} == {405}


@pytest.mark.parametrize(
    "said",
    [
        {"gpus": [{"uuid": ["a"], "name": {}, "memory_mib": "much"}] * 8},
        {"gpus": {}, "addresses": 7, "mounts": ["x"], "authorized_keys": None},
        {"ssh_host_keys": {"a": 1}},
        {"driver": ""},
        {"authorized_keys": []},
        {"addresses": ["10.20.0.99/24"]},
    ],
)
def test_a_report_that_lies_or_rambles_is_the_nodes_fault_and_kept_as_evidence(waiting, said):
    run, token = waiting

    assert post(run.pk, token, world.healthy(run) | said).status_code == 202
    world.step()

    service = world.Service.objects.get(pk=run.service)
    assert service.state == ServiceState.PROVISIONING
    assert service.condition == "replacing"
    with platform_context():
        step = Run.objects.get(pk=run.pk).events.filter(kind="failed").latest("id")
    assert "node_fault" in step.detail


def test_a_token_that_seemed_lost_may_be_the_one_that_was_deployed(waiting):
    run, token = waiting
    with platform_context():
        CallHome.objects.create(
            run=run, tenant=run.tenant, node=run.node, token_hash="0" * 64
        )  # asked again: the first request seemed lost

    assert post(run.pk, token, world.healthy(run)).status_code == 202
    world.step()

    assert world.Service.objects.get(pk=run.service).state == ServiceState.ACTIVE
