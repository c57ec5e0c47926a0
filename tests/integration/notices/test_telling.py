"""Notices: once, in the reader's language, by mail that survives a server that says no."""

from datetime import UTC, datetime, timedelta

import pytest
from django.core import mail
from django.db import connection
from django.utils.functional import lazystr
from django.utils.translation import get_language

from apps.accounts.roles import Role
from apps.accounts.selectors import recipient_of
from apps.accounts.services import tell_admins
from apps.core.errors import NotFound
from apps.core.money import Money
from apps.notices import selectors, services
from apps.notices.mail import MOST_ATTEMPTS, send_waiting
from apps.notices.models import Notice
from apps.tenancy.context import platform_context, tenant_context
from tests.people import a_person, an_operator


def _tell(person, key="server-1-ready", **changes):
    given = {
        "kind": "service.ready",
        "dedup_key": key,
        "subject": "{name} is ready",
        "body": "It runs.",
        "link": "/services/1/",
        "name": "trainer",
    } | changes
    return services.tell(to=recipient_of(person), **given)


def _send():
    with platform_context():
        return send_waiting()


def _later(**time):
    """Move the clock of this transaction on."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT set_config('neo.clock_offset', %s, true)", [str(timedelta(**time))])


def test_a_person_is_told_once_for_each_key(acme):
    person = a_person()
    assert _tell(person)
    assert not _tell(person)
    assert _tell(a_person())
    notice = selectors.notices_of(person.pk).get()
    assert (notice.subject, notice.tenant) == ("trainer is ready", acme.pk)
    assert notice.link.startswith("http://acme.localhost:")


def test_the_same_key_in_two_tenants_is_two_notices(acme, globex):
    assert _tell(a_person())
    with tenant_context(globex):
        assert _tell(a_person())


def test_words_are_in_the_language_of_the_reader(acme):
    from django.utils.functional import lazy

    spoken = lazy(lambda: f"in {get_language()}", str)()
    person = a_person(language="ko")
    _tell(person, subject=spoken, body=lazystr("x"))
    assert selectors.notices_of(person.pk).get().subject == "in ko"


def test_instants_and_money_are_told_as_the_reader_writes_them(acme):
    person = a_person(language="ko")
    at = datetime(2026, 12, 1, 0, 30, 5, tzinfo=UTC)
    _tell(person, body="{at} {total}", at=at, total=Money.of("1234000", "KRW"))
    assert selectors.notices_of(person.pk).get().body == "2026-12-01 09:30:05 KST ₩1,234,000"


def test_facts_with_braces_and_line_breaks_do_no_harm(acme):
    person = a_person()
    _tell(person, name="{secret}\nBcc: all@example.com")
    _send()
    assert mail.outbox[0].subject == "{secret} Bcc: all@example.com is ready"


def test_owners_and_administrators_are_told_and_nobody_else(acme):
    admins = {a_person(Role.OWNER).pk, a_person(Role.ADMIN).pk}
    a_person(Role.MEMBER)
    a_person(Role.ADMIN, is_active=False)
    tell_admins(kind="quota.full", dedup_key="q1", subject="Full", body="No more.")
    assert {notice.recipient for notice in Notice.objects.all()} == admins


def test_a_tenants_work_tells_the_operators_what_no_tenant_can_read(acme, globex):
    for _twice in range(2):
        services.tell_operators(
            kind="run.held", dedup_key="run-1", subject="Run {run} waits", body="Look.", run="r1"
        )
    assert not Notice.objects.exists()
    with platform_context():
        notice = selectors.operator_notices().get()
        assert notice.subject == "Run r1 waits"
        assert selectors.unread_count(an_operator()) == 1


def test_a_person_reads_their_own_notices_only(acme, globex):
    person, other = a_person(), a_person()
    _tell(person)
    notice = selectors.notices_of(person.pk).get()
    assert (selectors.unread_count(person), selectors.unread_count(other)) == (1, 0)
    with pytest.raises(NotFound):
        services.mark_read(notice_id=notice.pk, person_id=other.pk)
    with tenant_context(globex), pytest.raises(NotFound):
        services.mark_read(notice_id=notice.pk, person_id=person.pk)
    services.mark_read(notice_id=notice.pk, person_id=person.pk)
    assert selectors.unread_count(person) == 0


def test_mail_goes_out_once(acme):
    person = a_person()
    _tell(person)
    assert (_send(), _send()) == (1, 0)
    message = mail.outbox[0]
    assert message.to == [person.email]
    assert message.body.startswith("It runs.\n\nhttp://acme.localhost:")


def _down(monkeypatch):
    def refuse(self, **kwargs):
        raise ConnectionRefusedError("mail server is down")

    monkeypatch.setattr("django.core.mail.EmailMessage.send", refuse)


def test_a_refused_mail_is_tried_again_later_and_not_before(acme, monkeypatch):
    _tell(a_person())
    with monkeypatch.context() as broken:
        _down(broken)
        assert _send() == 0
    notice = Notice.objects.get()
    assert (notice.mail_attempts, notice.mailed_at) == (1, None)
    assert notice.mail_error == "ConnectionRefusedError: mail server is down"
    assert _send() == 0
    _later(seconds=31)
    assert _send() == 1
    assert Notice.objects.get().mail_error == ""


def test_a_sender_that_dies_after_its_claim_loses_no_mail(acme, monkeypatch):
    _tell(a_person())

    def die(self, **kwargs):
        raise SystemExit

    with monkeypatch.context() as dying:
        dying.setattr("django.core.mail.EmailMessage.send", die)
        with pytest.raises(SystemExit):
            _send()
    _later(seconds=31)
    assert _send() == 1


def test_mail_nobody_takes_is_given_up_and_stays_visible(acme, monkeypatch):
    _tell(a_person())
    _down(monkeypatch)
    for hours in range(1, MOST_ATTEMPTS + 3):
        _later(hours=2 * hours)
        _send()
    notice = Notice.objects.get()
    assert notice.mail_attempts == MOST_ATTEMPTS
    assert notice.mail_error
