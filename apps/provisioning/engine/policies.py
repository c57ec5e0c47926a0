"""What an operator decided about failures, per site and SKU."""

from uuid import UUID

from django.db.models import Q

from apps.provisioning.models import FailurePolicy, Run


def policy_of(run: Run) -> FailurePolicy:
    """The policy a run follows now."""
    return policy_for(site=run.site_id, sku=run.sku)


def policy_for(*, site: UUID | None, sku: str) -> FailurePolicy:
    """The policy of the SKU, else of the site, else the default."""
    rows = FailurePolicy.objects.filter(Q(site=site) | Q(site=None), Q(sku=sku) | Q(sku=""))
    ranked = sorted(rows, key=lambda row: (row.sku != "", row.site_id is not None), reverse=True)
    return ranked[0] if ranked else FailurePolicy()
