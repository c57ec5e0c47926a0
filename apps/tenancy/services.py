"""Every change to tenants."""

from typing import Any

from django.conf import settings
from django.db import IntegrityError, connection, transaction

from apps.core.validation import check_fields
from apps.tenancy.errors import TenantExists
from apps.tenancy.middleware import forget_hosts
from apps.tenancy.models import Domain, Tenant
from apps.tenancy.states import TENANT


def create_tenant(*, slug: str, name: str, **terms: Any) -> Tenant:
    """Make a tenant: row, host `<slug>.<base domain>` and schema, in one transaction.

    `terms` are columns of Tenant (currency, billing_timezone, vat_rate, language, legal data).
    Raises TenantExists, or Invalid naming each malformed slug or term.
    """
    schema = "t_" + slug.replace("-", "_")
    tenant = Tenant(slug=slug, name=name, schema_name=schema, **terms)
    check_fields(tenant)
    if Tenant.objects.filter(schema_name__iexact=schema).exists():
        raise TenantExists(slug=slug, field="slug")
    try:
        with transaction.atomic():
            tenant.save()
            Domain(
                domain=f"{slug}.{settings.NEOCLOUD_BASE_DOMAIN}", tenant=tenant, is_primary=True
            ).save()
            with connection.cursor() as cursor:
                cursor.execute("SELECT public.create_tenant_schema(%s)", [schema])
                (tenant.schema_version,) = cursor.fetchone()
            TENANT.move(tenant, "activate")
            tenant.save(update_fields=["status", "schema_version"])
    except IntegrityError as error:
        raise TenantExists(slug=slug, field="slug") from error
    forget_hosts()
    return tenant
