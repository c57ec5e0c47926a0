"""Bringing the database to the version of this program: run by the owner role, quick when nothing
changed.
"""

import hashlib
import os
import re
import subprocess
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.apps import apps
from django.conf import settings
from django.core.management import call_command
from django.db import connection, transaction
from django.db.migrations.loader import MigrationLoader

from apps.tenancy import rules
from apps.tenancy.context import PLATFORM_SIDE, switch_to

TEMPLATE = "tenant_template"


@lru_cache(maxsize=1)
def current_version() -> str:
    """The schema version of this program: a hash of its last migrations."""
    leaves = MigrationLoader(None, ignore_no_migrations=True).graph.leaf_nodes()
    text = "\n".join(f"{app}.{name}" for app, name in sorted(leaves))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def has_migration_table(recorder: Any) -> bool:
    """Does this schema record its migrations? One look-up; Django lists every visible table (ADR
    0003).
    """
    with recorder.connection.cursor() as cursor:
        cursor.execute(
            "SELECT to_regclass(%s)", [f'"{recorder.connection.schema_name}".django_migrations']
        )
        return cursor.fetchone()[0] is not None


def database_files() -> list[Path]:
    """SQL of functions that are replaced at every upgrade: `database.sql` of each app."""
    found = [Path(config.path) / "database.sql" for config in apps.get_app_configs()]
    return [path for path in found if path.exists()]


def upgrade(*, force: bool = False) -> list[str]:
    """Migrate public, the template and every tenant; returns what was done, one line each.

    Each tenant is migrated by itself: one that fails stays behind, answers 503, and is named.
    """
    switch_to(PLATFORM_SIDE)
    here = Path(__file__).parent / "sql"
    _run((here / "clock.sql").read_text())
    wanted = _fingerprint(here)
    with connection.cursor() as cursor:
        cursor.execute("SELECT version || rules FROM public.tenancy_script")
        row = cursor.fetchone()
    done: list[str] = []
    if force or row is None or row[0] != current_version() + wanted:
        _migrate("public")
        _run(f'CREATE SCHEMA IF NOT EXISTS "{TEMPLATE}"')
        _migrate(TEMPLATE)
        with transaction.atomic():
            _run(rules.public_rules())
            _run(rules.tenant_rules(TEMPLATE))
            _run((here / "schemas.sql").read_text())
            for path in database_files():
                _run(path.read_text())
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("DELETE FROM public.tenancy_script")
            cursor.execute(
                "INSERT INTO public.tenancy_script (version, rules, body) VALUES (%s, %s, %s)",
                [current_version(), wanted, _script()],
            )
        done.append("public and template")
    return done + _upgrade_tenants(force=force)


def _upgrade_tenants(*, force: bool) -> list[str]:
    done = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT schema_name FROM public.tenancy_tenant WHERE status <> 'creating'"
            " AND (%s OR schema_version <> %s) ORDER BY schema_name",
            [force, current_version()],
        )
        behind = [name for (name,) in cursor.fetchall()]
    for schema in behind:
        _migrate(schema)
        with transaction.atomic(), connection.cursor() as cursor:
            _run(rules.tenant_rules(schema))
            cursor.execute(
                "UPDATE public.tenancy_tenant SET schema_version = %s WHERE schema_name = %s",
                [current_version(), schema],
            )
        done.append(schema)
    return done


def _fingerprint(folder: Path) -> str:
    """What the rules and functions say, so that a change of theirs is applied too."""
    text = rules.public_rules() + rules.tenant_rules(TEMPLATE)
    text += "".join(path.read_text() for path in [*sorted(folder.glob("*.sql")), *database_files()])
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


def _migrate(schema: str) -> None:
    call_command("migrate_schemas", schema_name=schema, interactive=False, verbosity=0)
    switch_to(PLATFORM_SIDE)


def _script() -> str:
    """The SQL that makes a tenant's schema: the template as pg_dump writes it, and its migration
    records.
    """
    database = settings.DATABASES["default"]
    tool = (
        str(Path(settings.NEOCLOUD_PG_BIN) / "pg_dump") if settings.NEOCLOUD_PG_BIN else "pg_dump"
    )
    dump = subprocess.run(  # noqa: S603 - our own arguments, no shell
        [
            tool,
            "--schema-only",
            "--no-owner",
            "--schema",
            TEMPLATE,
            connection.settings_dict["NAME"],
        ],
        env={
            **os.environ,
            "PGHOST": database["HOST"],
            "PGPORT": database["PORT"],
            "PGUSER": database["USER"],
            "PGPASSWORD": database["PASSWORD"],
        },
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    kept = [
        line
        for line in dump.splitlines()
        if line
        and not line.startswith(("--", "\\", "SET "))
        and not line.startswith("SELECT pg_catalog.set_config")
    ]
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT string_agg(format('(%%L, %%L, now())', app, name), ', ' ORDER BY id)"  # noqa: S608
            f' FROM "{TEMPLATE}".django_migrations',
            [],
        )
        (values,) = cursor.fetchone()
    records = f"INSERT INTO {TEMPLATE}.django_migrations (app, name, applied) VALUES {values};"  # noqa: S608
    body = "\n".join(kept)
    if re.search(r"^\\", body, re.MULTILINE):
        raise RuntimeError("pg_dump wrote a psql command that a function cannot run")
    return body + "\n" + records
