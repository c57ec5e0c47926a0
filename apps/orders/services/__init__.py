"""Every change to quotes, orders, services and limits."""

from apps.orders.services.limits import (
    ensure_tenant_limit,
    set_project_limit,
    set_tenant_limit,
)
from apps.orders.services.placing import accept_from_queue, cancel_order, place_order
from apps.orders.services.quoting import make_quote
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
    "accept_from_queue",
    "cancel_order",
    "describe_service",
    "ensure_tenant_limit",
    "fail_service",
    "finish_service",
    "lock_wanted",
    "make_quote",
    "mark_ready",
    "move_service",
    "open_tenant",
    "place_order",
    "protect_service",
    "set_project_limit",
    "set_tenant_limit",
    "show_condition",
    "terminate_service",
]
