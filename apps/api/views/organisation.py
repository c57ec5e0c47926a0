"""A tenant's people, projects, shares of the limit, and SSH keys."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.accounts import selectors, services
from apps.accounts.models import Project, ProjectMember, SSHKey, User
from apps.api.operations import Asked, Endpoint, acts, gathers, lists, shows
from apps.api.serializers import people as shapes
from apps.orders import selectors as orders
from apps.orders.selectors import project_gpus_in_use
from apps.orders.services import set_project_limit


class Members(Endpoint):
    """The people of the organisation."""

    @lists("listMembers", "member.manage", shapes.PersonSerializer, query=shapes.MemberFilters)
    def get(self, asked: Asked) -> QuerySet[User]:
        """List the people of the organisation, newest first."""
        return selectors.people().filter(**asked.query)

    @acts("addMember", "member.manage", shapes.PersonSerializer, body=shapes.NewMember, status=201)
    def post(self, asked: Asked) -> User:
        """Add a person; they are invited by mail to choose a password."""
        return services.create_person(actor=asked.user, **asked.body)


class MemberItem(Endpoint):
    """One person."""

    @shows("showMember", "member.manage", shapes.PersonSerializer)
    def get(self, asked: Asked, person: UUID) -> User:
        """Show a person."""
        return selectors.person_by_id(person)

    @acts("changeMemberRole", "member.manage", shapes.PersonSerializer, body=shapes.RoleChange)
    def patch(self, asked: Asked, person: UUID) -> User:
        """Give a person another role."""
        return services.change_role(person_id=person, actor=asked.user, **asked.body)


class MemberDeactivation(Endpoint):
    """Keeps a person out."""

    @acts("deactivateMember", "member.manage", shapes.PersonSerializer)
    def post(self, asked: Asked, person: UUID) -> User:
        """Keep a person out: sessions and access keys stop working."""
        return services.deactivate_person(person_id=person, actor=asked.user)


class MemberReactivation(Endpoint):
    """Lets a person in again."""

    @acts("reactivateMember", "member.manage", shapes.PersonSerializer)
    def post(self, asked: Asked, person: UUID) -> User:
        """Let a person in again."""
        return services.reactivate_person(person_id=person, actor=asked.user)


class Projects(Endpoint):
    """The parts of the organisation that order."""

    @lists("listProjects", "project.view", shapes.ProjectSerializer, query=shapes.ProjectFilters)
    def get(self, asked: Asked) -> QuerySet[Project]:
        """List projects, newest first, archived ones too."""
        return selectors.projects(with_archived=True).filter(**asked.query)

    @acts(
        "createProject",
        "project.manage",
        shapes.ProjectSerializer,
        body=shapes.NewProject,
        status=201,
    )
    def post(self, asked: Asked) -> Project:
        """Create a project."""
        return services.create_project(actor=asked.user, **asked.body)


class ProjectItem(Endpoint):
    """One project."""

    @shows("showProject", "project.view", shapes.ProjectSerializer)
    def get(self, asked: Asked, project: UUID) -> Project:
        """Show a project."""
        return selectors.project_by_id(project)


class ProjectArchive(Endpoint):
    """Takes a project out of use."""

    @acts("archiveProject", "project.manage", shapes.ProjectSerializer)
    def post(self, asked: Asked, project: UUID) -> Project:
        """Archive a project: nothing new is ordered in it, its services go on."""
        return services.archive_project(project_id=project, actor=asked.user)


class ProjectMembers(Endpoint):
    """Who works in a project."""

    @lists("listProjectMembers", "project.view", shapes.ProjectMemberSerializer, order=("-id",))
    def get(self, asked: Asked, project: UUID) -> QuerySet[ProjectMember]:
        """List who works in a project."""
        return selectors.project_by_id(project).members.select_related("user")

    @acts(
        "addProjectMember",
        "project.manage",
        shapes.ProjectMemberSerializer,
        body=shapes.PersonChoice,
        status=201,
    )
    def post(self, asked: Asked, project: UUID) -> ProjectMember:
        """Let a person work in a project."""
        return services.add_member(project_id=project, actor=asked.user, **asked.body)


class ProjectMemberItem(Endpoint):
    """A person's place in a project."""

    @acts("removeProjectMember", "project.manage", None)
    def delete(self, asked: Asked, project: UUID, person: UUID) -> None:
        """Take a person out of a project."""
        services.remove_member(project_id=project, person_id=person, actor=asked.user)


class Quotas(Endpoint):
    """Use beside limits."""

    @gathers("listQuotas", "project.view", shapes.QuotaSerializer)
    def get(self, asked: Asked) -> Iterator[dict[str, Any]]:
        """List the organisation's use and limits, then each open project's GPUs."""
        for row in orders.quota_use():
            yield {"resource": row.label, "project": None, "used": row.used, "limit": row.limit}
        for project, row in orders.project_use():
            yield {"resource": "gpus", "project": project, "used": row.used, "limit": row.limit}


class QuotaOfProject(Endpoint):
    """A project's share of the limit."""

    @acts("setProjectQuota", "quota.manage", shapes.QuotaSerializer, body=shapes.ProjectLimitChange)
    def put(self, asked: Asked, project: UUID) -> dict[str, Any]:
        """Set or take away a project's share of the organisation's GPUs."""
        own = set_project_limit(project_id=project, actor=asked.user, **asked.body)
        return {
            "resource": "gpus",
            "project": selectors.project_by_id(project),
            "used": project_gpus_in_use(project=project),
            "limit": own.max_gpus if own else None,
        }


class SSHKeys(Endpoint):
    """The person's own public keys."""

    @lists("listSSHKeys", "ssh_key.manage", shapes.SSHKeySerializer, order=("-id",))
    def get(self, asked: Asked) -> QuerySet[SSHKey]:
        """List your public keys, newest first."""
        return selectors.ssh_keys_of(asked.user)

    @acts("addSSHKey", "ssh_key.manage", shapes.SSHKeySerializer, body=shapes.NewSSHKey, status=201)
    def post(self, asked: Asked) -> SSHKey:
        """Store a public key to put on servers."""
        return services.add_ssh_key(actor=asked.user, **asked.body)


class SSHKeyItem(Endpoint):
    """One of the person's own public keys."""

    @acts("removeSSHKey", "ssh_key.manage", None)
    def delete(self, asked: Asked, key: UUID) -> None:
        """Forget a public key; servers that have it keep it."""
        services.remove_ssh_key(key_id=key, actor=asked.user)
