"""What an operator decided about failures, per site and SKU."""

from django.db.models import Q

from apps.provisioning.models import FailurePolicy, Run


def policy_of(run: Run) -> FailurePolicy:
    """The policy of the run's SKU, else of its site, else the default."""
    rows = FailurePolicy.objects.filter(
        Q(site=run.site_id) | Q(site=None), Q(sku=run.sku) | Q(sku="")
    )
    ranked = sorted(rows, key=lambda row: (row.sku != "", row.site_id is not None), reverse=True)
    return ranked[0] if ranked else FailurePolicy()
