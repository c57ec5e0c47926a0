"""Start-up refusals: a database role or a pooler under which isolation would be a promise, not a
fact.
"""

from typing import Any

from django.core.checks import CheckMessage, Error, Tags, register
from django.core.exceptions import ImproperlyConfigured
from django.db import connection

from apps.core.realms import side


def unsafe_database() -> str | None:
    """Why the product must not serve on this connection, or None."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT r.rolname, r.rolsuper, r.rolbypassrls, EXISTS (SELECT FROM pg_class c"
            " WHERE c.relowner = r.oid AND c.relname = 'tenancy_tenant')"
            " FROM pg_roles r WHERE r.rolname = current_user"
        )
        name, is_super, bypasses, owns = cursor.fetchone()
    if is_super or bypasses:
        return f"role {name} is exempt from row level security; use neo_app (deploy/roles.sql)"
    if owns:
        return f"role {name} owns the tables, so no policy binds it; use neo_app (deploy/roles.sql)"
    return None


def transaction_pooler() -> bool:
    """Does a pooler hand our statements to different servers?

    Two connections, each asked twice in turn with the other's transaction open between: behind
    PgBouncer in transaction mode a backend is shared, so the two report one pid (docs/adr/0003).
    """
    first: Any = connection.copy()
    second: Any = connection.copy()
    try:
        pids = []
        for one in (first, second):
            one.set_tenant(side())
            with one.cursor() as cursor:
                cursor.execute("SELECT pg_backend_pid()")
                pids.append(cursor.fetchone()[0])
        return bool(pids[0] == pids[1])
    finally:
        first.close()
        second.close()


def refuse_unsafe_database() -> None:
    """Raise ImproperlyConfigured where tenants would not be kept apart: called by web and workers
    at start.
    """
    reason = unsafe_database()
    if reason is None and transaction_pooler():
        reason = "a pooler in transaction mode stands before the database; use session mode or none"
    if reason:
        raise ImproperlyConfigured(reason)


@register(Tags.database)
def database_is_safe(databases: Any = None, **kwargs: Any) -> list[CheckMessage]:
    """`manage.py check --database default` says the same."""
    if not databases:
        return []
    reason = unsafe_database()
    return [Error(reason, id="tenancy.E001")] if reason else []
