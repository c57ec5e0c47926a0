"""The relay and the dispatcher: in order per subject, at least once, nothing rolled back."""

import threading
from contextlib import suppress
from datetime import timedelta

import pytest
from django.db import connection, transaction

from apps.core import outbox
from apps.core.models import OutboxEvent, WorkPending
from apps.core.realms import current_tenant_id
from apps.core.uuids import uuid7
from apps.tenancy import relay
from apps.tenancy.context import platform_context, tenant_context


@pytest.fixture
def seen(monkeypatch, own_database):
    """What handlers of `thing.happened` were given, on a database of its own."""
    relay.load_handlers()
    log = []

    def note(event):
        if event.payload.get("fails") and not event.payload.get("mended"):
            raise ValueError("not yet")
        log.append((current_tenant_id(), event.subject, event.payload.get("n")))

    monkeypatch.setattr(outbox, "HANDLERS", {"thing.happened": [note]})
    monkeypatch.setattr(relay, "HANDLERS", outbox.HANDLERS)
    return log


def _deliver(own_database=None):
    """Run the relay; with the database given, after all that was begun before has ended."""
    if own_database is not None:
        own_database.settle()
    with platform_context():
        return relay.deliver_waiting()


def _publish(tenant, subject, **payload):
    with tenant_context(tenant), transaction.atomic():
        return outbox.publish("thing.happened", subject=subject, **payload)


def test_events_arrive_in_order_in_their_tenant_and_once(own_database, seen):
    acme, globex, thing = own_database.tenant("acme"), own_database.tenant("globex"), uuid7()
    for number in range(3):
        _publish(acme, thing, n=number)
    _publish(globex, thing, n=9)
    with platform_context(), transaction.atomic():
        outbox.publish("thing.happened", subject=thing, n=7)
    assert _deliver(own_database) == 5
    assert seen == [(acme.pk, thing, 0), (acme.pk, thing, 1), (acme.pk, thing, 2),
                    (globex.pk, thing, 9), (None, thing, 7)]  # fmt: skip
    assert _deliver() == 0


def test_an_event_is_not_published_outside_a_transaction(own_database):
    with (
        tenant_context(own_database.tenant("acme")),
        pytest.raises(RuntimeError, match="inside the transaction"),
    ):
        outbox.publish("thing.happened", subject=uuid7())


def test_an_event_of_a_change_that_was_rolled_back_never_arrives(own_database, seen):
    acme = own_database.tenant("acme")
    with tenant_context(acme), suppress(ZeroDivisionError), transaction.atomic():
        outbox.publish("thing.happened", subject=uuid7(), n=1)
        raise ZeroDivisionError
    assert _deliver() == 0
    assert seen == []


def _insert(connection_, tenant, subject, n):
    connection_.execute("SET neo.tenant = 'platform'")
    connection_.execute("BEGIN")
    connection_.execute(
        "INSERT INTO public.core_outboxevent (tenant, name, subject, payload, attempts, last_error)"
        " VALUES (%s, 'thing.happened', %s, jsonb_build_object('n', %s::int), 0, '')",
        [tenant.pk, subject, n],
    )


def test_an_event_is_delivered_only_when_its_change_is_there(own_database, seen):
    acme, thing = own_database.tenant("acme"), uuid7()
    slow = own_database.connect()
    _insert(slow, acme, thing, 1)
    _publish(acme, thing, n=2)
    assert _deliver() == 0  # the second waits too, or the order would be lost
    slow.execute("COMMIT")
    slow.close()
    assert _deliver(own_database) == 2
    assert [n for _tenant, _thing, n in seen] == [1, 2]


def test_a_failing_event_backs_off_and_holds_back_only_its_own_subject(own_database, seen):
    acme, bad, good = own_database.tenant("acme"), uuid7(), uuid7()
    event = _publish(acme, bad, n=1, fails=True)
    _publish(acme, bad, n=2)
    _publish(acme, good, n=3)
    assert _deliver(own_database) == 1
    assert [n for *_who, n in seen] == [3]
    with platform_context():
        event.refresh_from_db()
        assert event.attempts == 1
        assert event.last_error == "ValueError: not yet"
        assert event.next_try_at > event.created_at
        OutboxEvent.objects.filter(pk=event.pk).update(payload={"n": 1, "fails": 1, "mended": 1})
    assert _deliver() == 0  # not before its time
    with platform_context():
        OutboxEvent.objects.update(next_try_at=event.created_at - timedelta(seconds=1))
    assert _deliver(own_database) == 2
    assert [n for *_who, n in seen] == [3, 1, 2]


def test_what_a_failing_handler_wrote_is_undone(own_database, monkeypatch):
    acme = own_database.tenant("acme")

    def half(event):
        WorkPending.objects.create(kind="half", tenant=acme.pk)
        raise ValueError

    monkeypatch.setattr(relay, "HANDLERS", {"thing.happened": [half]})
    _publish(acme, uuid7())
    assert _deliver(own_database) == 0
    with platform_context():
        assert not WorkPending.objects.exists()


def test_a_relay_that_dies_between_handling_and_noting_delivers_again(
    own_database, seen, monkeypatch
):
    _publish(own_database.tenant("acme"), uuid7(), n=1)
    with monkeypatch.context() as dying:
        dying.setattr(
            relay, "_deliver", lambda event: (relay.HANDLERS[event.name][0](event), 1 / 0)
        )
        with pytest.raises(ZeroDivisionError):
            _deliver(own_database)
    assert _deliver(own_database) == 1
    assert len(seen) == 2


def test_two_relays_at_once_deliver_once(own_database, seen):
    _publish(own_database.tenant("acme"), uuid7(), n=1)
    other = own_database.connect()
    other.execute("SELECT pg_advisory_lock(%s)", [relay._LOCK])
    own_database.settle()
    assert _deliver() == 0
    other.close()
    start, results = threading.Barrier(2), []

    def run():
        start.wait()
        results.append(_deliver())
        connection.close()

    threads = [threading.Thread(target=run) for _two in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(results) == 1
    assert len(seen) == 1


def test_work_left_by_a_tenant_is_sent_to_that_tenant_and_not_twice(own_database, monkeypatch):
    sent = []
    monkeypatch.setattr(
        "apps.audit.tasks.seal_tenant.apply_async", lambda **options: sent.append(options)
    )
    acme = own_database.tenant("acme")
    with tenant_context(acme):
        outbox.mark_work("seal_audit", tenant=acme.pk)
        outbox.mark_work("seal_audit", tenant=acme.pk)
    with platform_context():
        assert relay.dispatch_pending() == 1
        assert relay.dispatch_pending() == 0  # given half a minute to begin
    assert sent == [{"tenant": acme.pk}]


def test_work_of_an_unknown_kind_is_refused_when_marked(own_database):
    acme = own_database.tenant("acme")
    with tenant_context(acme), pytest.raises(LookupError):
        outbox.mark_work("nonsense", tenant=acme.pk)


def test_telling_people_that_fails_holds_back_nothing_and_is_tried_again(
    own_database, seen, monkeypatch
):
    acme, thing, told, broken = own_database.tenant("acme"), uuid7(), [], [True]

    def tell(event):
        if broken:
            raise ValueError("no mail today")
        told.append((current_tenant_id(), event.payload["n"]))

    monkeypatch.setattr(relay, "TELLERS", {"thing.happened": [tell]})
    monkeypatch.setitem(relay.HANDLERS, relay.TELL_AGAIN, [relay.tell_again])
    _publish(acme, thing, n=1)
    assert _deliver(own_database) == 1
    assert [n for *_who, n in seen] == [1]
    _publish(acme, thing, n=2)
    broken.clear()

    assert _deliver(own_database) == 2  # the next event of the subject, and the telling again

    assert [n for *_who, n in seen] == [1, 2]
    assert sorted(told) == [(acme.pk, 1), (acme.pk, 2)]
