"""What an infrastructure says of itself is read by operators, never by a tenant."""

from dataclasses import replace

import pytest

from apps.audit.models import AuditEntry
from apps.core.errors import NodeFault, Refused
from apps.inventory.models import Node
from apps.notices.models import Notice
from apps.orders.models import Service
from apps.provisioning.models import Run, RunEvent
from apps.tenancy.context import platform_context
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db
SAID = "bmc-17.mgmt.example answered 500"


@pytest.fixture
def site(platform):
    return world.a_fake_site(nodes=2, max_replacements=0)


def read_by_the_tenant():
    """Every word of its audit trail, its notices and its rows of the services."""
    entries = AuditEntry.objects.values_list("reason", "before", "after")
    notices = Notice.objects.values_list("subject", "body")
    services = Service.objects.values_list("condition_detail", "order__status_reason")
    return str([*entries, *notices, *services])


def told_to_operators():
    with platform_context():
        return str(list(RunEvent.objects.values_list("detail", flat=True)))


def test_why_a_server_could_not_be_made(site, acme):
    world.fake().fail("deploy", NodeFault(SAID))
    gone = world.until_gone(world.the_service(world.an_accepted_order()))

    assert gone.state == "failed"
    failed = AuditEntry.objects.get(action="service.failed")
    assert failed.after == {"run": str(Run.objects.get(service=gone.pk).pk)}
    assert SAID in told_to_operators()
    assert SAID not in read_by_the_tenant()


def test_why_a_step_is_looked_at_by_a_person(site, acme):
    world.fake().fail("deploy", Refused(SAID))
    order = world.an_accepted_order()
    for _round in range(6):
        world.step()

    assert world.the_service(order).condition == "looked_at"
    assert SAID in told_to_operators()
    assert SAID not in read_by_the_tenant()


def test_why_a_running_server_is_degraded(site, acme):
    service = world.until_ready(world.an_accepted_order())
    node = world.fake().nodes[Node.objects.get(pk=service.node_id).infra_id]
    node.seen = replace(node.seen, provision_state="error", last_error=SAID)
    world.step()

    service.refresh_from_db()
    assert service.condition == "degraded"
    with platform_context():
        assert SAID in str(list(Notice.objects.values_list("subject", "body")))
    assert SAID not in read_by_the_tenant()
