"""A trial: one free node deployed and cleaned end to end, without a customer and without a charge.

Each stage is a row with a time, not a waiting worker. A stage is safe to repeat: a worker that dies
is followed by another. It ends with the node back in the pool on proof, or in quarantine.
"""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import structlog
from django.db import transaction
from django.db.models import Q

from apps.audit import services as audit
from apps.catalog.models import Image
from apps.core import clock
from apps.core.errors import AppError, OutsideError, SiteUnreachable, Transient
from apps.inventory import services as inventory
from apps.inventory.models import Node
from apps.inventory.states import NodeStatus
from apps.provisioning import adapters
from apps.provisioning.blueprints import node_moves
from apps.provisioning.models import SiteCheck
from apps.provisioning.ports import Compute, Deployment
from apps.provisioning.proofs import proof_of
from apps.provisioning.validation.rows import row

log = structlog.get_logger(__name__)
HOLD, CLAIM, DEPLOY, POWER, REMOVE, PROOF = "hold", "claim", "deploy", "power", "remove", "proof"
AFTER = {CLAIM: DEPLOY, DEPLOY: POWER, POWER: REMOVE, REMOVE: PROOF}
LEASE = timedelta(seconds=180)
LONGEST_TRY = timedelta(hours=1)  # until the server is given up and removed
LONGEST = timedelta(hours=9)  # until the node is given up: real disks take hours to clean
LOOK_AGAIN = 5.0
GONE_WRONG = ("deploy failed", "error")


class _Failed(Exception):
    """The stage did not work out; the words say why."""


def due_checks(limit: int = 50) -> list[UUID]:
    """Trials whose time has come and that nobody is at."""
    now = clock.now()
    return list(
        SiteCheck.objects.exclude(stage="")
        .filter(Q(lease_until=None) | Q(lease_until__lt=now), next_try_at__lte=now)
        .order_by("next_try_at")
        .values_list("pk", flat=True)[:limit]
    )


def advance_check(check_id: UUID) -> None:
    """Do the next part of a trial; outside any transaction, under a lease."""
    check = _claimed(check_id)
    if check is None:
        return
    if check.stage == HOLD:
        _hold(check)
        return
    try:
        said = _act(check)
    except (Transient, SiteUnreachable) as error:
        _again(check, error.detail)
    except (OutsideError, AppError, _Failed) as error:
        _not_good(check, str(getattr(error, "detail", "") or error))
    except Exception as error:
        log.exception("trial.crashed", check=str(check.pk))
        _not_good(check, f"{type(error).__name__}: {error}")
    else:
        if said is None:
            _again(check, "")
        else:
            _good(check, said)


def _claimed(check_id: UUID) -> SiteCheck | None:
    now = clock.now()
    with transaction.atomic():
        check = (
            SiteCheck.objects.select_for_update(skip_locked=True, of=("self",))
            .select_related("site", "node")
            .exclude(stage="")
            .filter(Q(lease_until=None) | Q(lease_until__lt=now), pk=check_id, next_try_at__lte=now)
            .first()
        )
        if check is not None:
            check.lease_until = now + LEASE
            check.save(update_fields=["lease_until"])
    return check


# ---------------------------------------------------------------------- stages
def _hold(check: SiteCheck) -> None:
    """A node nobody holds is held by the platform itself, so that it cannot be sold."""
    with transaction.atomic():
        fresh = SiteCheck.objects.select_for_update().get(pk=check.pk)
        node = inventory.hold_free_node(site=check.site, holder=check.pk)
        if node is None:
            fresh.rows = [*fresh.rows, row(HOLD, False, "0")]
            _end(fresh)
            return
        fresh.node = node
        fresh.rows = [*fresh.rows, row(HOLD, True, node.name)]
        _enter(fresh, CLAIM)
        fresh.save()


def _act(check: SiteCheck) -> str | None:
    """What the stage came to; None: look again."""
    node, compute = _node(check), adapters.compute_of(check.site)
    late = clock.now() - check.started_at
    if check.stage in (CLAIM, DEPLOY, POWER) and late > LONGEST_TRY:
        raise _Failed(f"not done after {LONGEST_TRY}")
    if check.stage == REMOVE and late > LONGEST:
        raise _Failed(f"not clean after {LONGEST}")
    acts = {CLAIM: _claim, DEPLOY: _deploy, POWER: _power, REMOVE: _remove, PROOF: _proof}
    return acts[check.stage](check, node, compute)


def _claim(check: SiteCheck, node: Node, compute: Compute) -> str | None:
    name = f"neo-{check.pk.hex[-12:]}-trial-1"
    if not compute.reserve(node.infra_id, name=name, instance=check.pk):
        return None
    compute.validate(node.infra_id)
    return name


def _deploy(check: SiteCheck, node: Node, compute: Compute) -> str | None:
    seen = compute.get_node(node.infra_id)
    if seen.instance_id != check.pk:
        raise _Failed(f"the node serves {seen.instance_id}")
    if seen.provision_state == "active":
        return "active"
    if seen.provision_state in GONE_WRONG and not seen.is_reserved:
        raise _Failed(f"{seen.provision_state}: {seen.last_error}")
    if seen.provision_state == "available" and not seen.is_reserved:
        compute.deploy(node.infra_id, _deployment(check))
    return None


def _deployment(check: SiteCheck) -> Deployment:
    image = Image.objects.filter(is_retired=False).order_by("code").first()
    if image is None:
        raise _Failed("the catalogue has no image")
    drive: dict[str, Any] = {
        "meta_data": {"uuid": str(check.pk), "name": "trial", "hostname": "trial"},
        "user_data": "#!/bin/sh\nexit 0\n",
    }
    return Deployment(
        image_source=image.source,
        image_checksum=image.checksum,
        display_name="trial",
        config_drive=drive,
    )


def _power(check: SiteCheck, node: Node, compute: Compute) -> str | None:
    seen = compute.get_node(node.infra_id)
    if seen.power_state == "power on":
        return seen.power_state
    if not seen.is_reserved:
        compute.set_power(node.infra_id, on=True)
    return None


def _remove(check: SiteCheck, node: Node, compute: Compute) -> str | None:
    with transaction.atomic():
        inventory.release(service=check.pk)  # from now on a cleaning counts
    seen = compute.get_node(node.infra_id)
    if seen.is_reserved or seen.provision_state in node_moves.MOVING:
        return None
    if seen.instance_id not in (None, check.pk):
        raise _Failed(f"the node serves {seen.instance_id}")
    if seen.provision_state in node_moves.REMOVABLE:
        compute.undeploy(node.infra_id)
        return None
    if seen.provision_state == "available" and seen.instance_id is not None:
        compute.unreserve(node.infra_id, name="", instance=check.pk)
        return None
    if seen.provision_state != "available":
        raise _Failed(f"{seen.provision_state}: {seen.last_error}")
    return "available"


def _proof(check: SiteCheck, node: Node, compute: Compute) -> str | None:
    if node.status != NodeStatus.CLEANING:
        return str(node.status)  # a person, or a worker before this one, has decided
    _held, left_at = inventory.last_lease(node)
    since = left_at or check.started_at
    record = compute.cleaning_since(node.infra_id, since)
    proof = proof_of(record, check.site)
    was_deployed = any(one["item"] == DEPLOY and one["ok"] for one in check.rows)
    if record.result == "none" and not record.was_deployed and not was_deployed:
        proof = node_moves.never_used(since, is_simulated=check.site.is_simulated)
    with transaction.atomic():
        inventory.recycle(node=node, proof=proof)
    return ", ".join(proof["steps"])


# ---------------------------------------------------------------------- storing
def _node(check: SiteCheck) -> Node:
    if check.node_id is None:
        raise _Failed("the trial holds no node")
    return Node.objects.select_related("site").get(pk=check.node_id)


def _enter(check: SiteCheck, stage: str) -> None:
    now = clock.now()
    check.stage, check.next_try_at, check.lease_until = stage, now, None
    check.stage_began_at = now


def _again(check: SiteCheck, detail: str) -> None:
    SiteCheck.objects.filter(pk=check.pk, stage=check.stage).update(
        next_try_at=clock.now() + timedelta(seconds=LOOK_AGAIN), lease_until=None
    )
    if detail:
        log.info("trial.waits", check=str(check.pk), stage=check.stage, detail=detail)


def _good(check: SiteCheck, said: str) -> None:
    with transaction.atomic():
        fresh = SiteCheck.objects.select_for_update().get(pk=check.pk)
        if fresh.stage != check.stage:
            return
        fresh.rows = [*fresh.rows, _told(fresh, True, said)]
        following = AFTER.get(fresh.stage)
        if following is None:
            _end(fresh)
        else:
            _enter(fresh, following)
            fresh.save()


def _not_good(check: SiteCheck, why: str) -> None:
    """Before the removal: remove what there is. After it: quarantine."""
    with transaction.atomic():
        fresh = SiteCheck.objects.select_for_update().get(pk=check.pk)
        if fresh.stage != check.stage:
            return
        fresh.rows = [*fresh.rows, _told(fresh, False, why)]
        if fresh.stage in (CLAIM, DEPLOY, POWER):
            _enter(fresh, REMOVE)
            fresh.save()
            return
        inventory.release(service=fresh.pk)
        if fresh.node_id is not None:
            node = Node.objects.get(pk=fresh.node_id)
            inventory.quarantine(node=node, reason=f"trial: {why}"[:400])
        _end(fresh)


def _told(check: SiteCheck, ok: bool, detail: str) -> dict[str, Any]:
    began: datetime = check.stage_began_at or check.started_at
    return row(check.stage, ok, detail, seconds=(clock.now() - began).total_seconds())


def _end(check: SiteCheck) -> None:
    check.stage, check.next_try_at, check.lease_until = "", None, None
    check.ended_at = clock.now()
    check.is_good = all(one["ok"] is not False for one in check.rows)
    check.save()
    audit.record(
        None,
        "site.tried",
        check.site,
        after={"check": str(check.pk), "good": check.is_good, "node": str(check.node or "")},
    )
