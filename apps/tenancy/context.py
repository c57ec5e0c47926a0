"""The only schema switch. Everything else runs where it already is.

with tenant_context(tenant): ...      the tenant's schema, speaking as the tenant
with platform_context(): ...          schema public, speaking as the platform
with nobody_context(): ...            schema public, speaking as nobody: sees no row of anybody
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import structlog
from django.db import connection

from apps.core.realms import NOBODY, PLATFORM
from apps.tenancy.errors import TenantNotReady
from apps.tenancy.models import Tenant


@dataclass(frozen=True)
class _Outside:
    """What django-tenants calls a tenant, for schema public."""

    speaks_as: str
    schema_name: str = "public"

    def get_tenant_type(self) -> None:
        """Asked by django-tenants; there are no types of tenants."""


_connection: Any = connection  # django-tenants adds what the stubs do not know
PLATFORM_SIDE = _Outside(PLATFORM)
NOBODY_SIDE = _Outside(NOBODY)


def switch_to(side: Any) -> None:
    """Point the connection at a tenant or a side for good: middleware and the task base only."""
    _connection.set_tenant(side)


@contextmanager
def _on(side: Any) -> Iterator[None]:
    before = _connection.tenant
    _connection.set_tenant(side)
    try:
        yield
    finally:
        _connection.set_tenant(before)


@contextmanager
def tenant_context(tenant: Tenant) -> Iterator[Tenant]:
    """Run as a tenant: its schema first, and row level security shows its public rows only."""
    if not tenant.is_ready:
        raise TenantNotReady(tenant=tenant.slug)
    with _on(tenant), structlog.contextvars.bound_contextvars(tenant=tenant.slug):
        yield tenant


@contextmanager
def platform_context() -> Iterator[None]:
    """Run as the platform: console, finance, relay, watchers."""
    with _on(PLATFORM_SIDE):
        yield


@contextmanager
def nobody_context() -> Iterator[None]:
    """Run as nobody, as a request without a known host does."""
    with _on(NOBODY_SIDE):
        yield


def tenant_by_id(tenant_id: UUID | str) -> Tenant:
    """The tenant of a UUID, read from the platform's side. Raises Tenant.DoesNotExist."""
    with platform_context():
        found: Tenant = Tenant.objects.get(pk=tenant_id)
        return found
