"""What an operator decided about failures, per site and SKU."""

from uuid import UUID

from django.db.models import Q

from apps.core.errors import FailureKind
from apps.orders.models import IfUnavailable
from apps.provisioning.models import FailurePolicy, Run, Then


def policy_for(*, site: UUID | None, sku: str) -> FailurePolicy:
    """The policy of the SKU at the site, else of the SKU, else of the site, else the default."""
    rows = FailurePolicy.objects.filter(Q(site=site) | Q(site=None), Q(sku=sku) | Q(sku=""))
    ranked = sorted(rows, key=lambda row: (row.sku != "", row.site_id is not None), reverse=True)
    return ranked[0] if ranked else FailurePolicy()


def policy_of(run: Run) -> FailurePolicy:
    """The policy a run follows now: a change counts from the next failure on."""
    return policy_for(site=run.site_id, sku=run.sku)


def decision(policy: FailurePolicy, kind: str, run: Run) -> str:
    """What the policy says of a kind of failure, with the order's own choice filled in."""
    chosen = {
        FailureKind.NODE_FAULT: policy.on_node_fault,
        FailureKind.NO_CAPACITY: policy.on_no_capacity,
        FailureKind.REFUSED: policy.on_refused,
    }.get(FailureKind(kind), policy.on_unknown)
    if chosen != Then.AS_ORDERED:
        return chosen
    waits = run.wanted.get("if_unavailable") == IfUnavailable.QUEUE
    return Then.QUEUE if waits else Then.UNDO


def replacements_allowed(policy: FailurePolicy, run: Run) -> int:
    """How many other nodes may be tried: as the policy says, else as the offering does."""
    if policy.max_replacements is not None:
        return policy.max_replacements
    return int(run.wanted.get("max_replacements", 0))
