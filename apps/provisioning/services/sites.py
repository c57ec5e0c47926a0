"""Asking a site what it has and what it needs to sell."""

from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core.errors import OutsideError
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


def validate_site(*, site: Site, actor: User | None) -> list[dict[str, Any]]:
    """Ask a site what it needs to sell: reachable, credentials, nodes, automatic cleaning.

    Returns [{item, ok, detail}]; stores what was found about cleaning and audits the check.
    """
    rows: list[dict[str, Any]] = []
    try:
        report = adapters.compute_of(site).describe()
    except OutsideError as error:
        rows.append({"item": str(_("reachable")), "ok": False, "detail": error.detail})
        cleans = False
    else:
        off = report.cleaning_disabled_on
        cleans = not off
        rows += [
            {"item": str(_("reachable")), "ok": True, "detail": f"Ironic {report.version}"},
            {"item": str(_("nodes")), "ok": report.nodes > 0, "detail": str(report.nodes)},
            {
                "item": str(_("automated cleaning")),
                "ok": cleans,
                "detail": str(_("on")) if cleans else ", ".join(off[:20]),
            },
        ]
    with transaction.atomic():
        inventory.mark_site_cleaning(site=site, cleans_automatically=cleans)
        audit.record(actor, "site.validated", site, after={"rows": rows})
    return rows
