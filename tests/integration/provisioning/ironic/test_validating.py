"""The lab is asked what it needs to sell, and one of its nodes deployed and cleaned for real."""

from pathlib import Path
from typing import Any

import pytest

from apps.inventory.models import Site
from apps.provisioning import validation
from apps.provisioning.models import SiteCheck
from apps.tenancy.context import platform_context
from tests.integration.provisioning.ironic import product as lab

pytestmark = [pytest.mark.ironic, pytest.mark.slow]


def test_a_trial_on_real_ironic(own_database: Any, tmp_path: Path, worker_id: str) -> None:
    with lab.product_on(own_database.name, tmp_path, worker_id) as product:
        lab.open_shop(product)
        product.start_web()
        with platform_context():
            site = Site.objects.get()
            site.nodes.exclude(resource_class=lab.RESOURCE_CLASS).update(is_cordoned=True)
            check = validation.validate_site(site=site, actor=None, with_trial=True)
            asked = {row["item"]: row for row in check.rows}
            for item in ("reachable", "dialect", "clock", "history", "validate", "call_home"):
                assert asked[item]["ok"], asked[item]

            check = lab.until("the end of the trial", lambda: _ended(check))
            trial = {row["item"]: row for row in check.rows}
            for stage in ("hold", "claim", "deploy", "power", "remove", "proof"):
                assert trial[stage]["ok"], trial[stage]
            assert "vendor.log_passthrough" in trial["proof"]["detail"]
            assert check.node.status == "available"


def _ended(check: SiteCheck) -> SiteCheck | None:
    for check_id in validation.due_checks():
        validation.advance_check(check_id)
    return SiteCheck.objects.filter(pk=check.pk, stage="").first()
