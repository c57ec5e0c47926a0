"""Opening a tenant: everything it needs to order."""

from typing import Any

from django.db import transaction

from apps.accounts import services as accounts
from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.audit import services as audit
from apps.orders.services.limits import ensure_tenant_limit
from apps.tenancy import services as tenancy
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant

FIRST_PROJECT = "default"


@transaction.atomic
def open_tenant(
    *,
    slug: str,
    name: str,
    owner_email: str,
    owner_name: str,
    actor: User | None,
    owner_password: str | None = None,
    **terms: Any,
) -> Tenant:
    """Make a tenant with its schema, host, limits, first project and owner; all of it or nothing.

    For the platform's side. `terms` are columns of Tenant. Without a password the owner is told by
    mail how to set one. Raises TenantExists, Invalid or ValidationError naming the field.
    """
    tenant = tenancy.create_tenant(slug=slug, name=name, **terms)
    ensure_tenant_limit(tenant=tenant.id)
    with tenant_context(tenant):
        accounts.create_project(name=FIRST_PROJECT, actor=None)
        accounts.create_person(
            email=owner_email,
            name=owner_name,
            role=Role.OWNER,
            language=tenant.language,
            password=owner_password,
            actor=None,
        )
    audit.record(actor, "tenant.created", tenant, after={"slug": slug, "currency": tenant.currency})
    return tenant
