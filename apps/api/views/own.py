"""What both sides have: oneself, one's access keys, one's notices; the audit trail."""

from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from apps.accounts import selectors as accounts
from apps.accounts import services as people
from apps.accounts.models import AccessKey, User
from apps.api.operations import Asked, Endpoint, acts, lists, shows
from apps.api.serializers import people as shapes
from apps.audit import selectors as audit
from apps.audit.models import AuditEntry
from apps.core.realms import current_tenant_id
from apps.notices import services as notices
from apps.notices.models import Notice


class Me(Endpoint):
    """The person who asks."""

    @shows("showMe", None, shapes.MeSerializer)
    def get(self, asked: Asked) -> User:
        """Show who is asking and what they may do."""
        return asked.user


class AccessKeys(Endpoint):
    """The person's own keys for programs."""

    @lists("listAccessKeys", "access_key.manage", shapes.AccessKeySerializer, order=("-id",))
    def get(self, asked: Asked) -> QuerySet[AccessKey]:
        """List your access keys that are not revoked, newest first."""
        return accounts.access_keys_of(asked.user)

    @acts(
        "createAccessKey",
        "access_key.manage",
        shapes.FreshAccessKey,
        body=shapes.NewAccessKey,
        status=201,
        withheld="token",
    )
    def post(self, asked: Asked) -> AccessKey:
        """Make an access key; its token is shown this once."""
        key, token = people.create_access_key(actor=asked.user, **asked.body)
        key.token = token  # type: ignore[attr-defined]
        return key


class AccessKeyItem(Endpoint):
    """One of the person's own keys."""

    @acts("revokeAccessKey", "access_key.manage", None)
    def delete(self, asked: Asked, key: UUID) -> None:
        """Revoke an access key at once."""
        people.revoke_access_key(key_id=key, actor=asked.user)


class Notices(Endpoint):
    """What the person was told."""

    @lists("listNotices", None, shapes.NoticeSerializer, query=shapes.NoticeFilters, order=("-id",))
    def get(self, asked: Asked) -> QuerySet[Notice]:
        """List your notices, newest first; staff also see those to all operators."""
        return _told(asked.user).filter(**asked.query)


class NoticeRead(Endpoint):
    """One notice."""

    @acts("readNotice", None, shapes.NoticeSerializer)
    def post(self, asked: Asked, notice: UUID) -> Notice:
        """Mark a notice as read."""
        found = _told(asked.user).get(pk=notice)
        return notices.mark_read(notice_id=notice, person_id=found.recipient)


def _told(user: User) -> QuerySet[Notice]:
    to = Q(recipient=user.pk)
    if user.is_staff_side:
        to |= Q(recipient=None)
    return Notice.objects.filter(to, tenant=current_tenant_id())


class AuditEntries(Endpoint):
    """Who did what, when, from where."""

    @lists(
        "listAuditEvents",
        "audit.view",
        shapes.AuditEntrySerializer,
        query=shapes.AuditFilters,
        order=("-id",),
    )
    def get(self, asked: Asked) -> QuerySet[AuditEntry]:
        """List the audit trail of this side, newest first."""
        conditions: dict[str, Any] = asked.query
        return audit.entries(**conditions)
