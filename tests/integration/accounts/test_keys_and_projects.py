"""Projects, SSH keys and access keys."""

from datetime import timedelta

import pytest
from django.db import connection

from apps.accounts import selectors, services
from apps.accounts.errors import (
    ExpiryOutOfRange,
    KeyExists,
    NoSuchKey,
    ProjectExists,
    RoleForbids,
)
from apps.accounts.models import AccessKey
from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.core import clock
from apps.tenancy.context import tenant_context
from tests.people import a_person

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl me@laptop"


def test_a_key_is_stored_once_and_only_its_owner_removes_it(acme):
    person, other = a_person(Role.MEMBER), a_person(Role.MEMBER)
    key = services.add_ssh_key(name="", public_key=KEY, actor=person)
    assert key.name == "me@laptop"
    with pytest.raises(KeyExists):
        services.add_ssh_key(name="again", public_key=KEY, actor=person)
    with pytest.raises(NoSuchKey):
        services.remove_ssh_key(key_id=key.pk, actor=other)
    services.remove_ssh_key(key_id=key.pk, actor=person)
    assert not selectors.ssh_keys_of(person).exists()
    assert AuditEntry.objects.filter(action__startswith="ssh_key.").count() == 2


def test_a_viewer_stores_no_key(acme):
    with pytest.raises(RoleForbids):
        services.add_ssh_key(name="k", public_key=KEY, actor=a_person(Role.VIEWER))


def test_a_token_acts_as_its_person_and_is_stored_nowhere(acme):
    person = a_person()
    key, token = services.create_access_key(name="ci", actor=person)
    assert services.person_of_token(token) == person
    assert token.startswith(key.prefix)
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(k)::text FROM accounts_accesskey k")
        stored = cursor.fetchall()
        cursor.execute("SELECT to_jsonb(a)::text FROM audit_auditentry a")
        stored += cursor.fetchall()
    assert not any(token in text for (text,) in stored)
    key.refresh_from_db()
    assert key.last_used_at is not None


def test_a_token_ends_when_revoked_expired_or_its_person_is_shut_out(acme):
    person = a_person()
    key, token = services.create_access_key(name="a", actor=person, days=1)
    services.revoke_access_key(key_id=key.pk, actor=person)
    assert services.person_of_token(token) is None
    key, token = services.create_access_key(name="b", actor=person, days=1)
    AccessKey.objects.filter(pk=key.pk).update(expires_at=clock.now() - timedelta(seconds=1))
    assert services.person_of_token(token) is None
    _key, token = services.create_access_key(name="c", actor=person, days=1)
    person.is_active = False
    person.save()
    assert services.person_of_token(token) is None


def test_a_token_of_one_tenant_is_nothing_in_another(acme, globex):
    _key, token = services.create_access_key(name="ci", actor=a_person())
    with tenant_context(globex):
        assert services.person_of_token(token) is None


@pytest.mark.parametrize("days", [0, -1, 366])
def test_a_key_lives_a_day_to_a_year(acme, days):
    with pytest.raises(ExpiryOutOfRange):
        services.create_access_key(name="ci", actor=a_person(), days=days)


def test_a_project_has_members_and_a_name_of_its_own(acme):
    owner, member = a_person(), a_person(Role.MEMBER)
    project = services.create_project(name="Training", actor=owner)
    services.create_project(name="Inference", actor=owner)
    with pytest.raises(ProjectExists):
        services.create_project(name="Training", actor=owner)
    assert selectors.projects_of(member).count() == 2
    for _twice in range(2):
        services.add_member(project_id=project.pk, person_id=member.pk, actor=owner)
    assert list(selectors.projects_of(member)) == [project]
    services.remove_member(project_id=project.pk, person_id=member.pk, actor=owner)
    assert selectors.projects_of(member).count() == 2
    assert AuditEntry.objects.filter(action="project.member_added").count() == 1


def test_a_member_makes_no_project(acme):
    with pytest.raises(RoleForbids):
        services.create_project(name="Mine", actor=a_person(Role.MEMBER))
