"""The one honest status of an order or a service at each moment, in the customer's words.

Pages and API show this and nothing else: a code, its words and colour, what goes on in one line,
and when it is expected to be ready. What nobody knows is said to be unknown.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol
from uuid import UUID

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.core import clock, instants
from apps.orders.models import Condition, Order, Service
from apps.orders.selectors import services_of_orders
from apps.orders.states import OrderStatus, ServiceState
from apps.provisioning.selectors import Progress, progress_of

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

UNDER_WAY = (ServiceState.PROVISIONING, ServiceState.DELETING)
# What shows on top of these states: it is made, used, switched on, or gets another host.
TOLD_IN = (
    *(ServiceState.PROVISIONING, ServiceState.ACTIVE),
    *(ServiceState.STOPPED, ServiceState.SUSPENDED),
)
RESTING = (Condition.NONE, Condition.DEGRADED, Condition.RESCUE)  # nobody is at work on it
_NO_STEP = ("undoing", "undone", "succeeded")  # of a run: no step of it is under way

# code → words and colour. Of several servers an order shows the first of these, from above.
WORDS: dict[str, tuple["StrOrPromise", str]] = {
    "needs_attention": (gettext_lazy("Being looked at"), "yellow"),
    "delayed": (gettext_lazy("Delayed"), "yellow"),
    "replacing": (gettext_lazy("Preparing another server"), "yellow"),
    "retrying": (gettext_lazy("Retrying"), "yellow"),
    "in_queue": (gettext_lazy("In queue"), "yellow"),
    "provisioning": (gettext_lazy("Provisioning"), "azure"),
    "degraded": (gettext_lazy("Degraded"), "yellow"),
    "suspended": (gettext_lazy("Suspended"), "yellow"),
    "reinstalling": (gettext_lazy("Reinstalling"), "azure"),
    "rescuing": (gettext_lazy("Starting the rescue system"), "azure"),
    "rescue": (gettext_lazy("In the rescue system"), "yellow"),
    "rebooting": (gettext_lazy("Rebooting"), "azure"),
    "powering": (gettext_lazy("Changing power"), "azure"),
    "stopped": (gettext_lazy("Stopped"), "yellow"),
    "active": (gettext_lazy("Active"), "green"),
    "stopping": (gettext_lazy("Terminating"), "azure"),
    "interrupted": (gettext_lazy("Interrupted"), "yellow"),
    "failed": (gettext_lazy("Failed (never charged)"), "red"),
    "terminated": (gettext_lazy("Terminated"), "secondary"),
    "waiting_for_approval": (gettext_lazy("Waiting for approval"), "azure"),
    "scheduled": (gettext_lazy("Scheduled"), "azure"),
    "refused": (gettext_lazy("Refused"), "red"),
    "cancelled": (gettext_lazy("Cancelled"), "secondary"),
    "expired": (gettext_lazy("Expired"), "secondary"),
    "draft": (gettext_lazy("Draft"), "yellow"),
}
_RANK = {code: place for place, code in enumerate(WORDS)}
_OF_CONDITION = {
    Condition.IN_QUEUE: "in_queue",
    Condition.WORKING: "provisioning",
    Condition.RETRYING: "retrying",
    Condition.REPLACING: "replacing",
    Condition.DELAYED: "delayed",
    Condition.LOOKED_AT: "needs_attention",
    Condition.DEGRADED: "degraded",
    Condition.POWERING: "powering",
    Condition.REBOOTING: "rebooting",
    Condition.REINSTALLING: "reinstalling",
    Condition.RESCUING: "rescuing",
    Condition.RESCUE: "rescue",
}
_OF_STATE = {
    ServiceState.PROVISIONING: "provisioning",
    ServiceState.DELETING: "stopping",
    ServiceState.PREEMPTED: "interrupted",
}
_OF_ORDER = {
    OrderStatus.PLACED: "waiting_for_approval",
    OrderStatus.APPROVED: "provisioning",
    OrderStatus.QUEUED: "in_queue",
    OrderStatus.CLOSED: "terminated",
}


class HasState(Protocol):
    """A service, or the console's row of one."""

    state: str
    condition: str


@dataclass(frozen=True)
class Standing:
    """What is shown of an order or a service."""

    code: str
    detail: str = ""
    expected_at: datetime | None = None  # when it is expected to be ready
    is_awaited: bool = False  # somebody waits for it; without `expected_at` nobody knows how long

    @property
    def label(self) -> str:
        """The status in words."""
        return str(WORDS[self.code][0])

    @property
    def tone(self) -> str:
        """Its colour."""
        return WORDS[self.code][1]


def is_under_way(service: HasState) -> bool:
    """Whether somebody is at work on the service now."""
    if service.state in UNDER_WAY:
        return True
    return service.state in TOLD_IN and service.condition not in RESTING


def code_of(service: HasState) -> str:
    """The status of a service: its condition while it is made or used, else its state."""
    told = _OF_CONDITION.get(Condition(service.condition)) if service.condition else None
    if told and service.state in TOLD_IN:
        return told
    return _OF_STATE.get(ServiceState(service.state), str(service.state))


def of_service(
    service: Service, progress: Progress | None = None, *, now: datetime | None = None
) -> Standing:
    """One service; `progress` of the work under way on it, where there is some. Who asks for
    several reads the clock once and gives it.
    """
    code = code_of(service)
    is_awaited = service.state == ServiceState.PROVISIONING
    return Standing(
        code=code,
        detail=_detail(service, code, progress),
        expected_at=_expected(progress, now) if is_awaited and progress else None,
        is_awaited=is_awaited,
    )


def of_services(services: Iterable[Service]) -> dict[UUID, Standing]:
    """Several services by id, in a constant number of statements: how far, not until when."""
    shown = list(services)
    busy = [one.pk for one in shown if is_under_way(one)]
    work = progress_of(busy, with_times=False) if busy else {}
    return {one.pk: of_service(one, work.get(one.pk)) for one in shown}


def of_order(
    order: Order, services: Iterable[Standing] = (), *, place: int | None = None
) -> Standing:
    """One order: by its own status, or by what stands first among its services."""
    status = OrderStatus(order.status)
    shown = sorted(services, key=lambda one: _RANK[one.code])
    if status == OrderStatus.ACCEPTED and shown:
        return _of_several(shown)
    code = "provisioning" if status == OrderStatus.ACCEPTED else _OF_ORDER.get(status, str(status))
    return Standing(
        code=code,
        detail=_order_detail(order, status, place),
        expected_at=order.starts_at if status == OrderStatus.SCHEDULED else None,
        is_awaited=status in (OrderStatus.PLACED, OrderStatus.QUEUED, OrderStatus.SCHEDULED),
    )


def of_orders(orders: Iterable[Order]) -> dict[UUID, Standing]:
    """Several orders by id, in a constant number of statements."""
    shown = list(orders)
    accepted = [one.pk for one in shown if one.status == OrderStatus.ACCEPTED]
    services = list(services_of_orders(accepted)) if accepted else []
    each = of_services(services)
    return {
        order.pk: of_order(order, [each[one.pk] for one in services if one.order_id == order.pk])
        for order in shown
    }


def _of_several(shown: list[Standing]) -> Standing:
    first = shown[0]
    if len(shown) == 1:
        return first
    ready = sum(one.code == "active" for one in shown)
    awaited = [one.expected_at for one in shown if one.is_awaited]
    known = [at for at in awaited if at is not None]
    return Standing(
        code=first.code,
        detail=_("{ready} of {all} servers ready").format(ready=ready, all=len(shown)),
        expected_at=max(known) if known and len(known) == len(awaited) else None,
        is_awaited=bool(awaited),
    )


def _detail(service: Service, code: str, progress: Progress | None) -> str:
    if code == "suspended" and service.suspended_until:
        until = _("until {at} at the longest; then it is terminated").format(
            at=instants.in_words(service.suspended_until, seconds=False)
        )
        return " · ".join(filter(None, (service.condition_detail, until)))
    if service.condition_detail:
        return service.condition_detail
    if progress is None or progress.status in _NO_STEP or not is_under_way(service):
        return ""
    if code == "retrying":
        return _("Step {step} of {of}: {label}, attempt {attempt}").format(
            step=progress.step, of=progress.of, label=progress.label, attempt=progress.attempts + 1
        )
    return _("Step {step} of {of}: {label}").format(
        step=progress.step, of=progress.of, label=progress.label
    )


def _order_detail(order: Order, status: OrderStatus, place: int | None) -> str:
    if status == OrderStatus.SCHEDULED and order.starts_at:
        return _("begins at {at}").format(at=instants.in_words(order.starts_at, seconds=False))
    if status == OrderStatus.QUEUED and place:
        return _("place {place} in the queue").format(place=place)
    return order.status_reason


def _expected(progress: Progress, now: datetime | None) -> datetime | None:
    """The usual time; once that has passed the long one; after both nobody knows."""
    if progress.expected_at is None:
        return None
    now = now or clock.now()
    for at in (progress.expected_at, progress.latest_at):
        if at is not None and at > now:
            return at
    return None
