"""The audit trail: only added to, sealed, searchable; staff who look leave a trace."""

import pytest
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from apps.accounts.roles import Role
from apps.audit import sealing, selectors, services
from apps.audit.models import AuditEntry, AuditSeal
from apps.core.uuids import uuid7
from apps.tenancy.context import platform_context, tenant_context
from tests.people import a_person, an_operator


def _act(actor, action="node.quarantined", label="node-1", **facts):
    return services.record(actor, action, ("node", uuid7(), label), **facts)


def test_an_entry_says_who_what_when_and_what_changed(acme):
    person = a_person()
    entry = _act(person, before={"state": "a"}, after={"state": "b"}, reason="broken fan")
    entry.refresh_from_db()
    assert (entry.actor_id, entry.actor_name, entry.actor_side) == (
        person.pk,
        person.name,
        "tenant",
    )
    assert (entry.before, entry.after) == ({"state": "a"}, {"state": "b"})
    assert entry.at is not None


def test_an_act_outside_a_transaction_is_refused(own_database):
    with (
        tenant_context(own_database.tenant("acme")),
        pytest.raises(RuntimeError, match="inside its transaction"),
    ):
        _act(None)


@pytest.mark.parametrize("model", [AuditEntry, AuditSeal])
@pytest.mark.parametrize("verb", ["update", "delete", "truncate"])
@pytest.mark.parametrize("side", ["tenant", "platform"])
def test_nobody_with_the_app_role_changes_or_removes_an_entry(acme, model, verb, side):
    table = model._meta.db_table
    statement = {
        "update": f"UPDATE {table} SET id = id",
        "delete": f"DELETE FROM {table}",
        "truncate": f"TRUNCATE {table}",
    }[verb]
    context = platform_context() if side == "platform" else tenant_context(acme)
    with (
        context,
        pytest.raises(ProgrammingError, match="permission denied"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(statement)


def test_staff_who_open_a_tenants_data_leave_one_entry_the_tenant_sees(platform, acme):
    with platform_context():
        operator = an_operator(Role.OPERATOR)
    services.record_staff_access(operator, what="orders")
    services.record_staff_access(operator, what="orders")
    services.record_staff_access(operator, what="invoices", label="INV-1")
    page = selectors.search(action="staff")
    assert [(e.subject_id, e.actor_side) for e in page.entries] == [
        ("invoices", "platform"),
        ("orders", "platform"),
    ]


def test_one_tenant_never_reads_the_trail_of_another(acme, globex):
    _act(a_person())
    with tenant_context(globex):
        assert not selectors.search().entries
    with platform_context():
        assert not AuditEntry.objects.filter(subject_label="node-1").exists()


def test_search_finds_by_each_condition_and_pages_do_not_shift(acme):
    person = a_person()
    for number in range(5):
        _act(person, label=f"node-{number}")
    _act(None, action="price.set", label="list")
    first = selectors.search(action="node", limit=2)
    _act(person, label="late")
    second = selectors.search(action="node", limit=2, before=first.next_before)
    assert [e.subject_label for e in [*first.entries, *second.entries]] == [
        "node-4", "node-3", "node-2", "node-1",
    ]  # fmt: skip
    last = selectors.search(action="node", limit=2, before=second.next_before)
    assert last.next_before is None
    assert [e.action for e in selectors.search(text="LIST").entries] == ["price.set"]
    assert len(selectors.search(actor_id=person.pk).entries) == 6
    assert not selectors.search(action="no").entries


def _sealed(monkeypatch):
    """Rows of the test's own open transaction count as committed here."""
    monkeypatch.setattr(
        sealing,
        "_closed_entries",
        lambda after, limit: list(
            AuditEntry.objects.filter(id__gt=after).order_by("id").values(*sealing._FIELDS)[:limit]
        ),
    )


def test_sealed_entries_verify_and_new_ones_are_reported_unsealed(acme, monkeypatch):
    _sealed(monkeypatch)
    for _number in range(3):
        _act(None)
    assert sealing.seal(limit=2) == 2
    assert sealing.verify() == sealing.Verdict(2, 1, None)
    assert (sealing.seal(), sealing.seal()) == (1, 0)
    assert sealing.verify() == sealing.Verdict(3, 0, None)


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE {t} SET actor_name = 'somebody else' WHERE id = {id}",
        "UPDATE {t} SET after = '{{\"amount\": 1}}' WHERE id = {id}",
        "UPDATE {t} SET at = at - interval '1 day' WHERE id = {id}",
        "DELETE FROM {t} WHERE id = {id}",
    ],
)
def test_an_entry_the_owner_of_the_database_changed_is_found(own_database, tampering):
    with tenant_context(own_database.tenant("acme")):
        with transaction.atomic():
            for _number in range(3):
                entry = _act(None, after={"amount": 2})
        own_database.settle()
        assert sealing.seal() == 3
        assert sealing.verify().broken_at is None
    with own_database.connect("neo_owner") as owner:
        owner.execute(tampering.format(t="t_acme.audit_auditentry", id=entry.pk - 1))
    with tenant_context(own_database.tenant("acme")):
        assert sealing.verify().broken_at == entry.pk - 2


def test_entries_of_a_transaction_still_open_wait_for_the_next_seal(own_database):
    slow = own_database.connect()
    slow.execute("SET search_path = t_acme, public")
    slow.execute("BEGIN")
    slow.execute(
        "INSERT INTO audit_auditentry (actor_name, actor_side, action, subject_type, subject_id,"
        " subject_label, result, reason, request_id)"
        " VALUES ('slow', 'system', 'a.b', 'x', '1', '', 'done', '', '')"
    )
    with tenant_context(own_database.tenant("acme")):
        with transaction.atomic():
            _act(None)
        assert sealing.seal() == 0
        slow.execute("COMMIT")
        slow.close()
        own_database.settle()
        assert sealing.seal() == 2
        assert sealing.verify() == sealing.Verdict(2, 0, None)
