"""What an organisation's administrators decide about its orders: approvals and the policy."""

from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, lists, shows
from apps.api.serializers import orders as shapes
from apps.orders import selectors, services
from apps.orders.models import Approval, OrderPolicy


class Approvals(Endpoint):
    """Questions to those who may approve."""

    @lists(
        "listApprovals",
        "order.view",
        shapes.ApprovalSerializer,
        query=shapes.ApprovalFilters,
        order=("-asked_at", "-id"),
    )
    def get(self, asked: Asked) -> QuerySet[Approval]:
        """List what was asked and answered, newest first."""
        return selectors.approvals().filter(**asked.query)


class ApprovalItem(Endpoint):
    """One question."""

    @shows("showApproval", "order.view", shapes.ApprovalSerializer)
    def get(self, asked: Asked, approval: UUID) -> Approval:
        """Show who asked for what, who answered, when and why."""
        return selectors.approval_by_id(approval)


class ApprovalGrant(Endpoint):
    """The answer yes."""

    @acts("approve", "order.approve", shapes.ApprovalSerializer, body=shapes.Reason)
    def post(self, asked: Asked, approval: UUID) -> Approval:
        """Approve: the order goes on at once. Limits and capacity are looked at again."""
        services.approve(approval_id=approval, actor=asked.user, **asked.body)
        return selectors.approval_by_id(approval)


class ApprovalRefusal(Endpoint):
    """The answer no."""

    @acts("refuseApproval", "order.approve", shapes.ApprovalSerializer, body=shapes.Why)
    def post(self, asked: Asked, approval: UUID) -> Approval:
        """Refuse, saying why: the order ends, nothing was held."""
        services.refuse_approval(approval_id=approval, actor=asked.user, **asked.body)
        return selectors.approval_by_id(approval)


class OrderPolicyItem(Endpoint):
    """Rules for the organisation's own orders."""

    @shows("showOrderPolicy", "order.view", shapes.OrderPolicySerializer)
    def get(self, asked: Asked) -> OrderPolicy:
        """Show which orders need approval, and how long a service may run."""
        return selectors.order_policy()

    @acts(
        "setOrderPolicy",
        "order.approve",
        shapes.OrderPolicySerializer,
        body=shapes.OrderPolicyChange,
    )
    def put(self, asked: Asked) -> OrderPolicy:
        """Decide which orders need approval, and how long a service may run."""
        return services.set_order_policy(actor=asked.user, **asked.body)
