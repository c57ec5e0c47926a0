"""One table says who may what."""

import pytest

from apps.accounts.roles import (
    PERMISSIONS,
    PLATFORM_ROLES,
    TENANT_ROLES,
    Role,
    allows,
    holders,
    reaches,
)


def test_every_role_stands_on_exactly_one_side_and_has_permissions():
    assert set(TENANT_ROLES) | set(PLATFORM_ROLES) == set(Role)
    assert not set(TENANT_ROLES) & set(PLATFORM_ROLES)
    assert set(PERMISSIONS) == set(Role)


@pytest.mark.parametrize("role", TENANT_ROLES)
@pytest.mark.parametrize("permission", ["node.act", "price.manage", "tenant.view", "run.view"])
def test_no_role_of_a_tenant_holds_what_staff_hold(role, permission):
    assert not allows(role, permission)


def test_a_viewer_sees_and_does_nothing():
    assert allows(Role.VIEWER, "order.view")
    assert not any(
        allows(Role.VIEWER, verb) for verb in ("order.place", "member.manage", "invoice.view")
    )


def test_an_auditor_reads_everything_and_changes_nothing():
    assert allows(Role.AUDITOR, "audit.view")
    assert not [p for p in PERMISSIONS[Role.AUDITOR] if p.endswith((".manage", ".act", ".place"))]


def test_an_owner_stands_above_an_administrator():
    assert reaches(Role.OWNER, Role.ADMIN)
    assert not reaches(Role.ADMIN, Role.OWNER)


def test_the_holders_named_are_of_the_persons_own_side():
    assert holders("service.terminate", like=Role.VIEWER) == [Role.OWNER, Role.ADMIN, Role.MEMBER]
    assert holders("service.terminate", like=Role.AUDITOR) == [Role.OPERATOR, Role.PLATFORM_ADMIN]


def test_an_unknown_role_may_nothing():
    assert not allows("root", "order.view")
