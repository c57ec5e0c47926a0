"""People, projects, keys, quotas, notices, the audit trail."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from apps.accounts.models import AccessKey, Project, SSHKey, User
from apps.accounts.roles import PERMISSIONS, TENANT_ROLES, Role
from apps.api.serializers.base import Filters, Instant, Shown, ShownModel, Strict
from apps.audit.models import AuditEntry
from apps.notices.models import Notice

MEMBER_ROLES = [(str(role), role.label) for role in TENANT_ROLES]


class PersonSerializer(ShownModel[User]):
    """A person of this side."""

    class Meta:
        model = User
        fields = ["id", "email", "name", "role", "language", "is_active", "created_at"]


class OwnTenantSerializer(Shown):
    """The organisation the person belongs to."""

    id = serializers.UUIDField()
    slug = serializers.CharField()
    name = serializers.CharField()
    currency = serializers.CharField()
    billing_timezone = serializers.CharField()


class MeSerializer(PersonSerializer):
    """Who is asking, and what they may do."""

    permissions = serializers.SerializerMethodField()
    tenant = serializers.SerializerMethodField()

    class Meta(PersonSerializer.Meta):
        fields = [*PersonSerializer.Meta.fields, "permissions", "tenant"]

    def get_permissions(self, person: User) -> list[str]:
        """The permissions of the role, sorted."""
        return sorted(PERMISSIONS.get(person.role, ()))

    @extend_schema_field(OwnTenantSerializer(allow_null=True))
    def get_tenant(self, person: User) -> dict[str, Any] | None:
        """Null for staff."""
        tenant = getattr(self.context["request"], "tenant", None)
        return None if person.is_staff_side else OwnTenantSerializer(tenant).data


class NewMember(Strict):
    """A person to add to the organisation."""

    email = serializers.EmailField(max_length=254)
    name = serializers.CharField(max_length=120)
    role = serializers.ChoiceField(MEMBER_ROLES)
    language = serializers.ChoiceField([("en", "English"), ("ko", "Korean")], default="en")


class RoleChange(Strict):
    """Another role of the organisation."""

    role = serializers.ChoiceField(MEMBER_ROLES)


class MemberFilters(Filters):
    """Conditions on members."""

    role = serializers.ChoiceField(Role.choices, required=False)
    is_active = serializers.BooleanField(required=False)


class ProjectSerializer(ShownModel[Project]):
    """A part of the organisation that orders and is charged by name."""

    class Meta:
        model = Project
        fields = ["id", "name", "description", "created_at", "archived_at"]


class ProjectRef(Shown):
    """A project, by id and name."""

    id = serializers.UUIDField()
    name = serializers.CharField()


class NewProject(Strict):
    """A project to create."""

    name = serializers.CharField(max_length=80)
    description = serializers.CharField(max_length=300, required=False, allow_blank=True)


class ProjectFilters(Filters):
    """Conditions on projects."""

    is_open = serializers.BooleanField(source="archived_at__isnull", required=False)


class ProjectMemberSerializer(Shown):
    """A person's place in a project."""

    person = PersonSerializer(source="user")


class PersonChoice(Strict):
    """A person, by id."""

    person = serializers.UUIDField(source="person_id")


class SSHKeySerializer(ShownModel[SSHKey]):
    """A public key that is put on servers."""

    class Meta:
        model = SSHKey
        fields = ["id", "name", "public_key", "fingerprint", "created_at"]


class NewSSHKey(Strict):
    """A public key in OpenSSH's form."""

    name = serializers.CharField(max_length=80)
    public_key = serializers.CharField(max_length=8000)


class AccessKeySerializer(ShownModel[AccessKey]):
    """A bearer token of a program; only its beginning is ever shown again."""

    class Meta:
        model = AccessKey
        fields = ["id", "name", "prefix", "created_at", "expires_at", "last_used_at", "revoked_at"]


class FreshAccessKey(AccessKeySerializer):
    """The answer to making one: `token` is shown once; a repeated request gets null."""

    token = serializers.CharField(allow_null=True)

    class Meta(AccessKeySerializer.Meta):
        fields = [*AccessKeySerializer.Meta.fields, "token"]


class NewAccessKey(Strict):
    """An access key to make."""

    name = serializers.CharField(max_length=80)
    days = serializers.IntegerField(min_value=1, max_value=365, required=False)


class QuotaSerializer(Shown):
    """Use beside limit; `limit` is null where there is none."""

    resource = serializers.CharField()
    project = ProjectRef(allow_null=True)
    used = serializers.IntegerField()
    limit = serializers.IntegerField(allow_null=True)


class ProjectLimitChange(Strict):
    """A project's share of the organisation's GPUs; null takes the share away."""

    max_gpus = serializers.IntegerField(min_value=0, max_value=2**31 - 1, allow_null=True)


class AuditEntrySerializer(ShownModel[AuditEntry]):
    """One act: who, what, when, from where, with which result."""

    before = serializers.DictField(allow_null=True)
    after = serializers.DictField(allow_null=True)

    class Meta:
        model = AuditEntry
        fields = [
            "id", "at", "actor_id", "actor_name", "actor_side", "action", "subject_type",
            "subject_id", "subject_label", "result", "reason", "before", "after", "ip",
            "request_id",
        ]  # fmt: skip


class AuditFilters(Filters):
    """Conditions on the audit trail."""

    action = serializers.CharField(max_length=80, required=False)
    actor = serializers.UUIDField(source="actor_id", required=False)
    subject_type = serializers.CharField(max_length=40, required=False)
    subject = serializers.CharField(source="subject_id", max_length=60, required=False)
    since = Instant(required=False)
    until = Instant(required=False)


class NoticeSerializer(ShownModel[Notice]):
    """Something a person was told."""

    class Meta:
        model = Notice
        fields = ["id", "kind", "subject", "body", "link", "created_at", "read_at"]


class NoticeFilters(Filters):
    """Conditions on notices."""

    is_unread = serializers.BooleanField(source="read_at__isnull", required=False)
