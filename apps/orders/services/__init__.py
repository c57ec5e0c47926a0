"""Every change to quotes, orders, services and limits."""

from apps.orders.services.approving import (
    APPROVABLE,
    Approvable,
    approve,
    ask_approval,
    close_approval,
    expire_approval,
    refuse_approval,
)
from apps.orders.services.ending import cancel_order, expire_order
from apps.orders.services.lifetime import arm_end, end_as_agreed, set_end, warn_of_end
from apps.orders.services.limits import (
    ensure_tenant_limit,
    set_project_limit,
    set_tenant_limit,
)
from apps.orders.services.placing import accept_from_queue, place_order
from apps.orders.services.policy import set_order_policy
from apps.orders.services.quoting import make_quote
from apps.orders.services.scheduling import begin_scheduled, expire_past_end, reschedule_order
from apps.orders.services.states import (
    describe_service,
    fail_service,
    finish_service,
    lock_wanted,
    mark_ready,
    move_service,
    protect_service,
    show_condition,
    terminate_service,
)
from apps.orders.services.tenants import open_tenant

__all__ = [
    "APPROVABLE",
    "Approvable",
    "accept_from_queue",
    "approve",
    "arm_end",
    "ask_approval",
    "begin_scheduled",
    "cancel_order",
    "close_approval",
    "describe_service",
    "end_as_agreed",
    "ensure_tenant_limit",
    "expire_approval",
    "expire_order",
    "expire_past_end",
    "fail_service",
    "finish_service",
    "lock_wanted",
    "make_quote",
    "mark_ready",
    "move_service",
    "open_tenant",
    "place_order",
    "protect_service",
    "refuse_approval",
    "reschedule_order",
    "set_end",
    "set_order_policy",
    "set_project_limit",
    "set_tenant_limit",
    "show_condition",
    "terminate_service",
    "warn_of_end",
]
