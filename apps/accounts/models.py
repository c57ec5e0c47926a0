"""People, their projects and their keys."""

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower

from apps.accounts.roles import PLATFORM_ROLES, Role, allows
from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7


class UserManager(BaseUserManager["User"]):
    """Finds people by their mail address, whatever its case."""

    def get_by_natural_key(self, username: str | None) -> "User":
        """The person with this mail address."""
        return self.get(email__iexact=username)


class User(realms.Both, AbstractBaseUser):
    """A person with one role: staff in schema `public`, a tenant's people in the tenant's."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=120)
    role = models.CharField(max_length=20, choices=Role.choices)
    language = models.CharField(max_length=8, default="en", choices=settings.LANGUAGES)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = ["name", "role"]
    objects: ClassVar[Any] = UserManager()

    class Meta:
        constraints = [models.UniqueConstraint(Lower("email"), name="user_email_once")]

    def __str__(self) -> str:
        return self.name

    @property
    def is_staff_side(self) -> bool:
        """Is this person one of the operator's own staff?"""
        return self.role in PLATFORM_ROLES

    def may(self, permission: str) -> bool:
        """Does this person's role hold the permission?"""
        return self.is_active and allows(self.role, permission)


class Project(realms.Tenant, models.Model):
    """A part of a tenant's organisation that orders and is charged by name."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=80, unique=True)
    description = models.CharField(max_length=300, default="", blank=True)
    created_at = models.DateTimeField(db_default=NeoNow())
    archived_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name


class ProjectMember(realms.Tenant, models.Model):
    """A person's place in a project; members of none see every project their role lets them."""

    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="members")
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="projects")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "user"], name="project_member_once")
        ]

    def __str__(self) -> str:
        return f"{self.user} in {self.project}"


class SSHKey(realms.Tenant, models.Model):
    """A public key that is put on servers."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="ssh_keys")
    name = models.CharField(max_length=80)
    public_key = models.TextField()
    fingerprint = models.CharField(max_length=80)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "fingerprint"], name="ssh_key_once")]

    def __str__(self) -> str:
        return self.name


class AccessKey(realms.Both, models.Model):
    """A bearer token for programs: acts as its user, ends at its expiry; only its hash is kept."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    user = models.ForeignKey(User, on_delete=models.CASCADE, related_name="access_keys")
    name = models.CharField(max_length=80)
    prefix = models.CharField(max_length=16)
    token_hash = models.CharField(max_length=64, unique=True)
    created_at = models.DateTimeField(db_default=NeoNow())
    expires_at = models.DateTimeField()
    last_used_at = models.DateTimeField(null=True)
    revoked_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"
