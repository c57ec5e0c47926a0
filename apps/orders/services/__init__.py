"""Every change to quotes, orders, services and limits."""

from apps.orders.services.accepting import accept_from_queue, expire_queued
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
from apps.orders.services.keeping import keep_loans, keep_terms
from apps.orders.services.lifetime import arm_end, end_as_agreed, set_end, warn_of_end
from apps.orders.services.limits import (
    ensure_tenant_limit,
    set_project_limit,
    set_tenant_limit,
)
from apps.orders.services.placing import place_order
from apps.orders.services.policy import set_order_policy
from apps.orders.services.quoting import make_quote
from apps.orders.services.reserving import (
    begin_reservation,
    cancel_reservation,
    expire_reservation,
    leave_reservation,
    place_reservation,
    quote_reservation,
    resume_reservation,
    suspend_reservation,
    warn_of_term,
)
from apps.orders.services.running import (
    clear_fault,
    end_operation,
    end_suspension,
    is_suspended_for_fault,
    note_fault,
    rename_service,
    renew_access,
    resume_service,
    start_service,
    stop_service,
    suspend_for_fault,
    tag_service,
)
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
from apps.orders.services.suspending import (
    lift_suspension,
    suspend_service,
    warn_of_suspension,
)
from apps.orders.services.tenants import open_tenant
from apps.orders.services.waiting import give_node, wait_for_node

__all__ = [
    "APPROVABLE",
    "Approvable",
    "accept_from_queue",
    "approve",
    "arm_end",
    "ask_approval",
    "begin_reservation",
    "begin_scheduled",
    "cancel_order",
    "cancel_reservation",
    "clear_fault",
    "close_approval",
    "describe_service",
    "end_as_agreed",
    "end_operation",
    "end_suspension",
    "ensure_tenant_limit",
    "expire_approval",
    "expire_order",
    "expire_past_end",
    "expire_queued",
    "expire_reservation",
    "fail_service",
    "finish_service",
    "give_node",
    "is_suspended_for_fault",
    "keep_loans",
    "keep_terms",
    "leave_reservation",
    "lift_suspension",
    "lock_wanted",
    "make_quote",
    "mark_ready",
    "move_service",
    "note_fault",
    "open_tenant",
    "place_order",
    "place_reservation",
    "protect_service",
    "quote_reservation",
    "refuse_approval",
    "rename_service",
    "renew_access",
    "reschedule_order",
    "resume_reservation",
    "resume_service",
    "set_end",
    "set_order_policy",
    "set_project_limit",
    "set_tenant_limit",
    "show_condition",
    "start_service",
    "stop_service",
    "suspend_for_fault",
    "suspend_reservation",
    "suspend_service",
    "tag_service",
    "terminate_service",
    "wait_for_node",
    "warn_of_end",
    "warn_of_suspension",
    "warn_of_term",
]
