"""Quotes: every term shown before anything is agreed."""

from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction

from apps.accounts.models import User
from apps.catalog import selectors as catalog
from apps.catalog.models import Offering, Plan, Price, PriceRule
from apps.core import clock
from apps.core.money import Money
from apps.inventory import selectors as inventory
from apps.inventory.models import Site
from apps.inventory.states import SiteStatus
from apps.orders.errors import (
    NoRecall,
    ReservationFull,
    SiteSilent,
    UnknownOffering,
    UnknownReservation,
    UnknownSite,
    WrongCurrency,
    WrongQuantity,
)
from apps.orders.models import Quote, Reservation
from apps.orders.services import policy
from apps.orders.states import CHARGES, ReservationStatus
from apps.tenancy.selectors import current_tenant

VALID_FOR = timedelta(hours=24)
PATIENCE = timedelta(seconds=60)  # a site silent for longer sells nothing until it answers


def offering_of(sku: str) -> Offering:
    """The offering a tenant may order by SKU. Raises UnknownOffering, the same for hidden ones."""
    offering = catalog.visible_offerings().filter(sku=sku).first()
    if offering is None:
        known = ", ".join(catalog.visible_offerings().values_list("sku", flat=True))
        raise UnknownOffering(sku=sku, known=known, field="offering")
    return offering


def site_of(code: str, offering: Offering) -> Site:
    """An active site that has nodes of the offering's resource class and answers.

    Raises UnknownSite or SiteSilent.
    """
    selling = Site.objects.filter(
        status=SiteStatus.ACTIVE, nodes__resource_class=offering.resource_class
    ).distinct()
    site = selling.filter(code=code).first()
    if site is None:
        known = ", ".join(selling.values_list("code", flat=True)) or "—"
        raise UnknownSite(site=code, sku=offering.sku, known=known, field="site")
    silent = site.failing_since
    if silent is not None and clock.now() - silent > PATIENCE:
        raise SiteSilent(site=code, since=silent.isoformat(timespec="minutes"), field="site")
    return site


@transaction.atomic
def make_quote(
    *,
    actor: User,
    offering_sku: str,
    site_code: str,
    quantity: int,
    currency: str | None = None,
    starts_at: datetime | None = None,
    ends_at: datetime | None = None,
    accepts_recall: bool = False,
    reservation_id: UUID | None = None,
) -> Quote:
    """Offer terms for a day: price, currency, tax, billing basis, price rule, start and end;
    nothing is held by it.

    Without a start it is as soon as possible, without an end until terminated. With
    `accepts_recall` a server may be one that somebody reserved for later: it ends by itself before
    that. With a reservation the servers are of those it holds, and its term pays for them.
    """
    tenant = current_tenant()
    offering = offering_of(offering_sku)
    site = site_of(site_code, offering)
    check_amount(offering, quantity, currency)
    reservation = _reservation(reservation_id, offering, site, quantity)
    if reservation is not None:
        if accepts_recall:
            raise NoRecall(field="accepts_recall")
        starts_at = starts_at or _ahead(reservation.starts_at)
    starts_at, ends_at = in_seconds(starts_at), in_seconds(ends_at)
    policy.check_term(starts_at, ends_at)
    now = clock.now()
    policy.check_duration(begins_at=starts_at or now, ends_at=ends_at)
    price = catalog.price_in_force(
        sku=offering.sku, currency=tenant.currency, at=now, tenant=tenant.id
    )
    contract = catalog.contract_in_force(tenant=tenant.id, currency=tenant.currency, at=now)
    terms = common_terms(offering, site, price, quantity)
    if accepts_recall:
        terms["recall"] = recall_terms(site, offering, quantity, ends_at)
    if reservation is not None:
        terms["reservation"] = {
            "number": reservation.number,
            "covered_until": reservation.ends_at.isoformat(),
        }
    return Quote.objects.create(
        **offer_of(offering, site, price, quantity),
        plan=Plan.RESERVED if reservation else Plan.ON_DEMAND,
        billing_basis=offering.billing_basis,
        price_rule=contract.price_rule if contract else PriceRule.IN_FORCE,
        contract_id=contract.pk if contract else None,
        starts_at=starts_at,
        ends_at=ends_at,
        accepts_recall=accepts_recall,
        reservation_id=reservation_id,
        terms=terms,
        created_by=actor,
        valid_until=now + VALID_FOR,
    )


def check_amount(offering: Offering, quantity: int, currency: str | None) -> None:
    """Refuse an amount or a currency that cannot be. Raises WrongQuantity or WrongCurrency."""
    tenant = current_tenant()
    if not 1 <= quantity <= offering.max_quantity:
        raise WrongQuantity(most=offering.max_quantity, asked=quantity, field="quantity")
    if currency and currency != tenant.currency:
        raise WrongCurrency(currency=tenant.currency, asked=currency, field="currency")


def offer_of(offering: Offering, site: Site, price: Price, quantity: int) -> dict[str, Any]:
    """What every quote freezes of an offering, a site and a price."""
    tenant = current_tenant()
    return {
        "offering_id": offering.pk,
        "sku": offering.sku,
        "offering_name": offering.name,
        "site_id": site.pk,
        "site_code": site.code,
        "quantity": quantity,
        "gpus_each": offering.gpus,
        "currency": tenant.currency,
        "price_id": price.pk,
        "unit_price": price.amount,
        "price_kind": price.book.kind,
        "vat_rate": tenant.vat_rate,
    }


def common_terms(offering: Offering, site: Site, price: Price, quantity: int) -> dict[str, Any]:
    """What every customer is shown."""
    tenant = current_tenant()
    per_hour = Money.of(price.amount, tenant.currency) * (quantity * offering.gpus)
    return {
        "hour_total": str(per_hour.rounded_half_up()),
        "unit": "gpu_hour",
        "granularity": "1 s",
        "billing_timezone": tenant.billing_timezone,
        "charged_states": [
            str(row.state) for row in CHARGES if getattr(row, offering.billing_basis)
        ],
    }


def recall_terms(
    site: Site, offering: Offering, quantity: int, ends_at: datetime | None
) -> dict[str, Any]:
    """What a customer who accepts a recall is told: how the servers that are free now stand."""
    now = inventory.availability(site=site, until=ends_at)
    row = next((one for one in now if one.sku == offering.sku), None)
    return {
        "turn_around_minutes": site.turn_around_minutes,
        "free_for_ever": row.free if row else 0,
        "free_until_recalled": row.borrowable if row else 0,
    }


def is_booking(quote: Quote) -> bool:
    """Whether the quote offers a reservation: it becomes one, not an order."""
    return quote.plan == Plan.RESERVED and quote.reservation_id is None


def _reservation(
    reservation_id: UUID | None, offering: Offering, site: Site, quantity: int
) -> Reservation | None:
    """The open reservation that servers are asked of. Raises UnknownReservation or
    ReservationFull.
    """
    if reservation_id is None:
        return None
    fitting = Reservation.objects.filter(
        offering_id=offering.pk,
        site_id=site.pk,
        status__in=[ReservationStatus.BOOKED, ReservationStatus.ACTIVE],
        ends_at__gt=clock.now(),
    )
    reservation = fitting.filter(pk=reservation_id).first()
    if reservation is None:
        known = ", ".join(one.number for one in fitting.order_by("serial")) or "—"
        raise UnknownReservation(asked=reservation_id, known=known, field="reservation")
    if quantity > reservation.quantity:
        raise ReservationFull(
            number=reservation.number,
            most=reservation.quantity,
            asked=quantity,
            field="quantity",
        )
    return reservation


def _ahead(instant: datetime) -> datetime | None:
    return instant if instant > clock.now() else None


def in_seconds(instant: datetime | None) -> datetime | None:
    """Cut to the whole second, in which starts and ends are agreed."""
    return instant.replace(microsecond=0) if instant else None
