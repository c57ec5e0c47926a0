"""Installing a server anew under the same service: removed, cleaned, deployed and proven on the
same node, with the same address. Ironic's own rebuild is not used: some of its versions fail.
"""

from datetime import timedelta

from django.utils.translation import gettext_lazy as _

from apps.core import outbox
from apps.orders import services as orders
from apps.orders.models import Condition, Service
from apps.provisioning import evidence_words as words
from apps.provisioning.blueprints import node_moves, server
from apps.provisioning.blueprints.bare_metal import access_of
from apps.provisioning.blueprints.bare_metal_removal import revoke
from apps.provisioning.blueprints.node_moves import proof
from apps.provisioning.blueprints.operation import ALIVE, failed, operation
from apps.provisioning.engine.steps import Done, Outcome, Step, Wait, Work
from apps.provisioning.models import Run


def wipe(work: Work) -> Outcome:
    """Nothing of the former installation is on the node, and it was cleaned."""
    outcome = node_moves.remove_and_clean(work, since=work.run.created_at)
    if isinstance(outcome, Wait):
        return outcome
    result = str(outcome.stored.get("cleaning", {}).get("result", "none"))
    item = words.CLEANED_SIMULATED if work.site.is_simulated else words.CLEANED
    return Done(outcome.output, evidence=[proof(item, "success", result)])


def hand_back(work: Work) -> Outcome:
    """The customer has the server again, with its new host keys."""
    access = access_of(work)
    return Done(then=lambda: orders.renew_access(service_id=work.run.service, access=access))


def _server_lost(run: Run) -> None:
    """The old installation is gone and no new one could be made: another host takes its place."""
    failed(run)
    is_wiped = run.steps.filter(name="remove", attempts__gt=0).exists()
    if is_wiped and Service.objects.get(pk=run.service).state in ALIVE:
        outbox.publish("service.server_lost", subject=run.service, why=run.reason)


REINSTALL = operation(
    "reinstall",
    Step("revoke", _("Revoke access"), do=revoke, skippable=False),
    Step("remove", _("Remove and clean"), do=wipe, limit=timedelta(hours=6), skippable=False),
    server.CLAIM,
    server.VALIDATE,
    server.SAME_ADDRESS,
    server.DEPLOY,
    server.POWER_ON,
    server.PROVE,
    Step("hand_back", _("Hand over"), do=hand_back, skippable=False),
    shows=Condition.REINSTALLING,
    risks_node=True,
    on_undone=_server_lost,
)
