"""Offerings as a customer sees them: price now, by GPU-hour and by server-hour, and
what is free.
"""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from django.utils.translation import gettext as _

from apps.catalog import selectors as catalog
from apps.catalog.models import Offering, Price
from apps.core import clock, instants, show
from apps.core.money import Money
from apps.inventory import selectors as inventory
from apps.inventory.selectors import Availability
from apps.provisioning import selectors as provisioning
from apps.provisioning.selectors import Expectation
from apps.tenancy.models import Tenant
from apps.tenancy.selectors import current_tenant


@dataclass(frozen=True)
class Offer:
    """An offering, its price for this tenant (None: none is set) and its sites."""

    offering: Offering
    price: Price | None
    currency: str
    sites: list[Availability]

    @property
    def name(self) -> str:
        """In the reader's language."""
        return show.local(self.offering, "name")

    @property
    def description(self) -> str:
        """In the reader's language."""
        return show.local(self.offering, "description")

    @property
    def free(self) -> int:
        """Servers that can be had at once, over all sites."""
        return sum(site.free for site in self.sites)

    @property
    def per_gpu_hour(self) -> Money | None:
        """The unit price."""
        return Money.of(_plain(self.price.amount), self.currency) if self.price else None

    @property
    def per_server_hour(self) -> Money | None:
        """What a whole server costs in an hour, unrounded."""
        per_gpu = self.per_gpu_hour
        return per_gpu * self.offering.gpus if per_gpu else None

    @property
    def is_contract(self) -> bool:
        """Whether the price is this tenant's own."""
        return self.price is not None and self.price.book.kind == "contract"

    @property
    def site_choices(self) -> list[tuple[str, str]]:
        """Sites to order at; the one with most free servers first."""
        words = _("{site}: {free} of {total} free")
        return [
            (
                site.site_code,
                words.format(site=site_name(site), free=site.free, total=site.total),
            )
            for site in sorted(self.sites, key=lambda site: -site.free)
        ]


@dataclass(frozen=True)
class SiteView:
    """A site of an offering: what is free, and how long it took lately."""

    name: str
    free: int
    lent: int
    total: int
    free_from: datetime | None
    expected: str


def site_views(offer: Offer) -> list[SiteView]:
    """The sites of an offering; an expected time only after enough real runs."""
    return [
        SiteView(
            site_name(site),
            site.free,
            site.borrowable,
            site.total,
            site.free_from,
            expected_words(provisioning.expectation(sku=site.sku, site=site.site_id)),
        )
        for site in offer.sites
    ]


def expected_words(times: Expectation) -> str:
    """The honest expected time."""
    if times.usual is None or times.long is None:
        return _("unknown until {n} real runs exist").format(n=provisioning.KNOWN_AFTER)
    return _("{usual} to {long}").format(
        usual=show.duration(times.usual), long=show.duration(times.long)
    )


def all_offers() -> list[Offer]:
    """Everything on sale for this tenant."""
    return _offers(catalog.visible_offerings(), current_tenant())


def offer_of(sku: str) -> Offer:
    """One offering of the catalog. Raises UnknownSku."""
    return _offers([catalog.offering_by_sku(sku)], current_tenant())[0]


def next_price(offer: Offer) -> str:
    """The published change of the price this tenant pays; "" under a contract price."""
    if offer.price is None or offer.is_contract:
        return ""
    coming = catalog.next_list_price(
        sku=offer.offering.sku, currency=offer.currency, at=clock.now()
    )
    if coming is None:
        return ""
    return _("From {at} on: {price} per GPU-hour. It holds for running servers too.").format(
        at=instants.in_words(coming.effective_from), price=show.money(coming.amount, offer.currency)
    )


def site_name(site: Availability) -> str:
    """A site's name in the reader's language."""
    return site.site_name_ko if show.reads_korean() and site.site_name_ko else site.site_name


def _offers(offerings: Iterable[Offering], tenant: Tenant) -> list[Offer]:
    prices = catalog.prices_in_force(currency=tenant.currency, at=clock.now(), tenant=tenant.id)
    sites: dict[UUID, list[Availability]] = defaultdict(list)
    for row in inventory.availability():
        sites[row.offering_id].append(row)
    return [
        Offer(offering, prices.get(offering.sku), tenant.currency, sites[offering.pk])
        for offering in offerings
    ]


def _plain(value: Decimal) -> Decimal:
    whole = value.to_integral_value()
    return whole if value == whole else value.normalize()
