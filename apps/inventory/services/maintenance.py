"""Planned work on nodes: told in time to the tenants it touches, and to nobody else."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.core import clock, outbox
from apps.core.errors import Invalid
from apps.inventory.errors import MaintenanceEnded
from apps.inventory.models import Allocation, Maintenance, Node, Site
from apps.inventory.services.cordons import cordon_node
from apps.tenancy.context import tenant_by_id, tenant_context

MOST = 1000  # nodes of one piece of work


@transaction.atomic
def plan_maintenance(
    *,
    site: Site,
    nodes: Sequence[Node],
    title: str,
    starts_at: datetime,
    ends_at: datetime,
    actor: Any,
    detail: str = "",
    is_retirement: bool = False,
) -> Maintenance:
    """Plan work on nodes of a site. The nodes are cordoned: no new customer is surprised by it.

    Raises Invalid naming the field. Nobody is told yet.
    """
    if not title.strip():
        raise Invalid(_("Say in a few words what is done."), field="title")
    if not nodes:
        raise Invalid(_("Choose at least one node."), field="nodes")
    if len(nodes) > MOST or any(node.site_id != site.pk for node in nodes):
        raise Invalid(
            _("Choose at most {most} nodes, all of {site}."),
            field="nodes",
            most=MOST,
            site=site.name,
        )
    if ends_at <= starts_at:
        raise Invalid(_("It must end after it begins."), field="ends_at")
    if ends_at <= clock.now():
        raise Invalid(_("It must end in the future."), field="ends_at")
    work = Maintenance.objects.create(
        site=site,
        title=title.strip()[:200],
        detail=detail,
        starts_at=starts_at,
        ends_at=ends_at,
        is_retirement=is_retirement,
    )
    work.nodes.add(*nodes)
    for node in nodes:
        cordon_node(node=node, actor=actor, reason=work.title)
    audit.record(
        actor,
        "maintenance.planned",
        work,
        after={
            "nodes": [node.name for node in nodes],
            "starts_at": starts_at.isoformat(),
            "ends_at": ends_at.isoformat(),
        },
    )
    return work


@transaction.atomic
def announce_maintenance(*, maintenance: Maintenance, actor: Any) -> int:
    """Tell every tenant with a service on one of the nodes; how many services were told of.

    Each is told of its own service only. Repeated, it tells whom it has not told yet. Raises
    MaintenanceEnded.
    """
    work = _open(maintenance)
    told = _tell(work, "retirement" if work.is_retirement else "planned")
    work.announced_at = clock.now()
    work.save(update_fields=["announced_at"])
    audit.record(actor, "maintenance.announced", work, after={"services": told})
    return told


@transaction.atomic
def end_maintenance(*, maintenance: Maintenance, actor: Any, reason: str = "") -> Maintenance:
    """The work is done, or will not be: tell who was told. Cordons stay until lifted by hand.

    Raises MaintenanceEnded.
    """
    work = _open(maintenance)
    if work.announced_at is not None:
        _tell(work, "over" if work.starts_at <= clock.now() else "cancelled")
    work.ended_at = clock.now()
    work.save(update_fields=["ended_at"])
    audit.record(actor, "maintenance.ended", work, reason=reason)
    return work


def _open(maintenance: Maintenance) -> Maintenance:
    work = Maintenance.objects.select_for_update().get(pk=maintenance.pk)
    if work.ended_at is not None:
        raise MaintenanceEnded(title=work.title)
    return work


def _tell(work: Maintenance, what: str) -> int:
    held = Allocation.objects.filter(
        node__maintenances=work, released_at=None, service__isnull=False
    ).order_by("tenant", "service")
    told = 0
    for allocation in held:
        if allocation.service is None:
            continue
        with tenant_context(tenant_by_id(allocation.tenant)):
            outbox.publish(
                "service.maintenance",
                subject=allocation.service,
                maintenance=str(work.pk),
                what=what,
                title=work.title,
                starts_at=work.starts_at.isoformat(),
                ends_at=work.ends_at.isoformat(),
            )
        told += 1
    return told
