"""Quotes: every term shown before anything is agreed."""

from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import User
from apps.catalog import selectors as catalog
from apps.catalog.models import Offering, Plan, PriceRule
from apps.core import clock
from apps.core.money import Money
from apps.inventory.models import Site
from apps.inventory.states import SiteStatus
from apps.orders.errors import (
    SiteSilent,
    UnknownOffering,
    UnknownSite,
    WrongCurrency,
    WrongQuantity,
)
from apps.orders.models import Quote
from apps.orders.services import policy
from apps.orders.states import CHARGES
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
) -> Quote:
    """Offer terms for a day: price, currency, tax, billing basis, price rule, start and end;
    nothing is held by it.

    Without a start it is as soon as possible, without an end until terminated.
    """
    tenant = current_tenant()
    offering = offering_of(offering_sku)
    site = site_of(site_code, offering)
    if not 1 <= quantity <= offering.max_quantity:
        raise WrongQuantity(most=offering.max_quantity, asked=quantity, field="quantity")
    if currency and currency != tenant.currency:
        raise WrongCurrency(currency=tenant.currency, asked=currency, field="currency")
    starts_at, ends_at = in_seconds(starts_at), in_seconds(ends_at)
    policy.check_term(starts_at, ends_at)
    now = clock.now()
    policy.check_duration(begins_at=starts_at or now, ends_at=ends_at)
    price = catalog.price_in_force(
        sku=offering.sku, currency=tenant.currency, at=now, tenant=tenant.id
    )
    contract = catalog.contract_in_force(tenant=tenant.id, currency=tenant.currency, at=now)
    gpus = quantity * offering.gpus
    per_hour = Money.of(price.amount, tenant.currency) * gpus
    return Quote.objects.create(
        offering_id=offering.pk,
        sku=offering.sku,
        offering_name=offering.name,
        site_id=site.pk,
        site_code=site.code,
        quantity=quantity,
        gpus_each=offering.gpus,
        currency=tenant.currency,
        plan=Plan.ON_DEMAND,
        billing_basis=offering.billing_basis,
        price_rule=contract.price_rule if contract else PriceRule.IN_FORCE,
        contract_id=contract.pk if contract else None,
        price_id=price.pk,
        unit_price=price.amount,
        price_kind=price.book.kind,
        starts_at=starts_at,
        ends_at=ends_at,
        vat_rate=tenant.vat_rate,
        terms={
            "hour_total": str(per_hour.rounded_half_up()),
            "unit": "gpu_hour",
            "granularity": "1 s",
            "billing_timezone": tenant.billing_timezone,
            "charged_states": [
                str(row.state) for row in CHARGES if getattr(row, offering.billing_basis)
            ],
        },
        created_by=actor,
        valid_until=now + VALID_FOR,
    )


def in_seconds(instant: datetime | None) -> datetime | None:
    """Cut to the whole second, in which starts and ends are agreed."""
    return instant.replace(microsecond=0) if instant else None
