"""What operators decide about failures, for everything or for a site and an offering."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.selectors import all_offerings
from apps.core.errors import AppError, Invalid, NotFound
from apps.inventory.models import Site
from apps.provisioning.engine.policies import policy_for
from apps.provisioning.errors import (
    DefaultStays,
    FigureOutOfRange,
    NoReplacement,
    PolicyExists,
    ThenImpossible,
    WaitsCross,
)
from apps.provisioning.models import FailurePolicy, Then
from apps.provisioning.services.hands import given
from apps.provisioning.words import LABELS

POSSIBLE = {
    "on_node_fault": (Then.REPLACE, Then.HOLD, Then.UNDO),
    "on_no_capacity": (Then.AS_ORDERED, Then.QUEUE, Then.HOLD, Then.UNDO),
    "on_refused": (Then.HOLD, Then.UNDO),
    "on_unknown": (Then.HOLD, Then.REPLACE, Then.UNDO),
    "after_last_try": (Then.UNDO, Then.REPLACE, Then.HOLD),
    "on_host_fault": (Then.HOLD, Then.REPLACE),
}
FIGURES = {
    "try_minutes": (5, 1440),
    "hold_hours": (1, 168),
    "first_wait_seconds": (1, 300),
    "longest_wait_seconds": (5, 3600),
    "undo_minutes": (5, 1440),
    "leak_retry_minutes": (1, 1440),
    "max_replacements": (0, 10),
    "recleanings": (0, 10),
    "host_fault_minutes": (1, 1440),
}


@transaction.atomic
def set_policy(
    *, site: Site | None, sku: str, actor: User, reason: str, **values: Any
) -> FailurePolicy:
    """Decide what follows failures at a site, for an offering, both, or by default.

    What is not said stays as it is now, for a new policy as what applied there before. Raises
    Invalid for what makes no sense, with every problem; then nothing changes.
    """
    reason = given(reason)
    if sku and not all_offerings().filter(sku=sku).exists():
        raise NotFound(field="offering")
    policy = FailurePolicy.objects.select_for_update().filter(site=site, sku=sku).first()
    before = _figures(policy) if policy else None
    if policy is None:
        policy = policy_for(site=site.pk if site else None, sku=sku)
        policy = FailurePolicy(**_figures(policy), site=site, sku=sku)
    for name, value in values.items():
        setattr(policy, name, value)
    problems = list(_problems(policy))
    if problems:
        raise Invalid.many(problems)
    try:
        with transaction.atomic():
            policy.save()
    except IntegrityError:
        raise PolicyExists(where=where(policy)) from None
    audit.record(
        actor,
        "failure_policy.set",
        ("failurepolicy", policy.pk, where(policy)),
        reason=reason,
        before=before,
        after=_figures(policy),
    )
    return policy


@transaction.atomic
def remove_policy(*, policy_id: UUID, actor: User, reason: str) -> None:
    """Let what applies more widely apply here too. Raises DefaultStays or NotFound."""
    reason = given(reason)
    policy = FailurePolicy.objects.select_for_update().filter(pk=policy_id).first()
    if policy is None:
        raise NotFound()
    if policy.site_id is None and not policy.sku:
        raise DefaultStays()
    subject = ("failurepolicy", policy.pk, where(policy))
    audit.record(
        actor, "failure_policy.removed", subject, reason=reason, before=_figures(policy), after=None
    )
    policy.delete()


def where(policy: FailurePolicy) -> str:
    """Where a policy applies, as people name it."""
    parts = [policy.site.name if policy.site else "", policy.sku]
    return " · ".join(part for part in parts if part) or str(_("everything"))


def _figures(policy: FailurePolicy) -> dict[str, Any]:
    return {name: getattr(policy, name) for name in (*POSSIBLE, *FIGURES)}


def _problems(policy: FailurePolicy) -> Iterator[AppError]:
    for name, possible in POSSIBLE.items():
        chosen = getattr(policy, name)
        if chosen not in possible:
            then = Then(chosen).label if chosen in Then.values else chosen
            known = ", ".join(str(one.label) for one in possible)
            yield ThenImpossible(field=name, then=then, kind=LABELS[name], possible=known)
    for name, (least, most) in FIGURES.items():
        asked = getattr(policy, name)
        if asked is not None and not least <= asked <= most:
            yield FigureOutOfRange(
                field=name, name=LABELS[name], asked=asked, least=least, most=most
            )
    first, longest = policy.first_wait_seconds, policy.longest_wait_seconds
    if first > longest or longest > policy.try_minutes * 60:
        yield WaitsCross(
            field="longest_wait_seconds", first=first, longest=longest, tries=policy.try_minutes
        )
    if policy.on_node_fault == Then.REPLACE and policy.max_replacements == 0:
        yield NoReplacement(field="max_replacements")
