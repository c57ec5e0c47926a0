"""Questions about people, projects and keys of the side the connection is on."""

from uuid import UUID

from django.db.models import Count, Q, QuerySet

from apps.accounts.errors import NoSuchPerson, NoSuchProject
from apps.accounts.models import AccessKey, Project, SSHKey, User
from apps.accounts.roles import PERMISSIONS, Role
from apps.core.realms import PLATFORM, speaker
from apps.notices.services import Recipient


def people() -> QuerySet[User]:
    """Everybody of this side, those who may sign in first."""
    users: QuerySet[User] = User.objects.order_by("-is_active", "name", "id")
    return users


def person_by_id(person_id: UUID | str) -> User:
    """One person. Raises NoSuchPerson."""
    user: User | None = User.objects.filter(pk=person_id).first()
    if user is None:
        raise NoSuchPerson()
    return user


def person_by_email(email: str) -> User | None:
    """The person with this mail address, whatever its case."""
    user: User | None = User.objects.filter(email__iexact=email).first()
    return user


def projects(*, with_archived: bool = False) -> QuerySet[Project]:
    """The tenant's projects by name, each with `member_count`."""
    found = Project.objects.annotate(member_count=Count("members")).order_by("name", "id")
    return found if with_archived else found.filter(archived_at=None)


def project_by_id(project_id: UUID | str) -> Project:
    """One project. Raises NoSuchProject."""
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        raise NoSuchProject()
    return project


def projects_of(user: User) -> QuerySet[Project]:
    """The projects a person works in: those they are a member of, or all when of none."""
    mine = Project.objects.filter(archived_at=None, members__user=user)
    if mine.exists():
        return mine.order_by("name", "id")
    return Project.objects.filter(archived_at=None).order_by("name", "id")


def ssh_keys_of(user: User) -> QuerySet[SSHKey]:
    """A person's public keys, newest first."""
    return SSHKey.objects.filter(user=user).order_by("-id")


def access_keys_of(user: User) -> QuerySet[AccessKey]:
    """A person's access keys that were not revoked, newest first."""
    return AccessKey.objects.filter(user=user, revoked_at=None).order_by("-id")


def recipient_of(user: User) -> Recipient:
    """How notices reach a person."""
    return Recipient(id=user.pk, email=user.email, language=user.language)


def admins_to_tell() -> list[Recipient]:
    """Who is told what concerns the whole side: its owners and administrators."""
    first = [Role.PLATFORM_ADMIN] if speaker() == PLATFORM else [Role.OWNER, Role.ADMIN]
    users = User.objects.filter(is_active=True, role__in=first).order_by("id")
    return [recipient_of(user) for user in users]


def people_who_may(permission: str) -> QuerySet[User]:
    """Active people whose role holds the permission."""
    roles = [role for role, held in PERMISSIONS.items() if permission in held]
    users: QuerySet[User] = User.objects.filter(Q(is_active=True) & Q(role__in=roles))
    return users.order_by("name", "id")
