"""What falls due: once, at its instant, in its tenant, whatever goes wrong on the way."""

import threading
from datetime import timedelta

import pytest
from django.db import connections, transaction

from apps.core import clock
from apps.core.realms import current_tenant_id
from apps.core.uuids import uuid7
from apps.orders import deadlines
from apps.orders.deadlines import clear_deadline, deadline_of, serve_due, set_deadline
from apps.orders.models import Deadline
from apps.tenancy.context import platform_context, tenant_context
from tests import builders

HOUR = timedelta(hours=1)


@pytest.fixture
def served(monkeypatch):
    """What the handler of `thing.due` was given; `served.act` is what it does besides."""

    class Log(list):
        act = staticmethod(lambda deadline: None)

    log = Log()

    def handle(deadline):
        log.append((current_tenant_id(), deadline.subject, deadline.due_at))
        log.act(deadline)

    monkeypatch.setitem(deadlines._HANDLERS, "thing.due", handle)
    return log


def _due(subject, at, kind="thing.due"):
    set_deadline(kind=kind, subject=subject, due_at=at)


def _serve():
    with platform_context():
        return serve_due()


def test_a_deadline_is_served_once_in_its_tenant_at_its_instant_or_later(acme, served):
    thing, at = uuid7(), clock.now() + HOUR
    _due(thing, at)
    assert _serve() == 0
    builders.move_clock(at + HOUR)  # the task comes an hour late
    assert _serve() == 1
    assert _serve() == 0
    assert served == [(acme.pk, thing, at)]
    assert deadline_of(kind="thing.due", subject=thing) is None


def test_setting_it_again_moves_the_one_row(acme, served):
    thing, at = uuid7(), clock.now()
    for hours in (1, 2, 2, 3):
        _due(thing, at + hours * HOUR)
    assert Deadline.objects.count() == 1
    builders.move_clock(at + 2.5 * HOUR)
    assert _serve() == 0
    builders.move_clock(at + 3 * HOUR)
    assert _serve() == 1


def test_a_cleared_one_is_never_served(acme, served):
    thing, at = uuid7(), clock.now()
    _due(thing, at)
    clear_deadline(kind="thing.due", subject=thing)
    clear_deadline(kind="thing.due", subject=thing)
    assert _serve() == 0
    assert served == []


def test_one_that_fails_backs_off_alone_and_leaves_nothing_of_its_work(acme, served):
    bad, good, at = uuid7(), uuid7(), clock.now()

    def act(deadline):
        if deadline.subject == bad and len(served) < 3:
            _due(uuid7(), at + 99 * HOUR, kind="left.behind")
            raise ValueError("not yet")

    served.act = act
    _due(bad, at)
    _due(good, at + timedelta(microseconds=1))
    assert _serve() == 1
    row = Deadline.objects.get(subject=bad)
    assert (row.attempts, row.last_error) == (1, "ValueError: not yet")
    assert not Deadline.objects.filter(kind="left.behind").exists()
    builders.move_clock(at + timedelta(seconds=4))
    assert _serve() == 0
    builders.move_clock(at + timedelta(seconds=10))
    assert _serve() == 1
    assert [one[1] for one in served] == [bad, good, bad]
    assert all(one[2] == at for one in served if one[1] == bad)


def test_one_without_a_handler_waits_and_says_so(acme, served):
    _due(uuid7(), clock.now(), kind="nobody.knows")
    assert _serve() == 0
    assert "nobody.knows" in Deadline.objects.get().last_error


def test_a_worker_that_dies_between_claim_and_work_is_followed_by_another(acme, served):
    thing, at = uuid7(), clock.now()
    _due(thing, at)
    with platform_context():
        assert deadlines._claim() is not None  # and nobody comes back
    assert _serve() == 0
    builders.move_clock(at + timedelta(seconds=90))
    assert _serve() == 1
    assert [one[2] for one in served] == [at]


def test_a_handler_may_move_its_own_deadline(acme, served):
    thing, at = uuid7(), clock.now()
    served.act = lambda deadline: _due(thing, deadline.due_at + HOUR) if len(served) < 3 else None
    _due(thing, at)
    assert _serve() == 1
    builders.move_clock(at + 5 * HOUR)  # two are due by then, one after the other
    assert _serve() == 2
    assert [one[2] - at for one in served] == [0 * HOUR, HOUR, 2 * HOUR]
    assert not Deadline.objects.filter(done_at=None).exists()


def test_a_handler_may_clear_its_own_deadline(acme, served):
    thing = uuid7()
    served.act = lambda deadline: clear_deadline(kind="thing.due", subject=thing)
    _due(thing, clock.now())
    assert _serve() == 1
    assert _serve() == 0


def test_moving_it_while_it_is_served_takes_the_work_back(own_database, served):
    acme, thing, at = own_database.tenant("acme"), uuid7(), clock.now()
    with tenant_context(acme), transaction.atomic():
        _due(thing, at)

    def move_elsewhere():
        try:
            with tenant_context(acme), transaction.atomic():
                _due(thing, at + HOUR)
        finally:
            connections["default"].close()

    def act(deadline):
        _due(uuid7(), at + 99 * HOUR, kind="left.behind")
        other = threading.Thread(target=move_elsewhere)
        other.start()
        other.join()

    served.act = act
    assert _serve() == 0
    with tenant_context(acme):
        assert deadline_of(kind="thing.due", subject=thing) == at + HOUR
        assert not Deadline.objects.filter(kind="left.behind").exists()


def test_many_dispatchers_at_once_serve_each_deadline_once(own_database, served):
    acme, globex, at = own_database.tenant("acme"), own_database.tenant("globex"), clock.now()
    for tenant in (acme, globex):
        with tenant_context(tenant), transaction.atomic():
            for _number in range(20):
                _due(uuid7(), at)

    def work():
        try:
            _serve()
        finally:
            connections["default"].close()

    threads = [threading.Thread(target=work) for _number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(served) == len({one[1] for one in served}) == 40
    with platform_context():
        assert not Deadline.objects.filter(done_at=None).exists()
