"""In place of a proof: one operator vouches with evidence, a second one confirms or refuses."""

from datetime import timedelta
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.core import clock
from apps.core.errors import NotFound
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.notices import services as notices
from apps.provisioning import blueprints
from apps.provisioning.blueprints.node_moves import claimed_cleaning
from apps.provisioning.engine import acts, journal, runs
from apps.provisioning.engine.steps import Claim
from apps.provisioning.errors import (
    EvidenceMissing,
    LeakFirst,
    NothingToVouchFor,
    OverrideByTwo,
    OverrideDecided,
    OverrideOpen,
)
from apps.provisioning.models import Leak, Override, Run, RunStep
from apps.provisioning.services.hands import given
from apps.provisioning.states import OPEN, RUN, STEP, RunStatus
from apps.tenancy.context import tenant_by_id, tenant_context

VALID = timedelta(hours=24)
LEAST_EVIDENCE = 20


def vouchable_step(run: Run) -> str:
    """The name of the step that may be vouched for as the run stands; "" for none.

    A held run: the step it stands at. An ended one: the cleaning of its node, while that is in
    quarantine and no later run has had it.
    """
    blueprint = blueprints.get(run.blueprint, run.version)
    if run.status == RunStatus.HELD:
        step = blueprint.step(run.position)
        return step.name if step.claim is not None and not run.outcome else ""
    if run.status in OPEN or not blueprint.cleans or run.node_id is None:
        return ""
    is_kept = Node.objects.filter(pk=run.node_id, status=NodeStatus.QUARANTINED).exists()
    later = Run.objects.filter(node=run.node_id, created_at__gt=run.created_at)
    return blueprint.cleans if is_kept and not later.exists() else ""


def ask_override(*, run_id: UUID, actor: User, evidence: str) -> Override:
    """Vouch for what a step would prove; nothing follows before a second operator confirms.

    For the platform's side. Raises EvidenceMissing, NothingToVouchFor, OverrideOpen or LeakFirst.
    """
    if len(evidence.strip()) < LEAST_EVIDENCE:
        raise EvidenceMissing(field="evidence", least=LEAST_EVIDENCE)
    with transaction.atomic():
        run = _locked_run(run_id)
        name = vouchable_step(run)
        if not name:
            step = blueprints.get(run.blueprint, run.version).step(_position(run))
            raise NothingToVouchFor(step=step.label)
        _refuse_leaks(run)
        now = clock.now()
        before = Override.objects.filter(run=run, step=name, decided_at=None).first()
        if before is not None:
            if before.expires_at > now:
                until = before.expires_at.isoformat(timespec="minutes")
                raise OverrideOpen(asked_by=before.asked_by, until=until)
            _expire(before)
        override = Override.objects.create(
            run=run,
            tenant=run.tenant,
            step=name,
            evidence=evidence.strip(),
            asked_by=_by(actor),
            asked_by_id=actor.pk,
            asked_at=now,
            expires_at=now + VALID,
        )
        journal.write(run, "override asked", step=name, detail=evidence, actor=_by(actor))
        acts.record(actor, "run.override_asked", run, reason=evidence[:400], after={"step": name})
        notices.tell_operators(
            kind="run.override_asked",
            dedup_key=f"run.override_asked:{override.pk}",
            subject=_("{order}: a second operator is needed"),
            body=_("{asked_by} vouches for {step} of {order}: {evidence}"),
            link=f"/runs/{run.pk}/",
            order=run.order_number,
            asked_by=override.asked_by,
            step=name,
            evidence=override.evidence,
        )
    return override


def confirm_override(*, override_id: UUID, actor: User, reason: str) -> Override:
    """The second operator's word: the step counts as proven, marked as vouched for by two.

    For the platform's side. Raises OverrideByTwo, OverrideDecided, LeakFirst, or what has changed
    meanwhile; then nothing is changed.
    """
    reason = given(reason)
    with tenant_context(tenant_by_id(_tenant_of(override_id))), transaction.atomic():
        run, override = _open_override(override_id, actor)
        if vouchable_step(run) != override.step:
            raise OverrideDecided(how=_("the run no longer stands at that step"))
        _refuse_leaks(run)
        _decide(override, actor, reason, is_confirmed=True)
        claim = Claim(override.asked_by, override.decided_by, override.evidence, clock.now())
        journal.write(
            run,
            "override confirmed",
            step=override.step,
            detail=f"claimed by {claim.claimed_by}, confirmed by {claim.confirmed_by}: {reason}",
            actor=_by(actor),
        )
        _audit(actor, "run.override_confirmed", run, override)
        if run.status == RunStatus.HELD:
            _take_as_proven(run, claim)
        else:
            _return_node(run, claim, actor)
    return override


def refuse_override(*, override_id: UUID, actor: User, reason: str) -> Override:
    """Everything stays as it is. For the platform's side; who asked may take it back so, too.

    Raises OverrideDecided.
    """
    reason = given(reason)
    with transaction.atomic():
        run, override = _open_override(override_id, None)
        if override.asked_by_id == actor.pk:
            return _take_back(run, override, actor, reason)
        _decide(override, actor, reason, is_confirmed=False)
        journal.write(run, "override refused", step=override.step, detail=reason, actor=_by(actor))
        _audit(actor, "run.override_refused", run, override)
    return override


def expire_overrides() -> None:
    """Close what no second operator has decided in time."""
    for override in Override.objects.filter(decided_at=None, expires_at__lte=clock.now())[:100]:
        with transaction.atomic():
            fresh = Override.objects.select_for_update().get(pk=override.pk)
            if fresh.decided_at is None:
                _expire(fresh)


def _expire(override: Override) -> None:
    override.decided_at, override.reason = clock.now(), "nobody decided in time"
    override.save(update_fields=["decided_at", "reason"])
    journal.write(override.run, "override expired", step=override.step, detail=override.asked_by)
    acts.record(None, "run.override_expired", override.run, after={"step": override.step})


def _take_back(run: Run, override: Override, actor: User, reason: str) -> Override:
    override.decided_at, override.reason = clock.now(), reason[:500]
    override.save(update_fields=["decided_at", "reason"])
    journal.write(run, "override taken back", step=override.step, detail=reason, actor=_by(actor))
    _audit(actor, "run.override_taken_back", run, override)
    return override


def _take_as_proven(run: Run, claim: Claim) -> None:
    """The held step is done by the word of two; the run goes on behind it."""
    blueprint = blueprints.get(run.blueprint, run.version)
    step = blueprint.step(run.position)
    if step.claim is None:
        raise NothingToVouchFor(step=step.label)
    outcome = step.claim(run, claim)
    record = RunStep.objects.select_for_update().get(run=run, position=run.position)
    STEP.move(record, "start")
    runs.finish_record(record, outcome)
    RUN.move(run, "retry")
    run.fence += 1
    run.held_at, run.owner, run.reason = None, "", ""
    run.inputs = {**run.inputs, step.name: outcome.stored}
    runs.step_over(run, blueprint)


def _return_node(run: Run, claim: Claim, actor: User) -> None:
    node = Node.objects.get(runs=run)
    inventory.restore_node(
        node=node,
        actor=actor,
        reason=f"claimed clean by {claim.claimed_by}, confirmed by {claim.confirmed_by}",
        proof=claimed_cleaning(claim),
    )


def _decide(override: Override, actor: User, reason: str, *, is_confirmed: bool) -> None:
    override.decided_by, override.decided_by_id = _by(actor), actor.pk
    override.decided_at, override.reason = clock.now(), reason[:500]
    override.is_confirmed = is_confirmed
    override.save()


def _audit(actor: User, action: str, run: Run, override: Override) -> None:
    acts.record(
        actor,
        action,
        run,
        reason=override.reason,
        after={
            "step": override.step,
            "asked_by": override.asked_by,
            "decided_by": override.decided_by,
            "evidence": override.evidence,
        },
    )


def _by(actor: User) -> str:
    """Two people may share a name, and never an address."""
    return f"{actor.name} ({actor.email})"


def _position(run: Run) -> int:
    return min(run.position, len(blueprints.get(run.blueprint, run.version).steps) - 1)


def _locked_run(run_id: UUID) -> Run:
    run = Run.objects.select_for_update().filter(pk=run_id).first()
    if run is None:
        raise NotFound()
    return run


def _tenant_of(override_id: UUID) -> UUID:
    found = Override.objects.filter(pk=override_id).values_list("tenant", flat=True).first()
    if found is None:
        raise NotFound()
    return found


def _open_override(override_id: UUID, second: User | None) -> tuple[Run, Override]:
    """The run and its override, locked in that order."""
    found = Override.objects.filter(pk=override_id).first()
    if found is None:
        raise NotFound()
    run = _locked_run(found.run_id)
    override = Override.objects.select_for_update().get(pk=override_id)
    if override.decided_at is not None:
        raise OverrideDecided(how=override.reason)
    if override.expires_at <= clock.now():
        raise OverrideDecided(how=_("nobody decided in time; ask for it anew"))
    if second is not None and second.pk == override.asked_by_id:
        raise OverrideByTwo()
    return run, override


def _refuse_leaks(run: Run) -> None:
    leak = Leak.objects.filter(node=run.node_id, gone_at=None).first()
    if leak is not None:
        raise LeakFirst(what=leak.what)
