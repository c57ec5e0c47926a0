"""Row level security: who speaks decides which rows of `public` exist."""

from contextlib import suppress

import pytest
from django.apps import apps
from django.db import connection, transaction
from django.db.utils import ProgrammingError

from apps.core.models import OutboxEvent, WorkPending
from apps.core.realms import Both, Public, current_tenant_id, realm_of, speaker
from apps.core.uuids import uuid7
from apps.tenancy import rules
from apps.tenancy.context import nobody_context, platform_context, tenant_context
from apps.tenancy.models import Domain, Tenant
from tests.people import a_person, an_operator

BOTH = [m._meta.db_table for m in apps.get_models() if realm_of(m) is Both]


def _count(table):
    with connection.cursor() as cursor:
        cursor.execute(f'SELECT count(*) FROM public."{table}"')
        return cursor.fetchone()[0]


def test_a_tenant_reads_no_row_of_staff_even_when_it_names_the_public_table(acme):
    with platform_context():
        an_operator()
        assert _count("accounts_user") == 1
    assert _count("accounts_user") == 0
    with nobody_context():
        assert _count("accounts_user") == 0


@pytest.mark.parametrize("table", BOTH)
def test_neither_a_tenant_nor_nobody_writes_into_a_table_of_staff(acme, table):
    for context in (tenant_context(acme), nobody_context()):
        with (
            context,
            pytest.raises(ProgrammingError, match="row-level security"),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(f'INSERT INTO public."{table}" SELECT (NULL::public."{table}").*')


def test_a_tenant_sees_and_writes_its_own_public_rows_only(acme, globex):
    WorkPending.objects.create(kind="k", tenant=acme.pk)
    with tenant_context(globex):
        assert not WorkPending.objects.exists()
        with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
            WorkPending.objects.create(kind="x", tenant=acme.pk)
        assert WorkPending.objects.update(kind="taken") == 0
        assert WorkPending.objects.all().delete()[0] == 0
    with platform_context():
        assert WorkPending.objects.get().kind == "k"
    with nobody_context():
        assert not WorkPending.objects.exists()


def test_a_tenant_cannot_give_its_row_to_another(acme, globex):
    row = WorkPending.objects.create(kind="k", tenant=acme.pk)
    with pytest.raises(ProgrammingError, match="row-level security"), transaction.atomic():
        WorkPending.objects.filter(pk=row.pk).update(tenant=globex.pk)


def test_a_tenant_sees_itself_and_its_hosts_only(acme):
    assert [tenant.pk for tenant in Tenant.objects.all()] == [acme.pk]
    assert {domain.tenant_id for domain in Domain.objects.all()} == {acme.pk}
    with nobody_context():
        assert not Tenant.objects.exists()


def test_every_public_table_with_a_tenant_column_shows_nobody_nothing(db):
    with nobody_context():
        for model in rules.tables(Public):
            if rules.tenant_column(model):
                assert _count(model._meta.db_table) == 0, model


def test_an_event_of_one_tenant_cannot_be_written_by_another(acme, globex):
    with (
        tenant_context(globex),
        pytest.raises(ProgrammingError, match="row-level security"),
        transaction.atomic(),
    ):
        OutboxEvent.objects.create(name="a.b", subject=uuid7(), tenant=acme.pk)


def test_people_of_two_tenants_live_apart(acme, globex):
    a_person(email="kim@example.com")
    with tenant_context(globex):
        from apps.accounts.models import User

        assert not User.objects.exists()


def test_contexts_nest_and_come_back_even_after_an_error(acme, globex):
    with suppress(ZeroDivisionError), tenant_context(globex), platform_context():
        assert speaker() == "platform"
        raise ZeroDivisionError
    assert current_tenant_id() == acme.pk
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema(), current_setting('neo.tenant')")
        assert cursor.fetchone() == ("t_acme", str(acme.pk))


def test_a_rolled_back_savepoint_does_not_leave_the_connection_on_the_wrong_side(acme, globex):
    with suppress(ZeroDivisionError), transaction.atomic():
        with tenant_context(globex):
            assert not WorkPending.objects.exists()
        raise ZeroDivisionError
    WorkPending.objects.create(kind="k", tenant=acme.pk)
    assert WorkPending.objects.count() == 1
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_schema()")
        assert cursor.fetchone() == ("t_acme",)


def test_the_app_role_may_not_make_schemas_but_by_the_function_and_only_as_platform(acme):
    for statement in ("CREATE SCHEMA t_evil", "SELECT public.create_tenant_schema('t_evil')"):
        with (
            pytest.raises(ProgrammingError),
            transaction.atomic(),
            connection.cursor() as cursor,
        ):
            cursor.execute(statement)
    with (
        platform_context(),
        pytest.raises(Exception, match="not a tenant schema name"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT public.create_tenant_schema('public; DROP TABLE x')")


def test_a_schema_in_use_is_not_dropped(platform):
    with (
        pytest.raises(Exception, match="in use"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SELECT public.drop_tenant_schema('t_acme')")
