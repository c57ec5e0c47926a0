"""The two realms: which schema a model's table lives in, and who the database connection speaks
for.

A realm is a plain mixin, because migrations keep a model's bases but drop its class attributes.
"""

from typing import Any
from uuid import UUID

from django.db import connection, models

PLATFORM = "platform"
NOBODY = ""


class Public:
    """Stands in schema `public` only: the platform's own tables."""


class Tenant:
    """Stands in every tenant's schema and not in `public`."""


class Both:
    """Stands in `public` for staff and in every tenant's schema for its people."""


class InsertOnly:
    """Rows are only ever added: the app role has no UPDATE, DELETE or TRUNCATE on the table."""


# Third-party apps declare no realm, so it is said for them here.
THIRD_PARTY: dict[str, type] = {
    "contenttypes": Public,
    "auth": Public,
    "sessions": Both,
    "account": Both,
}


def realm_of(model: type[models.Model]) -> type:
    """The realm of a model: Public, Tenant or Both. Raises LookupError when nothing declares it."""
    for realm in (Public, Tenant, Both):
        if issubclass(model, realm):
            return realm
    if model._meta.app_label in THIRD_PARTY:
        return THIRD_PARTY[model._meta.app_label]
    raise LookupError(f"{model._meta.label} declares no realm (apps.core.realms)")


_connection: Any = connection  # django-tenants adds what the stubs do not know


def side() -> Any:
    """What django-tenants calls the tenant of this connection: a Tenant, the platform's side or
    nobody's.
    """
    return _connection.tenant


def schema() -> str:
    """The schema this connection reads first."""
    return str(_connection.schema_name)


def speaker() -> str:
    """Who the connection speaks for: a tenant's UUID as text, "platform", or "" for nobody."""
    return speaker_of(side())


def speaker_of(tenant: Any) -> str:
    """The value of the session setting `neo.tenant` for what django-tenants calls a tenant."""
    return str(getattr(tenant, "speaks_as", NOBODY))


def current_tenant_id() -> UUID | None:
    """The tenant of this connection, or None on the platform's side."""
    who = speaker()
    return UUID(who) if who not in (PLATFORM, NOBODY) else None
