"""Both kinds of schema are what the models declare, made by script or by migration."""

from typing import Any

import pytest
from django.apps import apps
from django.db import connection

from apps.core.realms import Both, InsertOnly, Public, Tenant, realm_of
from apps.tenancy import rules
from apps.tenancy.upgrades import TEMPLATE

_IN_PUBLIC_BESIDES = {"django_migrations", "tenancy_script"}  # the owner's own bookkeeping
_IN_TENANTS_BESIDES = {"django_migrations"}


def _rows(sql: str, *values: Any) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        return cursor.fetchall()


def _tables(schema: str) -> set[str]:
    found = _rows(
        "SELECT c.relname FROM pg_class c WHERE c.relnamespace = %s::regnamespace"
        " AND c.relkind IN ('r', 'p', 'v', 'm')",
        schema,
    )
    return {name for (name,) in found}


def _declared(*realms: type) -> set[str]:
    return {model._meta.db_table for model in rules.tables(*realms)}


def test_every_model_says_its_realm():
    for model in apps.get_models(include_auto_created=True):
        assert realm_of(model) in (Public, Tenant, Both)


def test_public_has_the_tables_of_its_realms_and_no_other(db):
    assert _tables("public") == _declared(Public, Both) | _IN_PUBLIC_BESIDES


@pytest.mark.parametrize("schema", ["t_acme", "t_globex", TEMPLATE])
def test_a_tenant_has_the_tables_of_its_realms_and_no_other(db, schema):
    assert _tables(schema) == _declared(Tenant, Both) | _IN_TENANTS_BESIDES


def test_columns_of_every_table_are_those_of_its_model(db):
    for schema, realms in (("public", (Public, Both)), ("t_acme", (Tenant, Both))):
        for model in rules.tables(*realms):
            found = _rows(
                "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
                " AND NOT attisdropped",
                f"{schema}.{model._meta.db_table}",
            )
            declared = {field.column for field in model._meta.local_concrete_fields}
            assert {name for (name,) in found} == declared, (schema, model)


def test_no_foreign_key_crosses_schemas(db):
    assert not _rows(
        "SELECT conrelid::regclass, confrelid::regclass FROM pg_constraint k"
        " JOIN pg_class a ON a.oid = k.conrelid JOIN pg_class b ON b.oid = k.confrelid"
        " WHERE a.relnamespace <> b.relnamespace"
    )


def test_every_public_table_has_the_policy_its_model_declares(db):
    found = dict(
        _rows(
            "SELECT c.relname, (SELECT count(*) FROM pg_policy p WHERE p.polrelid = c.oid"
            " AND p.polname = 'speaker' AND p.polcmd = '*') FROM pg_class c"
            " WHERE c.relnamespace = 'public'::regnamespace AND c.relrowsecurity"
        )
    )
    declared = {m._meta.db_table: 1 for m in rules.tables(Public, Both) if rules.policy(m)}
    assert found == declared


def test_a_public_table_that_names_a_tenant_has_a_policy(db):
    for model in rules.tables(Public):
        columns = {field.column for field in model._meta.local_concrete_fields}
        if columns & {"tenant", "tenant_id"}:
            assert rules.policy(model), model


@pytest.mark.parametrize("schema", ["public", "t_acme", TEMPLATE])
def test_the_app_role_may_do_what_the_models_declare_and_owns_nothing(db, schema):
    realms = (Public, Both) if schema == "public" else (Tenant, Both)
    found: dict[str, set[str]] = {}
    for table, verb in _rows(
        "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
        " WHERE grantee = 'neo_app' AND table_schema = %s",
        schema,
    ):
        found.setdefault(table, set()).add(verb)
    declared = {"django_migrations": {"SELECT"}}
    for model in rules.tables(*realms):
        narrow = issubclass(model, InsertOnly) or hasattr(model, "updatable_columns")
        verbs = {"SELECT", "INSERT"} | (set() if narrow else {"UPDATE", "DELETE"})
        declared[model._meta.db_table] = verbs
    assert found == declared
    assert not _rows(
        "SELECT relname FROM pg_class WHERE relowner = 'neo_app'::regrole"
        " UNION SELECT nspname FROM pg_namespace WHERE nspowner = 'neo_app'::regrole"
        " UNION SELECT proname FROM pg_proc WHERE proowner = 'neo_app'::regrole"
    )


def test_columns_that_may_change_on_narrow_tables_are_those_declared(db):
    for model in rules.tables(Public, Tenant, Both):
        columns = getattr(model, "updatable_columns", None)
        if columns is None:
            continue
        found = _rows(
            "SELECT DISTINCT column_name FROM information_schema.column_privileges"
            " WHERE grantee = 'neo_app' AND privilege_type = 'UPDATE' AND table_name = %s"
            " AND table_schema IN ('public', 't_acme')",
            model._meta.db_table,
        )
        assert {name for (name,) in found} == set(columns), model


def test_functions_that_see_all_tenants_pin_their_search_path(db):
    assert not _rows(
        "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        " AND NOT coalesce(proconfig::text, '') LIKE '%%search_path=public%%pg_temp%%'"
    )


def test_functions_that_see_all_tenants_are_not_for_everybody(db):
    assert not _rows(
        "SELECT proname FROM pg_proc WHERE prosecdef AND pronamespace = 'public'::regnamespace"
        " AND has_function_privilege('public', oid, 'EXECUTE')"
    )


_SHAPES = {
    "columns": "SELECT c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,"
    " a.attidentity, a.attgenerated, a.attcollation, pg_get_expr(d.adbin, d.adrelid)"
    " FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0"
    " AND NOT a.attisdropped LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum"
    " WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')",
    "constraints": "SELECT k.conrelid::regclass::text, k.conname, pg_get_constraintdef(k.oid),"
    " k.condeferrable, k.condeferred, k.convalidated FROM pg_constraint k"
    " WHERE k.connamespace = %s::regnamespace",
    "indexes": "SELECT pg_get_indexdef(i.indexrelid), i.indisunique, i.indisprimary, i.indisvalid"
    " FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid"
    " WHERE c.relnamespace = %s::regnamespace",
    "sequences": "SELECT sequencename, data_type::text, start_value, min_value, max_value,"
    " increment_by, cycle, cache_size FROM pg_sequences WHERE schemaname = %s",
    "triggers": "SELECT pg_get_triggerdef(t.oid) FROM pg_trigger t JOIN pg_class c"
    " ON c.oid = t.tgrelid WHERE NOT t.tgisinternal AND c.relnamespace = %s::regnamespace",
    "functions": "SELECT pg_get_functiondef(p.oid) FROM pg_proc p"
    " WHERE p.pronamespace = %s::regnamespace",
    "grants": "SELECT c.relname, c.relkind, c.relowner::regrole::text, c.relacl::text"
    " FROM pg_class c WHERE c.relnamespace = %s::regnamespace AND c.relkind IN ('r', 'S', 'v')",
    "schema": "SELECT nspowner::regrole::text, nspacl::text FROM pg_namespace WHERE nspname = %s",
}


@pytest.mark.parametrize("shape", _SHAPES)
def test_a_tenant_made_by_script_equals_one_made_by_migrations(db, shape):
    by_migrations, by_script = (
        sorted(str(row).replace(schema, "HERE") for row in _rows(_SHAPES[shape], schema))
        for schema in (TEMPLATE, "t_acme")
    )
    assert by_script == by_migrations
    assert by_script or shape in ("triggers", "functions")


def test_a_tenant_made_by_script_has_the_migration_records_of_one_made_by_migrations(db):
    both = [
        set(_rows(f"SELECT app, name FROM {schema}.django_migrations"))
        for schema in (TEMPLATE, "t_acme")
    ]
    assert both[0] == both[1]
    assert both[0]
