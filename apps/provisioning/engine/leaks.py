"""What could not be undone: recorded with its price, tried again until it is gone."""

from datetime import datetime, timedelta
from decimal import Decimal
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from apps.catalog.errors import NoPrice
from apps.catalog.selectors import price_in_force
from apps.core import clock
from apps.core.errors import AppError, OutsideError
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus, SiteStatus
from apps.provisioning import adapters, blueprints
from apps.provisioning.engine import acts, claims, endings, journal
from apps.provisioning.engine.policies import policy_of
from apps.provisioning.engine.quarantine import quarantine_node
from apps.provisioning.engine.steps import Done, Step, Wait, Work
from apps.provisioning.models import Leak, Run, RunStep
from apps.provisioning.states import STEP, StepStatus
from apps.tenancy.context import tenant_by_id, tenant_context
from apps.tenancy.selectors import current_tenant

log = structlog.get_logger(__name__)
UNDONE = "undone"


def record(run: Run, step: Step, done: RunStep, detail: str) -> Leak:
    """Something of a locked run stays behind; inside the caller's transaction, in its tenant.

    The node leaves the pool. The price is what the list asks for it at this instant.
    """
    node = Node.objects.filter(pk=run.node_id).first() if run.node_id else None
    price, currency = _price(run)
    now = clock.now()
    leak = Leak.objects.create(
        run=run,
        tenant=run.tenant,
        service=run.service,
        site_id=run.site_id,
        node=node,
        step=step.name,
        what=(step.leaves(run, node) if step.leaves else f"{step.name} of {run.service}")[:200],
        detail=detail[:1000],
        price_per_hour=price,
        currency=currency,
        next_try_at=now + timedelta(minutes=policy_of(run).leak_retry_minutes),
        since=now,
        took_node=node is not None
        and node.status not in (NodeStatus.QUARANTINED, NodeStatus.RETIRED),
        made_with={
            "inputs": run.inputs,
            "replacements": run.replacements,
            "started_at": done.started_at.isoformat() if done.started_at else None,
        },
    )
    quarantine_node(run, f"{step.name} could not be undone: {detail}")
    journal.write(run, "leaked", step=step.name, detail=f"{leak.what}: {detail}")
    acts.record(None, "leak.recorded", leak, reason=detail[:400])
    return leak


def _price(run: Run) -> tuple[Decimal | None, str]:
    currency = current_tenant().currency
    try:
        price = price_in_force(sku=run.sku, currency=currency, at=clock.now(), tenant=None)
    except NoPrice:
        return None, ""
    return price.amount * int(run.wanted.get("gpus", 1)), currency


def due_leaks(limit: int = 50) -> list[UUID]:
    """Leaks to try again now, longest due first."""
    now = clock.now()
    free = Q(lease_until=None) | Q(lease_until__lt=now)
    found = Leak.objects.filter(free, gone_at=None, next_try_at__lte=now)
    return list(found.order_by("next_try_at").values_list("pk", flat=True)[:limit])


def try_again(leak_id: UUID) -> bool:
    """Try once more to undo what was left; True when it is gone. Safe to repeat and to race."""
    leak = _claim(leak_id)
    if leak is None:
        return False
    with tenant_context(tenant_by_id(leak.tenant)):
        if leak.site.status != SiteStatus.ACTIVE or leak.site.failing_since is not None:
            return _put_off(leak, "the site does not answer or is paused")
        work = _work(leak)
        undo = blueprints.get(work.run.blueprint, work.run.version).named(leak.step).undo
        if undo is None:
            return _put_off(leak, "there is no way to undo it any more")
        try:
            outcome = undo(work)
        except OutsideError as error:
            return _put_off(leak, f"{error.kind}: {error.detail}")
        except Exception as error:
            log.exception("leak.crashed", leak=str(leak.pk))
            return _put_off(leak, f"{type(error).__name__}: {error}")
        if isinstance(outcome, Wait):
            return _put_off(leak, outcome.detail, after=timedelta(seconds=outcome.seconds))
        return _gone(leak, outcome)


def _claim(leak_id: UUID) -> Leak | None:
    """Take the leak for a while and store the try, before anything outside is asked."""
    now = clock.now()
    with transaction.atomic():
        leak = (
            Leak.objects.select_for_update(of=("self",), skip_locked=True)
            .select_related("site", "node")
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=leak_id, gone_at=None)
            .filter(next_try_at__lte=now)
            .first()
        )
        if leak is None:
            return None
        leak.attempts += 1
        leak.lease_until = now + claims.LEASE
        leak.save(update_fields=["attempts", "lease_until"])
    return leak


def _work(leak: Leak) -> Work:
    """What the step is given: its run as it was when the thing was made, on that node."""
    run = Run.objects.get(pk=leak.run_id)
    run.node, run.inputs = leak.node, leak.made_with["inputs"]
    run.replacements = leak.made_with["replacements"]
    step = RunStep.objects.get(run=run, name=leak.step)
    began = leak.made_with["started_at"]
    step.started_at = datetime.fromisoformat(began) if began else None
    return Work(run, step, leak.site, leak.node, adapters.compute_of(leak.site), clock.now())


def _put_off(leak: Leak, detail: str, *, after: timedelta | None = None) -> bool:
    """It is still there: look again later, as the policy says."""
    if after is None:
        after = timedelta(minutes=policy_of(Run.objects.get(pk=leak.run_id)).leak_retry_minutes)
    Leak.objects.filter(pk=leak.pk, attempts=leak.attempts, gone_at=None).update(
        detail=detail[:1000], next_try_at=clock.now() + after, lease_until=None
    )
    return False


@transaction.atomic
def _gone(leak: Leak, outcome: Done) -> bool:
    run = Run.objects.select_for_update().get(pk=leak.run_id)
    mine = Leak.objects.select_for_update().filter(pk=leak.pk, attempts=leak.attempts, gone_at=None)
    fresh = mine.first()
    if fresh is None:
        return False
    end(run, fresh, f"{UNDONE} at try {leak.attempts}")
    if outcome.then is not None:
        outcome.then()
    step = RunStep.objects.select_for_update().get(run=run, name=leak.step)
    if step.status == StepStatus.LEAKED and run.node_id == leak.node_id:
        STEP.move(step, "undo")
        step.ended_at = clock.now()
        step.save(update_fields=["status", "ended_at"])
        if outcome.stored:
            run.inputs = {**run.inputs, f"undo:{leak.step}": outcome.stored}
            run.save(update_fields=["inputs"])
    endings.go_on_without_leak(run)
    acts.record(None, "leak.gone", fresh, reason=fresh.gone_how)
    _return_node(run, fresh, outcome)
    return True


def end(run: Run, leak: Leak, how: str, *, actor: str = "") -> None:
    """A locked leak is no more: say how."""
    leak.gone_at, leak.gone_how = clock.now(), how[:400]
    leak.next_try_at = leak.lease_until = None
    leak.save(update_fields=["gone_at", "gone_how", "next_try_at", "lease_until"])
    journal.write(run, "leak gone", step=leak.step, detail=f"{leak.what}: {how}", actor=actor)


def _return_node(run: Run, leak: Leak, outcome: Done) -> None:
    """The node goes back into the pool if it was out for this alone and is proven clean."""
    others = Leak.objects.filter(node=leak.node, gone_at=None)
    if leak.node is None or not leak.took_node or others.exists():
        return
    node = Node.objects.get(pk=leak.node.pk)
    if node.status != NodeStatus.QUARANTINED:
        return
    undone = leak.made_with["inputs"].get("undo:deploy", {})
    proof = outcome.stored.get("cleaning") or undone.get("cleaning") or {"result": "none"}
    try:
        with transaction.atomic():
            inventory.restore_node(
                node=node, actor=None, reason=f"{leak.what} is gone", proof=proof
            )
            for ticket in node.tickets.filter(closed_at=None):
                inventory.close_ticket(ticket=ticket, actor=None, resolution=leak.gone_how)
    except AppError as refusal:
        journal.write(run, "node kept", step=leak.step, detail=f"{node.name}: {refusal.detail}")
