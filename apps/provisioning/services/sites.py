"""Asking a site what it has and what it needs to sell."""

from typing import Any

from apps.accounts.models import User
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.provisioning import adapters


def discover_site(*, site: Site, actor: User | None, dry_run: bool = False) -> Any:
    """Import a site's nodes as it describes them; the difference is reported, nothing is lost for
    one bad row.
    """
    compute = adapters.compute_of(site)
    return inventory.import_nodes(
        site=site, observed=list(compute.discover()), actor=actor, dry_run=dry_run
    )
