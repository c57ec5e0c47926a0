"""Somebody works at the site behind our back: each difference is found, mended and closed."""

from typing import Any
from uuid import UUID, uuid4

import pytest

from apps.accounts.roles import Role
from apps.inventory.models import Node
from apps.orders.models import Service
from apps.provisioning import findings
from apps.provisioning.models import Finding, SiteLook
from apps.tenancy.context import platform_context
from tests.integration.provisioning.ironic import product as lab
from tests.people import an_operator

pytestmark = [pytest.mark.ironic, pytest.mark.slow]


@pytest.fixture
def product(product: lab.Product) -> lab.Product:
    """The site is compared every second, and two looks a second apart are sure."""
    product.environment |= {"NEOCLOUD_RECONCILE_SECONDS": "1", "NEOCLOUD_GRACE_SECONDS": "1"}
    product.start_worker()
    return product


def by_hand(method: str, path: str, body: Any = None) -> None:
    """Past the platform, as somebody at the site would."""
    lab.ironic()._call(method, f"/v1/{path}", body)


def provision(node: UUID, target: str, state: str) -> None:
    """One verb by hand, until the node is there and nobody holds it."""
    by_hand("PUT", f"nodes/{node}/states/provision", {"target": target})
    lab.until(state, lambda: _rests(node, state))


def _rests(node: UUID, state: str) -> bool:
    seen = lab.ironic().get_node(node)
    return seen.provision_state == state and not seen.is_reserved


def the_finding(kind: str, *states: str) -> Finding:
    """The newest finding of a kind, once it is in one of the states."""
    with platform_context():
        return lab.until(
            f"{kind} {states}",
            lambda: findings.findings(kind=kind).filter(status__in=states).first(),
        )


def nothing_else() -> None:
    """No finding waits, and three more looks find none."""
    with platform_context():
        since = SiteLook.objects.get().looked_at
        for _look in range(3):
            since = lab.until(
                "a look",
                lambda at=since: (
                    SiteLook.objects.filter(looked_at__gt=at)
                    .values_list("looked_at", flat=True)
                    .first()
                ),
            )
        waiting = Finding.objects.filter(closed_at=None)
        assert not waiting.exists(), list(waiting.values("kind", "subject", "seen", "detail"))


def test_what_is_changed_at_a_site_behind_our_back_is_found(product: lab.Product) -> None:
    """One long story: power, maintenance, a foreign claim, a lessee, a server of nobody."""
    service = Service.objects.get(order=lab.an_order())
    lab.until_state(service.pk, "active", "failed")
    place = Service.objects.get(pk=service.pk).node_id
    with platform_context():
        operator = an_operator(Role.PLATFORM_ADMIN)
        served = Node.objects.get(pk=place).infra_id
        (free,) = [one for one in lab.nodes() if one.infra_id != served]
    lab.until_quiet()

    by_hand("PUT", f"nodes/{served}/states/power", {"target": "power off"})
    assert the_finding("power", "fixed").fix_by == ""
    assert lab.ironic().get_node(served).power_state == "power on"

    by_hand("PATCH", f"nodes/{free.infra_id}", [_set("/lessee", "the last customer")])
    the_finding("lessee", "fixed")
    assert lab.ironic().get_node(free.infra_id).lessee == ""

    by_hand("PUT", f"nodes/{free.infra_id}/maintenance", {"reason": "fan"})
    found = the_finding("maintenance", "open")
    by_hand("DELETE", f"nodes/{free.infra_id}/maintenance")
    assert the_finding("maintenance", "gone").pk == found.pk

    claim = uuid4()
    by_hand("POST", "allocations", {
        "uuid": str(claim), "name": "by-hand", "resource_class": free.resource_class,
        "candidate_nodes": [str(free.infra_id)],
    })  # fmt: skip
    assert the_finding("orphan_claim", "open").subject == str(claim)
    provision(free.infra_id, "active", "active")
    stranger = the_finding("orphan_server", "open")
    assert stranger.fix == "take_out"  # not ours: nothing is removed
    provision(free.infra_id, "deleted", "available")
    the_finding("orphan_server", "gone")
    with platform_context():
        fresh = Node.objects.get(pk=free.pk)
    assert fresh.status == "available"  # the site cleaned it, and we have its proof
    lab.until("the proof", lambda: _proof(free.pk))
    nothing_else()

    provision(served, "deleted", "available")
    lost = the_finding("lost_server", "open")
    with platform_context():
        findings.fix_finding(finding_id=lost.pk, actor=operator)
        lab.until(
            "quarantine", lambda: Node.objects.filter(pk=lost.node_id, status="quarantined").first()
        )


def test_a_node_used_and_not_cleaned_is_never_sold_so(product: lab.Product) -> None:
    with platform_context():
        operator = an_operator(Role.PLATFORM_ADMIN)
        node = lab.nodes()[0]
    by_hand("PATCH", f"nodes/{node.infra_id}", [_set("/automated_clean", False)])
    try:
        provision(node.infra_id, "active", "active")
        provision(node.infra_id, "deleted", "available")
    finally:
        by_hand("PATCH", f"nodes/{node.infra_id}", [_set("/automated_clean", None)])

    found = the_finding("not_cleaned", "open")
    with platform_context():
        assert Node.objects.get(pk=node.pk).status == "quarantined"
        findings.fix_finding(finding_id=found.pk, actor=operator)
    assert the_finding("not_cleaned", "fixed").fix_by == str(operator)
    with platform_context():
        node.refresh_from_db()
    assert node.status == "available"
    assert "vendor.log_passthrough" in node.clean_proof["steps"]
    nothing_else()


def _set(path: str, value: Any) -> dict[str, Any]:
    return {"op": "replace", "path": path, "value": value}


def _proof(node: UUID) -> bool:
    with platform_context():
        return bool(Node.objects.get(pk=node).clean_proof)
