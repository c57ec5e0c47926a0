"""Recording acts: in the transaction of the act, never after it."""

from typing import Any
from uuid import UUID

import structlog
from django.db import models, transaction

from apps.audit.models import AuditEntry
from apps.core import outbox
from apps.core.realms import current_tenant_id


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

    `actor` is a User, or None for the platform itself; `subject` is a model instance or (type, id, label).
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

