"""People: who lets whom in, as what; nobody becomes more than they are."""

import pytest
from django.core import mail

from apps.accounts import services
from apps.accounts.errors import (
    GrantsTooMuch,
    LastOfFirst,
    NoSuchPerson,
    PersonExists,
    RoleForbids,
    WrongSide,
)
from apps.accounts.models import User
from apps.accounts.roles import PLATFORM_ROLES, Role
from apps.audit.models import AuditEntry
from apps.core.errors import Invalid
from apps.core.uuids import uuid7
from apps.notices.mail import send_waiting
from apps.tenancy.context import platform_context, tenant_context
from tests.people import a_person, an_operator


def test_an_owner_lets_a_member_in_who_is_told_by_mail(acme):
    owner = a_person(Role.OWNER)
    person = services.create_person(
        email="new@example.com", name="New", role="member", actor=owner, language="en"
    )
    with platform_context():
        send_waiting()
    assert not person.has_usable_password()
    assert mail.outbox[0].to == ["new@example.com"]
    assert "http://acme.localhost:" in mail.outbox[0].body
    assert "/account/password/reset/" in mail.outbox[0].body
    entry = AuditEntry.objects.get(action="person.created")
    assert entry.after == {"email": "new@example.com", "name": "New", "role": "member"}


@pytest.mark.parametrize("role", PLATFORM_ROLES)
def test_nobody_in_a_tenant_becomes_staff(acme, role):
    owner = a_person(Role.OWNER)
    with pytest.raises(WrongSide):
        services.create_person(email="a@example.com", name="A", role=role, actor=owner)
    with pytest.raises(WrongSide):
        services.change_role(person_id=owner.pk, role=role, actor=owner)
    owner.refresh_from_db()
    assert owner.role == Role.OWNER
    refused = AuditEntry.objects.filter(action="person.grant_refused", result="refused")
    assert [entry.after for entry in refused] == [{"role": role}] * 2


def test_an_administrator_cannot_make_an_owner_of_anybody(acme):
    a_person(Role.OWNER)
    admin = a_person(Role.ADMIN)
    with pytest.raises(GrantsTooMuch):
        services.change_role(person_id=admin.pk, role="owner", actor=admin)
    with pytest.raises(GrantsTooMuch):
        services.create_person(email="a@example.com", name="A", role="owner", actor=admin)
    assert not User.objects.filter(email="a@example.com").exists()
    assert AuditEntry.objects.filter(action="person.grant_refused").count() == 2


def test_an_administrator_cannot_demote_or_shut_out_an_owner(acme):
    a_person(Role.OWNER)
    owner, admin = a_person(Role.OWNER), a_person(Role.ADMIN)
    with pytest.raises(GrantsTooMuch):
        services.change_role(person_id=owner.pk, role="viewer", actor=admin)
    with pytest.raises(GrantsTooMuch):
        services.deactivate_person(person_id=owner.pk, actor=admin)


def test_a_member_lets_nobody_in_and_reads_who_may(acme):
    with pytest.raises(RoleForbids) as refusal:
        services.create_person(
            email="a@example.com", name="A", role="viewer", actor=a_person(Role.MEMBER)
        )
    assert "member.manage" in refusal.value.detail
    assert "Owner, Administrator" in refusal.value.detail


def test_the_last_owner_stays(acme):
    owner = a_person(Role.OWNER)
    a_person(Role.OWNER, is_active=False)
    for change in (
        lambda: services.change_role(person_id=owner.pk, role="admin", actor=owner),
        lambda: services.deactivate_person(person_id=owner.pk, actor=owner),
    ):
        with pytest.raises(LastOfFirst) as refusal:
            change()
        assert "Give that role to somebody else first" in refusal.value.detail
    a_person(Role.OWNER)
    assert services.change_role(person_id=owner.pk, role="admin", actor=owner).role == "admin"


def test_a_role_change_is_audited_with_before_and_after(acme):
    owner, member = a_person(Role.OWNER), a_person(Role.MEMBER)
    services.change_role(person_id=member.pk, role="viewer", actor=owner)
    entry = AuditEntry.objects.get(action="person.role_changed")
    assert (entry.before["role"], entry.after["role"]) == ("member", "viewer")
    assert (entry.actor_id, entry.subject_id) == (owner.pk, str(member.pk))


def test_staff_set_a_tenants_first_owner(platform, acme):
    with platform_context():
        operator = an_operator(Role.OPERATOR)
        auditor = an_operator(Role.AUDITOR)
    owner = services.create_person(email="o@example.com", name="O", role="owner", actor=operator)
    assert owner.role == Role.OWNER
    assert AuditEntry.objects.get(action="person.created").actor_side == "platform"
    with pytest.raises(RoleForbids):
        services.create_person(email="p@example.com", name="P", role="viewer", actor=auditor)


def test_only_platform_administrators_let_staff_in(platform):
    operator, admin = an_operator(Role.OPERATOR), an_operator(Role.PLATFORM_ADMIN)
    with pytest.raises(RoleForbids):
        services.create_person(email="a@example.com", name="A", role="operator", actor=operator)
    with pytest.raises(WrongSide):
        services.create_person(email="a@example.com", name="A", role="owner", actor=admin)
    services.create_person(email="a@example.com", name="A", role="finance", actor=admin)


def test_a_mail_address_is_once_whatever_its_case_and_free_in_another_tenant(acme, globex):
    owner = a_person(Role.OWNER)
    services.create_person(email="a@example.com", name="A", role="viewer", actor=owner)
    with pytest.raises(PersonExists):
        services.create_person(email="A@Example.com", name="A", role="viewer", actor=owner)
    with tenant_context(globex):
        services.create_person(email="a@example.com", name="A", role="viewer", actor=None)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"email": "nonsense"}, "email"),
        ({"name": " "}, "name"),
        ({"name": "x" * 121}, "name"),
        ({"role": "root"}, "role"),
        ({"language": "xx"}, "language"),
        ({"password": "short"}, "password"),
    ],
)
def test_a_malformed_field_is_named(acme, change, field):
    given = {"email": "a@example.com", "name": "A", "role": "viewer"} | change
    with pytest.raises(Invalid) as refusal:
        services.create_person(actor=a_person(Role.OWNER), **given)
    assert refusal.value.field == field


def test_a_person_who_is_not_there_is_not_found(acme, globex):
    owner = a_person(Role.OWNER)
    with tenant_context(globex):
        stranger = a_person(Role.MEMBER)
    for person_id in (stranger.pk, uuid7()):
        with pytest.raises(NoSuchPerson):
            services.change_role(person_id=person_id, role="viewer", actor=owner)
