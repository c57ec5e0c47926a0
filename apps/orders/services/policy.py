"""What is checked before capacity is touched: who, how long, how much, and whether somebody else
has to agree.

Offering and site are checked when terms are offered, limits under their locks (`reserve_quota`).
"""

from datetime import datetime, timedelta

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.access import require
from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock
from apps.orders import causes
from apps.orders.errors import (
    ApproverNeeded,
    EndNeeded,
    TooLong,
    WrongEnd,
    WrongPolicy,
    WrongStart,
)
from apps.orders.models import Order, OrderPolicy, Reservation
from apps.orders.selectors import order_policy
from apps.orders.services.limits import reserve_quota
from apps.tenancy.selectors import current_tenant

FURTHEST = timedelta(days=366)  # a start may lie this far ahead
MOST = {"approval_from_gpus": 100_000, "approval_hours": 24 * 60, "longest_days": 3_660}


def check_order(order: Order, *, actor: User) -> None:
    """Refuse an order that breaks a rule: permission, longest duration, the limits of the tenant
    and of the project; the limits stay locked. The error names the rule, its figure and the way
    out.
    """
    require(actor, "order.place")
    check_duration(begins_at=order.starts_at or clock.now(), ends_at=order.ends_at)
    check_quota(order)


def check_quota(order: Order) -> None:
    """Lock the limits and refuse an order that does not fit in them now."""
    reserve_quota(
        tenant=current_tenant().id,
        project=order.project,
        gpus=0 if order.reservation_id else order.gpus,  # what it reserved counts already
        services=order.quantity,
        starts_at=order.starts_at,
        ends_at=order.ends_at,
    )


def check_term(starts_at: datetime | None, ends_at: datetime | None) -> None:
    """Refuse a start or an end that cannot be. Raises WrongStart or WrongEnd."""
    now = clock.now()
    latest = now + FURTHEST
    if starts_at is not None and not now < starts_at <= latest:
        raise WrongStart(latest=latest, asked=starts_at, field="starts_at")
    earliest = starts_at or now
    if ends_at is not None and ends_at <= earliest:
        raise WrongEnd(earliest=earliest, asked=ends_at, field="ends_at")


def check_duration(*, begins_at: datetime, ends_at: datetime | None) -> None:
    """Refuse a term longer than the tenant's own rule allows. Raises TooLong or EndNeeded."""
    limit = order_policy().longest_days
    if limit is None:
        return
    latest = begins_at + timedelta(days=limit)
    if ends_at is None:
        raise EndNeeded(limit=limit, latest=latest, field="ends_at")
    if ends_at > latest:
        days = (ends_at - begins_at) / timedelta(days=1)
        raise TooLong(
            limit=limit,
            asked=_("{days} days").format(days=f"{days:.1f}".removesuffix(".0")),
            latest=latest,
            field="ends_at",
        )


def approval_rule(order: Order | Reservation, *, actor: User) -> str:
    """Why somebody else has to agree to this person's order; "" when nobody has to."""
    limit = order_policy().approval_from_gpus
    if limit is None or order.gpus < limit or actor.may("order.approve"):
        return ""
    return causes.many_gpus(limit=limit, gpus=order.gpus)


def check_longer(order: Order, *, actor: User) -> None:
    """Refuse more time to somebody whose order of this size had to be approved."""
    if approval_rule(order, actor=actor):
        raise ApproverNeeded(
            number=order.number,
            gpus=order.gpus,
            limit=order_policy().approval_from_gpus,
            holders=approvers_in_words(),
            field="ends_at",
        )


def approvers_in_words(*, but: User | None = None) -> str:
    """The names of those who may approve."""
    people = accounts.people_who_may("order.approve")
    return ", ".join(one.name for one in people if but is None or one.pk != but.pk) or "—"


@transaction.atomic
def set_order_policy(
    *,
    approval_from_gpus: int | None,
    approval_hours: int,
    longest_days: int | None,
    actor: User,
) -> OrderPolicy:
    """Decide which orders need approval, until when, and how long a service may run.

    Orders placed before stay as they are. Raises WrongPolicy.
    """
    figures = {
        "approval_from_gpus": approval_from_gpus,
        "approval_hours": approval_hours,
        "longest_days": longest_days,
    }
    for field, value in figures.items():
        if value is not None and not 1 <= value <= MOST[field]:
            raise WrongPolicy(least=1, most=MOST[field], asked=value, field=field)
    OrderPolicy.objects.bulk_create([OrderPolicy()], ignore_conflicts=True)
    policy = OrderPolicy.objects.select_for_update().get()
    before = {field: getattr(policy, field) for field in figures}
    if before == figures:
        return policy
    for field, value in figures.items():
        setattr(policy, field, value)
    policy.updated_at = clock.now()
    policy.save()
    audit.record(
        actor,
        "order_policy.changed",
        ("order_policy", str(policy.pk), _("Order policy")),
        before=before,
        after=dict(figures),
    )
    return policy
