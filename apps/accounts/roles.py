"""The one table of roles: who may do what, on which side."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class Role(models.TextChoices):
    """Roles of both sides; a role belongs to exactly one side."""

    OWNER = "owner", _("Owner")
    ADMIN = "admin", _("Administrator")
    BILLING = "billing", _("Billing")
    MEMBER = "member", _("Member")
    VIEWER = "viewer", _("Viewer")
    OPERATOR = "operator", _("Operator")
    FINANCE = "finance", _("Finance")
    AUDITOR = "auditor", _("Auditor")
    PLATFORM_ADMIN = "platform_admin", _("Platform administrator")


TENANT_ROLES = (Role.OWNER, Role.ADMIN, Role.BILLING, Role.MEMBER, Role.VIEWER)
PLATFORM_ROLES = (Role.OPERATOR, Role.FINANCE, Role.AUDITOR, Role.PLATFORM_ADMIN)

_SEE = {"catalog.view", "order.view", "service.view", "project.view"}
_USE = _SEE | {
    "order.place",
    "order.cancel",
    "service.operate",
    "service.terminate",
    "ssh_key.manage",
}
_MONEY = {"invoice.view", "usage.view"}
_RULE = {
    "order.approve",
    "member.manage",
    "project.manage",
    "quota.manage",
    "audit.view",
    "access_key.manage",
}
_STAFF = {"tenant.view", "order.view", "service.view", "run.view", "node.view", "capacity.view"}
_OPERATE = _STAFF | {
    "run.act",
    "run.override",
    "node.act",
    "service.operate",
    "service.terminate",
    "site.manage",
    "catalog.view",
    "tenant.manage",
    "quota.manage",
}
_FINANCE = _STAFF | {
    "catalog.view",
    "price.manage",
    "invoice.view",
    "invoice.manage",
    "usage.view",
    "export",
}

PERMISSIONS: dict[str, frozenset[str]] = {
    Role.OWNER: frozenset(_USE | _MONEY | _RULE),
    Role.ADMIN: frozenset(_USE | _MONEY | _RULE),
    Role.BILLING: frozenset(_SEE | _MONEY | {"access_key.manage"}),
    Role.MEMBER: frozenset(_USE | {"access_key.manage"}),
    Role.VIEWER: frozenset(_SEE),
    Role.OPERATOR: frozenset(_OPERATE | {"access_key.manage"}),
    Role.FINANCE: frozenset(_FINANCE | {"access_key.manage"}),
    Role.AUDITOR: frozenset(_STAFF | {"catalog.view", "invoice.view", "usage.view", "audit.view"}),
    Role.PLATFORM_ADMIN: frozenset(
        _OPERATE | _FINANCE | {"audit.view", "catalog.manage", "staff.manage", "access_key.manage"}
    ),
}


# Nobody grants more than they hold, nor changes a person who stands above them.
_RANK: dict[str, int] = {
    Role.VIEWER: 1,
    Role.MEMBER: 2,
    Role.BILLING: 2,
    Role.ADMIN: 3,
    Role.OWNER: 4,
    Role.AUDITOR: 1,
    Role.OPERATOR: 2,
    Role.FINANCE: 2,
    Role.PLATFORM_ADMIN: 4,
}
FIRST_ROLES = (Role.OWNER, Role.PLATFORM_ADMIN)  # each side keeps at least one person in these


def reaches(role: str, other: str) -> bool:
    """Does the role stand at least as high as the other one of its side?"""
    return _RANK[role] >= _RANK[other]


def holders(permission: str, *, like: str) -> list[Role]:
    """The roles that hold the permission, on the side of the role `like`."""
    side = PLATFORM_ROLES if like in PLATFORM_ROLES else TENANT_ROLES
    return [role for role in side if allows(role, permission)]


def allows(role: str, permission: str) -> bool:
    """Does the role hold the permission?"""
    return permission in PERMISSIONS.get(role, frozenset())
