"""What must hold after every story, and how much there is of everything."""

from collections import Counter

from apps.audit.models import AuditEntry
from apps.core.models import OutboxEvent
from apps.inventory.models import Allocation, Node
from apps.orders import projections
from apps.orders.models import Fact, Order, QueueEntry, Quote, Service
from apps.orders.selectors import quota_use
from apps.orders.states import ServiceState
from apps.provisioning.engine.endings import REPLACE
from apps.provisioning.models import Run
from apps.provisioning.states import RunStatus

COUNTED = (Quote, Order, Service, Fact, QueueEntry, Allocation, OutboxEvent, AuditEntry)


def rows() -> dict[str, int]:
    """How many rows of each kind there are, and how many nodes are free."""
    found = {model.__name__: model.objects.count() for model in COUNTED}
    return found | {"free": Node.objects.filter(status="available").count()}


def used() -> dict[str, int]:
    """What the quota says is in use."""
    return {row.label: row.used for row in quota_use()}


def must_be_sound() -> None:
    """Facts, rows and projections of this tenant agree with each other."""
    assert projections.differences() == []
    for service in Service.objects.all():
        facts = list(Fact.objects.filter(service=service).order_by("start_at", "recorded_at"))
        states = [fact.state for fact in facts]
        assert all(count == 1 for count in Counter(states).values()), states
        assert states[0] == ServiceState.PROVISIONING
        assert states[-1] == service.state
        assert all(not fact.start_at.microsecond for fact in facts)
        began = {fact.state: fact.start_at for fact in facts}
        assert service.ready_at == began.get(ServiceState.ACTIVE)
        assert service.ended_at == began.get(ServiceState.DELETING, began.get(ServiceState.FAILED))
        held = Allocation.objects.filter(service=service.pk, released_at=None).count()
        assert held == _holds(service), f"{service} is {service.state} and holds {held}"


def _holds(service: Service) -> bool:
    """A server, unless it lost its own and waits for another, or is being undone for good."""
    waits = QueueEntry.objects.filter(service=service.pk, left_at=None).exists()
    undone = Run.objects.filter(service=service.pk, status=RunStatus.UNDOING)
    if waits or undone.exclude(outcome=REPLACE).exists():
        return service.state == ServiceState.ACTIVE
    return service.state in (ServiceState.PROVISIONING, ServiceState.ACTIVE)
