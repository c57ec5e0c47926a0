"""Faults under running services: what a look at a site shows of hosts somebody pays for.

A service that something is being done to is left alone: whoever does it will find out.
"""

from datetime import timedelta
from uuid import UUID

import structlog
from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.core import clock, outbox
from apps.inventory import services as inventory
from apps.inventory.models import Allocation, Node, Site
from apps.inventory.services.observing import MISSING
from apps.notices import services as notices
from apps.orders import services as orders
from apps.orders.models import Condition, Service, ServiceProjection
from apps.orders.states import ServiceState
from apps.provisioning.engine.policies import policy_for
from apps.provisioning.models import Run, Then
from apps.provisioning.states import OPEN
from apps.tenancy.context import tenant_by_id, tenant_context

log = structlog.get_logger(__name__)
AT_WORK = ("active", "rescue", "rescuing", "rescue wait", "unrescuing")
RUNNING = (ServiceState.ACTIVE, ServiceState.STOPPED)


def judge(site: Site) -> None:
    """Note new faults of a site's hosts and those that are gone; give up hosts where the policy
    says so. For the platform's side.
    """
    for allocation, row in _running_on(site):
        what, is_host = trouble(allocation.node, state=row.state)
        is_degraded = row.condition == Condition.DEGRADED
        if not what and not is_degraded:
            continue
        with tenant_context(tenant_by_id(allocation.tenant)), transaction.atomic():
            _act(allocation.node, row.service, what, is_host=is_host)


def trouble(node: Node, *, state: str) -> tuple[str, bool]:
    """What is wrong with the host of a running service, and whether the host itself is lost.

    Power that is off is told, but may be the doing of the customer's own system.
    """
    if node.seen_provision_state == MISSING:
        return "the site no longer lists the node", True
    if node.seen_reservation:
        return "", False
    if node.seen_provision_state and node.seen_provision_state not in AT_WORK:
        why = node.seen_last_error[:200]
        return f"{node.seen_provision_state}: {why}" if why else node.seen_provision_state, True
    if node.seen_maintenance:
        return f"in maintenance at the site: {node.seen_fault or 'set by a person'}", True
    if state == ServiceState.ACTIVE and node.seen_power_state == "power off":
        return "power is off", False
    return "", False


def _running_on(site: Site) -> list[tuple[Allocation, ServiceProjection]]:
    """Live allocations with the rows of their services, where nothing is under way."""
    held = {
        one.service: one
        for one in Allocation.objects.filter(
            node__site=site, released_at=None, service__isnull=False
        ).select_related("node")
    }
    busy = Run.objects.filter(site=site, status__in=OPEN).values("service")
    rows = ServiceProjection.objects.filter(service__in=list(held), state__in=RUNNING).exclude(
        service__in=busy
    )
    return [(held[row.service], row) for row in rows]


def _act(node: Node, service_id: UUID, what: str, *, is_host: bool) -> None:
    if not what:
        orders.clear_fault(service_id=service_id)
        return
    if orders.note_fault(service_id=service_id):
        _tell(node, service_id, what)
    service = Service.objects.get(pk=service_id)
    policy = policy_for(site=node.site_id, sku=service.sku)
    grace = timedelta(minutes=policy.host_fault_minutes)
    lost_for = clock.now() - service.degraded_at if service.degraded_at else timedelta(0)
    if is_host and policy.on_host_fault == Then.REPLACE and lost_for >= grace:
        outbox.publish("service.server_lost", subject=service_id, why=what)


def _tell(node: Node, service_id: UUID, what: str) -> None:
    service = Service.objects.get(pk=service_id)
    log.warning("host.fault", node=node.name, service=str(service_id), what=what)
    inventory.ensure_ticket(
        node=node, title=f"{node.name}: {what}", detail=f"{service.name}: {what}", category="host"
    )
    notices.tell_operators(
        kind="host.fault",
        dedup_key=f"host.fault:{service_id}:{service.degraded_at}",
        subject=_("{node}: {what}"),
        body=_(
            "{node} serves {service}, which is degraded now: {what}. Replace the host on its page "
            "when it does not come back."
        ),
        link=f"/services/{service_id}/",
        node=node.name,
        service=service.name,
        what=what,
    )
