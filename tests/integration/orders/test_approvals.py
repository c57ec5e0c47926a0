"""Approvals: asked where the policy says so, answered once, recorded, told; nothing held before."""

from datetime import timedelta

import pytest

from apps.accounts.roles import Role
from apps.audit.models import AuditEntry
from apps.catalog.models import Offering
from apps.core import clock
from apps.core.errors import AppError
from apps.core.machine import WrongStatus
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation
from apps.notices.models import Notice
from apps.orders import services as orders
from apps.orders.deadlines import serve_due
from apps.orders.errors import (
    OwnApproval,
    QuotaExceeded,
    ReasonNeeded,
    TooLong,
    UnknownProject,
    WrongPolicy,
)
from apps.orders.models import Approval, Deadline, Order, OrderProjection, Service, TenantLimit
from apps.orders.selectors import order_policy
from apps.tenancy.context import platform_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
DAY = timedelta(days=1)


@pytest.fixture
def owner(site, acme):
    builders.a_project("training")
    return builders.a_person(name="Olga Owner")


@pytest.fixture
def member(owner):
    """Somebody whose orders of 8 GPUs need approval."""
    policy(owner, approval_from_gpus=8)
    return builders.a_person(role=Role.MEMBER, name="Max Member")


def policy(owner, **figures):
    asked = {"approval_from_gpus": None, "approval_hours": 72, "longest_days": None} | figures
    return orders.set_order_policy(**asked, actor=owner)


def serve(at):
    builders.move_clock(at)
    with platform_context():
        return serve_due()


def acts(thing):
    found = AuditEntry.objects.filter(subject_id=str(thing.pk)).order_by("id")
    return list(found.values_list("action", flat=True))


def test_an_order_of_a_member_waits_and_holds_nothing(member):
    order = world.an_accepted_order(person=member)

    assert order.status == "placed"
    assert "8" in order.approval.rule
    assert not Service.objects.exists()
    assert not Allocation.objects.exists()
    assert ledger.used() == {"gpus": 0, "services": 0}
    assert OrderProjection.objects.get().status == "placed"
    assert acts(order) == ["order.placed", "approval.asked"]
    ledger.must_be_sound()


def test_who_may_approve_needs_no_approval(member, owner):
    assert world.an_accepted_order(person=owner).status == "accepted"


def test_fewer_gpus_than_the_policy_says_need_none(owner, member):
    policy(owner, approval_from_gpus=9)
    assert world.an_accepted_order(person=member).status == "accepted"


def test_approvers_are_told_once_by_page_and_mail_and_who_asked_of_the_answer(member, owner):
    admin = builders.a_person(role=Role.ADMIN)
    order = world.an_accepted_order(person=member)
    world.deliver()
    world.deliver()
    asked = Notice.objects.filter(kind="approval.asked")
    assert {one.recipient for one in asked} == {owner.pk, admin.pk}
    assert all(order.number in one.subject and "Max Member" in one.body for one in asked)
    assert all(one.email and one.link.endswith(f"/orders/{order.pk}/") for one in asked)

    orders.approve(approval_id=order.approval.pk, actor=owner, reason="for the paper")
    world.deliver()
    told = Notice.objects.get(kind="approval.answered")
    assert told.recipient == member.pk
    assert "Olga Owner" in told.body
    assert "for the paper" in told.body


def test_approving_goes_on_at_once_at_the_price_that_was_quoted(member, owner):
    order = world.an_accepted_order(person=member)
    for _repeat in range(3):
        orders.approve(approval_id=order.approval.pk, actor=owner)

    order.refresh_from_db()
    assert order.status == "accepted"
    assert order.unit_price == order.quote.unit_price
    assert Service.objects.count() == 1
    assert acts(order) == [
        "order.placed", "approval.asked", "order.accepted", "approval.approved"
    ]  # fmt: skip
    approval = Approval.objects.get()
    assert (approval.status, approval.decided_by, bool(approval.decided_at)) == (
        "approved", owner, True
    )  # fmt: skip
    assert not Deadline.objects.filter(kind="approval.expire", done_at=None).exists()
    ledger.must_be_sound()


def test_refusing_needs_a_reason_and_whoever_asked_reads_it(member, owner):
    order = world.an_accepted_order(person=member)
    with pytest.raises(ReasonNeeded):
        orders.refuse_approval(approval_id=order.approval.pk, actor=owner, reason=" x ")
    for _repeat in range(2):
        orders.refuse_approval(
            approval_id=order.approval.pk, actor=owner, reason="too expensive this month"
        )

    order.refresh_from_db()
    assert (order.status, order.status_reason) == ("refused", "too expensive this month")
    assert acts(order).count("approval.refused") == 1
    world.deliver()
    told = Notice.objects.get(recipient=member.pk, kind="order.refused")
    assert "too expensive this month" in told.body
    with pytest.raises(WrongStatus):
        orders.approve(approval_id=order.approval.pk, actor=owner)
    ledger.must_be_sound()


def test_nobody_answers_and_it_expires_at_its_instant(member, owner):
    order = world.an_accepted_order(person=member)
    expires_at = order.approval.expires_at
    assert serve(expires_at - DAY / 24) == 0
    assert serve(expires_at + DAY) == 1
    order.refresh_from_db()
    assert order.status == "expired"
    assert order.status_reason
    assert Approval.objects.get().status == "expired"
    world.deliver()
    assert Notice.objects.filter(recipient=member.pk, kind="order.expired").count() == 1
    with pytest.raises(WrongStatus):
        orders.approve(approval_id=order.approval.pk, actor=owner)
    ledger.must_be_sound()


def test_an_answer_comes_before_the_agreed_end_or_never(member):
    ends_at = clock.now() + DAY
    order = world.an_accepted_order(person=member, ends_at=ends_at)
    assert order.approval.expires_at == order.ends_at <= ends_at
    serve(ends_at)
    order.refresh_from_db()
    assert order.status == "expired"
    assert Approval.objects.get().status == "expired"
    ledger.must_be_sound()


def test_cancelling_takes_the_question_back(member, owner):
    order = world.an_accepted_order(person=member)
    orders.cancel_order(order_id=order.pk, actor=member)
    assert Approval.objects.get().status == "withdrawn"
    with pytest.raises(WrongStatus):
        orders.approve(approval_id=order.approval.pk, actor=owner)
    assert serve(order.approval.expires_at + DAY) == 0
    order.refresh_from_db()
    assert order.status == "cancelled"


def test_limits_are_looked_at_when_asking_and_again_when_approving(member, owner, acme):
    orders.ensure_tenant_limit(tenant=acme.pk)
    TenantLimit.objects.filter(tenant=acme.pk).update(max_gpus=8)
    first = world.an_accepted_order(person=member)
    second = world.an_accepted_order(person=member, name="second")
    orders.approve(approval_id=first.approval.pk, actor=owner)
    before = ledger.rows()
    with pytest.raises(QuotaExceeded) as refused:
        orders.approve(approval_id=second.approval.pk, actor=owner)
    assert refused.value.facts["used"] == 8
    assert ledger.rows() == before
    with pytest.raises(QuotaExceeded):
        world.an_accepted_order(person=member, name="third")


def test_approving_without_capacity_says_so_and_leaves_the_question_open(member, owner):
    waiting = world.an_accepted_order(person=member)
    for name in ("one", "two"):
        world.an_accepted_order(person=owner, name=name)
    with pytest.raises(OutOfCapacity):
        orders.approve(approval_id=waiting.approval.pk, actor=owner)
    assert Approval.objects.get().status == "waiting"
    ledger.must_be_sound()


def test_approving_puts_it_into_the_queue_when_that_was_chosen(member, owner):
    waiting = world.an_accepted_order(person=member, if_unavailable="queue")
    for name in ("one", "two"):
        world.an_accepted_order(person=owner, name=name)
    orders.approve(approval_id=waiting.approval.pk, actor=owner)
    waiting.refresh_from_db()
    assert waiting.status == "queued"


def test_an_approved_order_that_begins_later_is_scheduled(member, owner):
    order = world.an_accepted_order(person=member, starts_at=clock.now() + DAY)
    orders.approve(approval_id=order.approval.pk, actor=owner)
    order.refresh_from_db()
    assert order.status == "scheduled"
    assert serve(order.starts_at) == 1
    order.refresh_from_db()
    assert order.status == "accepted"


def test_nobody_approves_what_they_asked_for_but_an_owner_may(member, owner):
    order = world.an_accepted_order(person=member)
    member.role = Role.ADMIN
    member.save()
    with pytest.raises(OwnApproval) as refused:
        orders.approve(approval_id=order.approval.pk, actor=member)
    assert "Olga Owner" in refused.value.detail
    member.role = Role.OWNER
    member.save()
    orders.approve(approval_id=order.approval.pk, actor=member)
    assert Approval.objects.get().decided_by == member


def test_a_member_cannot_answer(member):
    order = world.an_accepted_order(person=member)
    for act in (orders.approve, orders.refuse_approval):
        with pytest.raises(AppError) as refused:
            act(approval_id=order.approval.pk, actor=member, reason="because")
        assert refused.value.code == "role_forbids"


@pytest.mark.parametrize(
    ("figures", "field"),
    [
        ({"approval_from_gpus": 0}, "approval_from_gpus"),
        ({"approval_hours": 0}, "approval_hours"),
        ({"longest_days": 100_000}, "longest_days"),
    ],
)
def test_a_figure_out_of_range_changes_nothing(owner, figures, field):
    policy(owner, approval_from_gpus=16)
    with pytest.raises(WrongPolicy) as refused:
        policy(owner, **figures)
    assert refused.value.field == field
    assert order_policy().approval_from_gpus == 16


def test_changing_the_policy_is_recorded_and_the_same_again_is_not(owner):
    for _repeat in range(2):
        policy(owner, approval_from_gpus=16, longest_days=30)
    (entry,) = AuditEntry.objects.filter(action="order_policy.changed")
    assert entry.before["longest_days"] is None
    assert entry.after == {"approval_from_gpus": 16, "approval_hours": 72, "longest_days": 30}


def test_a_service_may_run_no_longer_than_the_policy_says(owner):
    policy(owner, longest_days=30)
    now = clock.now()
    with pytest.raises(TooLong) as refused:
        world.an_accepted_order(ends_at=now + 31 * DAY)
    assert "30" in refused.value.detail
    assert "31 days" in refused.value.detail
    with pytest.raises(TooLong) as refused:
        world.an_accepted_order()
    assert refused.value.field == "ends_at"
    assert world.an_accepted_order(ends_at=now + 30 * DAY).status == "accepted"
    assert not Order.objects.exclude(status="accepted").exists()


def test_a_member_orders_in_the_projects_they_work_in(owner):
    other = builders.a_project("other")
    member = builders.a_person(role=Role.MEMBER)
    other.members.create(user=member)
    with pytest.raises(UnknownProject) as refused:
        world.an_accepted_order(person=member)
    assert "other" in refused.value.detail
    assert "training" not in refused.value.detail


def test_what_may_be_hidden_by_now_was_agreed_and_stands(member, owner):
    order = world.an_accepted_order(person=member)
    with platform_context():
        Offering.objects.update(retired_at=clock.now())
    orders.approve(approval_id=order.approval.pk, actor=owner)
    order.refresh_from_db()
    assert order.status == "accepted"
