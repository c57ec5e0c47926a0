"""Limits, and the locks under which use is counted: the tenant's first, then the project's."""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _
from psycopg.types.range import TimestamptzRange

from apps.accounts.models import Project, User
from apps.audit import services as audit
from apps.core import clock
from apps.core.errors import NotFound
from apps.orders.errors import LimitTooLow, QuotaExceeded, TooManyServices
from apps.orders.models import ProjectLimit, TenantLimit
from apps.orders.selectors import gpus_in_use, project_gpus_in_use, services_in_use

HIGHEST = 100_000


def ensure_tenant_limit(*, tenant: UUID) -> None:
    """Give a tenant the platform's ordinary limits, if it has none."""
    TenantLimit.objects.bulk_create([TenantLimit(tenant=tenant)], ignore_conflicts=True)


def reserve_quota(
    *,
    tenant: UUID,
    project: Project,
    gpus: int,
    services: int,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
) -> None:
    """Lock both limits and refuse what would pass them at any time from start (now) to end (never);
    the locks are held to the end of the transaction.
    """
    term = TimestamptzRange(starts_at or clock.now(), ends_at)
    ensure_tenant_limit(tenant=tenant)
    limit = TenantLimit.objects.select_for_update().get(tenant=tenant)
    used = gpus_in_use(tenant=tenant, during=term)
    if used + gpus > limit.max_gpus:
        raise QuotaExceeded(
            whose=_("your organisation"),
            limit=limit.max_gpus,
            used=used,
            asked=gpus,
            field="quantity",
        )
    count = services_in_use(tenant=tenant)
    if count + services > limit.max_services:
        raise TooManyServices(
            limit=limit.max_services, used=count, asked=services, field="quantity"
        )
    own = ProjectLimit.objects.select_for_update().filter(project=project).first()
    if own is not None:
        used = project_gpus_in_use(project=project.pk, during=term)
        if used + gpus > own.max_gpus:
            raise QuotaExceeded(
                whose=project.name, limit=own.max_gpus, used=used, asked=gpus, field="quantity"
            )


def _checked(value: int, most: int, field: str) -> int:
    if not 0 <= value <= most:
        raise LimitTooLow(most=most, asked=value, field=field)
    return value


@transaction.atomic
def set_tenant_limit(
    *, tenant: UUID, max_gpus: int, max_services: int, actor: User, tenant_name: str = ""
) -> TenantLimit:
    """Set the platform's limits of a tenant; for the platform's side."""
    ensure_tenant_limit(tenant=tenant)
    limit = TenantLimit.objects.select_for_update().get(tenant=tenant)
    before = {"max_gpus": limit.max_gpus, "max_services": limit.max_services}
    limit.max_gpus = _checked(max_gpus, HIGHEST, "max_gpus")
    limit.max_services = _checked(max_services, HIGHEST, "max_services")
    limit.save(update_fields=["max_gpus", "max_services"])
    audit.record(
        actor,
        "tenant.limit_changed",
        ("tenant", tenant, tenant_name),
        before=before,
        after={"max_gpus": max_gpus, "max_services": max_services},
    )
    return limit


@transaction.atomic
def set_project_limit(
    *, project_id: UUID, max_gpus: int | None, actor: User
) -> ProjectLimit | None:
    """Set a project's share of the tenant's limit; None takes the share away, so only the tenant's
    counts.
    """
    tenant_limit = (
        TenantLimit.objects.select_for_update().first()
    )  # before the project: the lock order
    project = Project.objects.select_for_update(no_key=True).filter(pk=project_id).first()
    if project is None:
        raise NotFound(field="project")
    own = ProjectLimit.objects.filter(project=project).first()
    before = {"max_gpus": own.max_gpus if own else None}
    if max_gpus is None:
        ProjectLimit.objects.filter(project=project).delete()
        own = None
    else:
        most = tenant_limit.max_gpus if tenant_limit else HIGHEST
        own, _made = ProjectLimit.objects.update_or_create(
            project=project, defaults={"max_gpus": _checked(max_gpus, most, "max_gpus")}
        )
    audit.record(
        actor, "project.limit_changed", project, before=before, after={"max_gpus": max_gpus}
    )
    return own
