"""What the database itself enforces, read from the models: who may do what to which table, and see
which row.
"""

from collections.abc import Iterator

from django.apps import apps
from django.db import models

from apps.core.realms import Both, InsertOnly, Public, Tenant, realm_of

APP_ROLE = "neo_app"


def tables(*realms: type) -> Iterator[type[models.Model]]:
    """Managed models of the given realms, in a stable order."""
    for model in sorted(apps.get_models(include_auto_created=True), key=lambda m: m._meta.db_table):
        if model._meta.managed and not model._meta.proxy and realm_of(model) in realms:
            yield model


def grants(schema: str, *realms: type) -> str:
    """SQL that gives the app role exactly what it needs in a schema."""
    lines = [
        f'GRANT USAGE ON SCHEMA "{schema}" TO {APP_ROLE}',
        f'REVOKE ALL ON ALL TABLES IN SCHEMA "{schema}" FROM {APP_ROLE}',
        f'GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA "{schema}" TO {APP_ROLE}',
        f'GRANT SELECT ON "{schema}".django_migrations TO {APP_ROLE}',
    ]
    for model in tables(*realms):
        table = f'"{schema}"."{model._meta.db_table}"'
        updatable = getattr(model, "updatable_columns", None)
        if updatable is not None:
            columns = ", ".join(f'"{name}"' for name in updatable)
            lines.append(f"GRANT SELECT, INSERT ON {table} TO {APP_ROLE}")
            lines.append(f"GRANT UPDATE ({columns}) ON {table} TO {APP_ROLE}")
        elif issubclass(model, InsertOnly):
            lines.append(f"GRANT SELECT, INSERT ON {table} TO {APP_ROLE}")
        else:
            lines.append(f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP_ROLE}")
    return ";\n".join(lines) + ";\n"


def tenant_column(model: type[models.Model]) -> str | None:
    """The column that says whose a public row is, or None when it is nobody's in particular."""
    declared = getattr(model, "tenant_column", None)
    if declared:
        return str(declared)
    names = {field.name for field in model._meta.fields}
    return "tenant" if "tenant" in names else None


def policy(model: type[models.Model]) -> str | None:
    """The row level security condition of a table in `public`, or None when all may see it."""
    platform = "(SELECT current_setting('neo.tenant', true)) = 'platform'"
    if realm_of(model) is Both:
        return platform
    declared = getattr(model, "row_policy", None)
    if declared:
        return f"{platform} OR {declared}"
    column = tenant_column(model)
    if column is None:
        return None
    return f"{platform} OR \"{column}\"::text = (SELECT current_setting('neo.tenant', true))"


def policies() -> str:
    """SQL that puts row level security on every public table with an owner."""
    lines: list[str] = []
    for model in tables(Public, Both):
        table = f'public."{model._meta.db_table}"'
        lines.append(f"DROP POLICY IF EXISTS speaker ON {table}")
        condition = policy(model)
        if condition is None:
            lines.append(f"ALTER TABLE {table} DISABLE ROW LEVEL SECURITY")
            continue
        lines.append(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
        lines.append(f"CREATE POLICY speaker ON {table} USING ({condition})")
    return ";\n".join(lines) + ";\n"


def public_rules() -> str:
    """Everything for schema public: grants, then policies."""
    return grants("public", Public, Both) + policies()


def tenant_rules(schema: str) -> str:
    """Everything for one tenant's schema."""
    return grants(schema, Tenant, Both)
