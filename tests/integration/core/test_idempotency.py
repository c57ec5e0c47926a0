"""Repeated requests: one key, one effect."""

import threading
from datetime import timedelta

import pytest
from django.db import connection

from apps.accounts.models import Project
from apps.core import clock
from apps.core.idempotency import (
    KEPT,
    KeyMalformed,
    KeyReused,
    forget_old,
    once,
    request_hash,
)
from apps.core.models import IdempotencyKey, WorkPending
from apps.core.tasks import forget_answers_of_platform, forget_answers_of_tenant
from apps.tenancy.context import platform_context, tenant_context


def _make(name="p"):
    def act():
        project = Project.objects.create(name=name)
        return 201, {"id": project.pk, "name": name}

    return act


ASKED = request_hash("POST", "/projects", {"name": "p"})


def test_the_same_key_and_body_get_the_same_answer_again(acme):
    first = once(actor="a", key="k1", asked=ASKED, act=_make())
    again = once(actor="a", key="k1", asked=ASKED, act=_make("other"))
    assert (first.status, first.body) == (again.status, again.body)
    assert (first.is_repeat, again.is_repeat) == (False, True)
    assert Project.objects.count() == 1


def test_the_same_key_with_another_body_is_a_conflict(acme):
    once(actor="a", key="k1", asked=ASKED, act=_make())
    with pytest.raises(KeyReused, match="k1"):
        once(actor="a", key="k1", asked=request_hash("other"), act=_make("other"))
    assert Project.objects.count() == 1


def test_a_request_that_failed_left_nothing_and_its_key_may_be_used_again(acme):
    def fail():
        Project.objects.create(name="half")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        once(actor="a", key="k1", asked=ASKED, act=fail)
    assert not Project.objects.exists()
    assert once(actor="a", key="k1", asked=ASKED, act=_make()).status == 201


def test_two_people_and_two_tenants_may_use_the_same_key(acme, globex):
    once(actor="a", key="k1", asked=ASKED, act=_make("a"))
    assert not once(actor="b", key="k1", asked=ASKED, act=_make("b")).is_repeat
    with tenant_context(globex):
        assert not once(actor="a", key="k1", asked=ASKED, act=_make("a")).is_repeat


@pytest.mark.parametrize("key", ["", "x" * 201, "line\nbreak", "열쇠"])
def test_a_malformed_key_is_refused(acme, key):
    with pytest.raises(KeyMalformed):
        once(actor="a", key=key, asked=ASKED, act=_make())


def test_the_order_of_a_bodys_fields_does_not_matter():
    assert request_hash({"a": 1, "b": 2}) == request_hash({"b": 2, "a": 1})
    assert request_hash({"a": 1}) != request_hash({"a": "1"})


def test_requests_at_the_same_time_have_one_effect(own_database):
    acme = own_database.tenant("acme")
    start, answers = threading.Barrier(6), []

    def ask():
        start.wait()
        with tenant_context(acme):
            answers.append(once(actor="a", key="k1", asked=ASKED, act=_make()))
        connection.close()

    threads = [threading.Thread(target=ask) for _six in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 6
    assert len({str(answer.body) for answer in answers}) == 1
    assert sum(not answer.is_repeat for answer in answers) == 1
    with tenant_context(acme):
        assert Project.objects.count() == 1


def _after(**time):
    """Move the clock of this transaction on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('neo.clock_offset', %s, true)", [str(timedelta(**time))])


def test_answers_are_forgotten_in_batches_when_their_time_is_over(acme):
    for number in range(3):
        once(actor="a", key=f"k{number}", asked=ASKED, act=_make(f"p{number}"))
    mark = WorkPending.objects.get(kind="forget_answers", tenant=acme.pk)
    assert mark.due_at == pytest.approx(clock.now() + KEPT, abs=timedelta(minutes=1))

    # before their time nothing is lost
    _after(days=6)
    assert forget_old() > clock.now()
    assert IdempotencyKey.objects.count() == 3

    # after it they go, a batch at a time, and a key of today stays
    _after(days=8)
    once(actor="a", key="today", asked=ASKED, act=_make("today"))
    assert forget_old(limit=2) <= clock.now()
    assert IdempotencyKey.objects.count() == 2
    assert forget_old(limit=2) > clock.now()
    assert IdempotencyKey.objects.get().key == "today"
    assert once(actor="a", key="k0", asked=ASKED, act=_make("again")).is_repeat is False


def test_a_tenants_task_takes_its_mark_and_comes_again_for_what_is_left(acme):
    once(actor="a", key="old", asked=ASKED, act=_make())
    _after(days=8)
    once(actor="a", key="today", asked=ASKED, act=_make("today"))
    forget_answers_of_tenant.run()
    assert IdempotencyKey.objects.get().key == "today"
    mark = WorkPending.objects.get(kind="forget_answers", tenant=acme.pk)
    assert mark.due_at > clock.now() + timedelta(days=6)


def test_the_platform_forgets_its_own_answers_and_leaves_no_mark(acme):
    with platform_context():
        once(actor="a", key="old", asked=ASKED, act=lambda: (200, {}))
        _after(days=8)
        forget_answers_of_platform.run()
        assert not IdempotencyKey.objects.exists()
        assert not WorkPending.objects.filter(kind="forget_answers").exists()
