"""Questions about notices."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.core.realms import current_tenant_id
from apps.notices.models import Notice


def notices_of(person_id: UUID) -> QuerySet[Notice]:
    """What a person of this side was told, newest first."""
    return Notice.objects.filter(tenant=current_tenant_id(), recipient=person_id).order_by("-id")


def operator_notices() -> QuerySet[Notice]:
    """What all operators were told, newest first; for the platform's side."""
    return Notice.objects.filter(tenant=None, recipient=None).order_by("-id")


def unread_count(person: Any) -> int:
    """How many notices wait for a person; on the platform's side those to all operators too."""
    if not person.is_authenticated:
        return 0
    mine = Q(recipient=person.pk)
    if current_tenant_id() is None:
        mine |= Q(recipient=None)
    return Notice.objects.filter(mine, tenant=current_tenant_id(), read_at=None).count()
