"""Reservations: capacity for a term at one price, charged whether it is used or not.

A reservation holds its servers from the moment it is asked for, also while somebody has to approve
it; what is refused or expires gives them back. What counts as its end is the end of its term,
however late we come.
"""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction

from apps.accounts.access import require
from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog import selectors as catalog
from apps.catalog.models import Offering, Plan, PriceRule
from apps.core import clock, outbox
from apps.core.errors import NotFound
from apps.core.money import Money, line_amount
from apps.core.periods import Period, billing_month, months_of
from apps.inventory import services as inventory
from apps.inventory.models import Site
from apps.orders import causes, deadlines, projections
from apps.orders.errors import QuoteExpired, QuoteNotFound, ReservationBegun, WrongTerm
from apps.orders.models import Quote, Reservation, Service
from apps.orders.numbers import next_reservation_serial
from apps.orders.services import policy
from apps.orders.services.approving import APPROVABLE, Approvable, ask_approval, close_approval
from apps.orders.services.choices import name_of, project_of
from apps.orders.services.lifetime import arm_end, next_warning
from apps.orders.services.limits import reserve_quota
from apps.orders.services.quoting import (
    VALID_FOR,
    check_amount,
    common_terms,
    in_seconds,
    is_booking,
    offer_of,
    offering_of,
    site_of,
)
from apps.orders.services.states import OVER, end_service, lock_with_order
from apps.orders.states import RESERVATION, ReservationStatus
from apps.tenancy.selectors import current_tenant

DAY = timedelta(days=1)


@transaction.atomic
def quote_reservation(
    *,
    actor: User,
    offering_sku: str,
    site_code: str,
    quantity: int,
    starts_at: datetime | None,
    ends_at: datetime,
    currency: str | None = None,
) -> Quote:
    """Offer a term at the price in force for the tenant now; it stands to the end of the term.

    Nothing is held by a quote. Raises WrongTerm and what a quote of an order raises.
    """
    tenant = current_tenant()
    offering = offering_of(offering_sku)
    site = site_of(site_code, offering)
    check_amount(offering, quantity, currency)
    now = clock.now()
    begins, ends = in_seconds(starts_at) or clock.now_seconds(), in_seconds(ends_at)
    assert ends is not None  # noqa: S101 - an instant stays one; tells the type checker
    _check_term(begins, ends)
    price = catalog.price_in_force(
        sku=offering.sku, currency=tenant.currency, at=now, tenant=tenant.id
    )
    rate = Money.of(price.amount, tenant.currency)
    contract = catalog.contract_in_force(tenant=tenant.id, currency=tenant.currency, at=now)
    terms = common_terms(offering, site, price, quantity)
    months = list(_months(begins, ends, quantity * offering.gpus, rate))
    total = Money.total((amount for _month, amount in months), tenant.currency)
    terms |= {
        "term_total": str(total),
        "months": [{"month": month, "amount": str(amount)} for month, amount in months],
        "is_charged_unused": True,
    }
    return Quote.objects.create(
        **offer_of(offering, site, price, quantity),
        plan=Plan.RESERVED,
        billing_basis=offering.billing_basis,
        price_rule=PriceRule.FIXED,
        contract_id=contract.pk if contract else None,
        starts_at=begins,
        ends_at=ends,
        terms=terms,
        created_by=actor,
        valid_until=now + VALID_FOR,
    )


def _months(
    starts_at: datetime, ends_at: datetime, gpus: int, rate: Money
) -> Iterator[tuple[str, Money]]:
    """What each billing month of a term costs, rounded once as its invoice line will be."""
    zone, term = current_tenant().billing_timezone, Period(starts_at, ends_at)
    for month in months_of(term, zone):
        part = term.intersect(billing_month(month, zone))
        if part is not None:
            yield month, line_amount(part.seconds * gpus, rate)


def _check_term(starts_at: datetime, ends_at: datetime) -> None:
    now, length = clock.now_seconds(), ends_at - starts_at
    latest = now + settings.NEOCLOUD_RESERVATION_AHEAD * DAY
    shortest, longest = settings.NEOCLOUD_RESERVATION_DAYS
    fits = now - timedelta(minutes=5) <= starts_at <= latest
    if not fits or not shortest * DAY <= length <= longest * DAY:
        raise WrongTerm(
            shortest=shortest,
            longest=longest,
            latest=latest,
            asked=f"{length / DAY:.1f}".removesuffix(".0"),
            starts_at=starts_at,
            field="ends_at" if fits else "starts_at",
        )


@transaction.atomic
def place_reservation(*, actor: User, quote_id: UUID, project_id: UUID, name: str) -> Reservation:
    """Turn a quote into a reservation and hold its servers, in one transaction.

    Placing the same quote again answers the same reservation. Where the tenant's rule asks for an
    approval, it holds its servers until somebody answers. Raises the error of the first rule that
    is broken: permission, input, quote, QuotaExceeded, OutOfCapacity; then nothing is changed.
    """
    require(actor, "order.place")
    quote = Quote.objects.select_for_update().filter(pk=quote_id).first()  # lock
    if quote is None or not is_booking(quote):
        raise QuoteNotFound(field="quote")
    before = Reservation.objects.filter(quote=quote).first()
    if before is not None:
        return before
    if quote.valid_until <= clock.now() or quote.starts_at is None or quote.ends_at is None:
        raise QuoteExpired(until=quote.valid_until, field="quote")
    offering = offering_of(quote.sku)
    site = site_of(quote.site_code, offering)
    starts_at = max(quote.starts_at, clock.now_seconds())
    _check_term(starts_at, quote.ends_at)
    reservation = Reservation(  # check
        serial=0,
        quote=quote,
        project=project_of(project_id, actor),
        placed_by=actor,
        name=name_of(name),
        starts_at=starts_at,
        **{
            field: getattr(quote, field)
            for field in (
                "offering_id", "sku", "offering_name", "site_id", "site_code", "quantity",
                "gpus_each", "ends_at", "currency", "price_id", "unit_price", "contract_id",
            )
        },
    )  # fmt: skip
    reserve_quota(
        tenant=current_tenant().id,
        project=reservation.project,
        gpus=reservation.gpus,
        services=0,
        starts_at=starts_at,
        ends_at=reservation.ends_at,
    )
    reservation.serial = next_reservation_serial()
    reservation.save(force_insert=True)  # change
    _hold(reservation, offering, site)
    deadlines.set_deadline(
        kind="reservation.end", subject=reservation.pk, due_at=reservation.ends_at
    )
    audit.record(actor, "reservation.placed", reservation, after=_terms(reservation))  # record
    if rule := policy.approval_rule(reservation, actor=actor):
        projections.write_reservation(reservation)
        ask_approval(actor=actor, rule=rule, reservation=reservation, not_after=starts_at)
    else:
        _book(reservation)
    return reservation


def _hold(reservation: Reservation, offering: Offering, site: Site) -> None:
    inventory.hold_term(
        site=site,
        resource_class=offering.resource_class,
        traits=offering.traits,
        gpus_each=reservation.gpus_each,
        tenant=current_tenant().id,
        reservation=reservation.pk,
        quantity=reservation.quantity,
        starts_at=reservation.starts_at,
        ends_at=reservation.ends_at,
    )


def _book(reservation: Reservation) -> None:
    """Nobody has to agree any more: it counts, and begins when its time comes."""
    RESERVATION.move(reservation, "book")
    reservation.save(update_fields=["status"])
    deadlines.set_deadline(
        kind="reservation.begin", subject=reservation.pk, due_at=reservation.starts_at
    )
    _arm_warning(reservation)
    projections.write_reservation(reservation)
    outbox.publish("reservation.booked", subject=reservation.pk)
    if reservation.starts_at <= clock.now():
        _begin(reservation)


def _begin(reservation: Reservation) -> None:
    RESERVATION.move(reservation, "begin")
    reservation.begun_at = reservation.begun_at or reservation.starts_at
    reservation.save(update_fields=["status", "begun_at"])
    deadlines.clear_deadline(kind="reservation.begin", subject=reservation.pk)
    projections.write_reservation(reservation)
    audit.record(None, "reservation.begun", reservation)
    outbox.publish("reservation.begun", subject=reservation.pk)


@transaction.atomic
def begin_reservation(*, reservation_id: UUID) -> None:
    """Its term has come; returns quietly for one that is not booked, or is over already."""
    reservation = lock_reservation(reservation_id)
    if reservation.status != ReservationStatus.BOOKED:
        return
    if reservation.starts_at <= clock.now() < reservation.ends_at:
        _begin(reservation)


@transaction.atomic
def cancel_reservation(*, reservation_id: UUID, actor: User, reason: str = "") -> Reservation:
    """Give up a reservation before it begins: nothing is charged. Cancelling twice changes nothing.

    Raises ReservationBegun, NotFound.
    """
    require(actor, "order.cancel")
    reservation = lock_reservation(reservation_id)
    if reservation.status == ReservationStatus.CANCELLED:
        return reservation
    is_open = RESERVATION.can(reservation.status, "cancel")
    if not is_open or reservation.starts_at <= clock.now():
        raise ReservationBegun(
            number=reservation.number, status=reservation.get_status_display().lower()
        )
    _end(reservation, "cancel", at=clock.now_seconds(), reason=reason, actor=actor)
    return reservation


@transaction.atomic
def suspend_reservation(*, reservation_id: UUID, actor: User, reason: str) -> Reservation:
    """Let no new service begin on it, by the operator; its servers stay held, its services stay.

    Suspending again changes nothing. Raises WrongStatus, NotFound.
    """
    reservation = lock_reservation(reservation_id)
    if reservation.status != ReservationStatus.SUSPENDED:
        _turn(reservation, "suspend", reason=reason, actor=actor)
    return reservation


@transaction.atomic
def resume_reservation(*, reservation_id: UUID, actor: User, reason: str = "") -> Reservation:
    """Let it serve again. Resuming again changes nothing. Raises WrongStatus, NotFound."""
    reservation = lock_reservation(reservation_id)
    if reservation.status in (ReservationStatus.BOOKED, ReservationStatus.ACTIVE):
        return reservation
    _turn(reservation, "resume", reason=reason, actor=actor)
    if reservation.starts_at <= clock.now() < reservation.ends_at:
        _begin(reservation)
    return reservation


@transaction.atomic
def expire_reservation(*, reservation_id: UUID) -> None:
    """Its term is over: whatever it was in the middle of, it holds nothing from that instant on.

    Returns quietly before that, and for one that has ended.
    """
    reservation = lock_reservation(reservation_id)
    if reservation.ends_at <= clock.now() and RESERVATION.can(reservation.status, "expire"):
        _end(reservation, "expire", at=reservation.ends_at)


@transaction.atomic
def warn_of_term(*, reservation_id: UUID) -> None:
    """Warn that the term comes near its end, and let the next warning fall due."""
    reservation = lock_reservation(reservation_id)
    if reservation.status in (ReservationStatus.ACTIVE, ReservationStatus.SUSPENDED):
        outbox.publish("reservation.ends_soon", subject=reservation.pk)
    if RESERVATION.can(reservation.status, "expire"):
        _arm_warning(reservation)


@transaction.atomic
def leave_reservation(*, service_id: UUID) -> None:
    """The term under a service is over: it goes on on demand on its server, as it was ordered, if
    nobody else has reserved that; else it ends with the term.

    Returns quietly before that, and for a service that has ended.
    """
    order, service = lock_with_order(service_id)
    term = order.reservation
    if service.state in OVER or term is None or service.reservation_id != term.pk:
        return
    if term.ends_at > clock.now():
        return
    before = {"reservation": term.number}
    stays = inventory.leave_term(service=service.pk, until=service.ends_at, at=term.ends_at)
    if stays:
        service.reservation_id = None
        service.save(update_fields=["reservation_id"])
        arm_end(service)
        audit.record(None, "service.left_reservation", service, before=before)
        outbox.publish("service.left_reservation", subject=service.pk)
        return
    service.ends_at = term.ends_at
    service.save(update_fields=["ends_at"])
    end_service(order, service, cause=causes.TERM_OVER)
    audit.record(None, "service.ended_with_reservation", service, before=before)


def lock_reservation(reservation_id: UUID) -> Reservation:
    """The reservation under its row lock. Raises NotFound, the same for another tenant's."""
    reservation = (
        Reservation.objects.select_for_update(no_key=True).filter(pk=reservation_id).first()
    )
    if reservation is None:
        raise NotFound(field="reservation")
    return reservation


def services_of(reservation: Reservation) -> list[Service]:
    """Services that live on it now."""
    return list(
        Service.objects.filter(reservation_id=reservation.pk).exclude(state__in=OVER).order_by("id")
    )


def _end(
    reservation: Reservation,
    verb: str,
    *,
    at: datetime,
    reason: str = "",
    actor: User | None = None,
) -> None:
    """End a locked reservation at an instant: nothing of it is held any more."""
    before = reservation.status
    RESERVATION.move(reservation, verb)
    reservation.status_reason, reservation.ended_at = reason[:400], at
    reservation.save(update_fields=["status", "status_reason", "ended_at"])
    inventory.release_term(reservation=reservation.pk, at=at)
    close_approval(reservation=reservation, verb="expire" if verb == "expire" else "withdraw")
    deadlines.clear_deadlines(subject=reservation.pk)
    projections.write_reservation(reservation)
    audit.record(
        actor,
        f"reservation.{reservation.status}",
        reservation,
        reason=reason,
        before={"status": before},
        after={"status": reservation.status, "ended_at": at.isoformat()},
    )
    outbox.publish(f"reservation.{reservation.status}", subject=reservation.pk)


def _turn(reservation: Reservation, verb: str, *, reason: str, actor: User) -> None:
    before = reservation.status
    RESERVATION.move(reservation, verb)
    reservation.status_reason = reason[:400]
    reservation.save(update_fields=["status", "status_reason"])
    projections.write_reservation(reservation)
    audit.record(
        actor,
        f"reservation.{verb}",
        reservation,
        reason=reason,
        before={"status": before},
        after={"status": reservation.status},
    )
    outbox.publish(f"reservation.{verb}", subject=reservation.pk)


def _arm_warning(reservation: Reservation) -> None:
    at = next_warning(reservation.ends_at)
    if at is None:
        deadlines.clear_deadline(kind="reservation.warning", subject=reservation.pk)
    else:
        deadlines.set_deadline(kind="reservation.warning", subject=reservation.pk, due_at=at)


def _terms(reservation: Reservation) -> dict[str, Any]:
    return {
        "sku": reservation.sku,
        "site": reservation.site_code,
        "quantity": reservation.quantity,
        "starts_at": reservation.starts_at.isoformat(),
        "ends_at": reservation.ends_at.isoformat(),
        "unit_price": str(reservation.unit_price),
        "currency": reservation.currency,
    }


def _refused(reservation: Reservation, verb: str, reason: str) -> None:
    _end(reservation, verb, at=clock.now_seconds(), reason=reason)


APPROVABLE["reservation"] = Approvable(
    lock=lock_reservation,
    granted=lambda reservation, _actor: _book(reservation),
    ended=_refused,
)
