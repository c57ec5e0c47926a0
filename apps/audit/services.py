"""Recording acts: in the transaction of the act, never after it."""

from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import models, transaction

from apps.audit.models import AuditEntry
from apps.core import clock, outbox
from apps.core.realms import current_tenant_id

_STAFF_LOOK = timedelta(minutes=10)


def record(
    actor: Any,
    action: str,
    subject: models.Model | tuple[str, UUID | str, str],
    *,
    reason: str = "",
    result: str = "done",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> AuditEntry:
    """Add an entry to the audit trail of the side the connection is on.

    `actor` is a User, or None for the platform itself; `subject` is a model instance or
    (type, id, label).
    Values in `before` and `after` must be JSON and never secrets.
    """
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError(f"{action}: an act is recorded inside its transaction")
    if isinstance(subject, models.Model):
        subject = (subject._meta.model_name or "", subject.pk, str(subject))
    bound = structlog.contextvars.get_contextvars()
    side = "system"
    if actor is not None:
        side = "platform" if actor.is_staff_side else "tenant"
    tenant = current_tenant_id()
    if tenant is not None:
        outbox.hint_work("seal_audit", tenant=tenant)
    return AuditEntry.objects.create(
        actor_id=getattr(actor, "pk", None),
        actor_name=str(actor) if actor is not None else "NeoCloud OS",
        actor_side=side,
        action=action,
        subject_type=subject[0],
        subject_id=str(subject[1]),
        subject_label=subject[2][:200],
        result=result,
        reason=reason,
        before=before,
        after=after,
        ip=bound.get("ip"),
        request_id=str(bound.get("request_id", "")),
    )


def record_staff_access(actor: Any, *, what: str, label: str = "") -> AuditEntry | None:
    """Let a tenant see that staff looked at its data: an entry in the tenant's own trail.

    Call it inside the tenant's context. A page that reloads itself leaves one entry in ten minutes.
    """
    tenant = current_tenant_id()
    if tenant is None:
        raise RuntimeError("staff access is recorded in the tenant it was to")
    with transaction.atomic():
        recent = AuditEntry.objects.filter(
            action="staff.looked",
            actor_id=actor.pk,
            subject_type="tenant_data",
            subject_id=what,
            subject_label=label[:200],
            at__gt=clock.now() - _STAFF_LOOK,
        )
        if recent.exists():
            return None
        return record(actor, "staff.looked", ("tenant_data", what, label))
