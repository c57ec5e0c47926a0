"""What else is possible when a site has too few free servers: one answer for pages and programs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import models

from apps.catalog.models import Offering
from apps.catalog.selectors import visible_offerings
from apps.core import clock
from apps.inventory import selectors as inventory
from apps.inventory.models import Site
from apps.inventory.selectors import Availability
from apps.orders.queues import queue_length

MOST_OF_A_KIND = 3


class Kind(models.TextChoices):
    """In which way it differs from what was asked for."""

    SITE = "site", "site"
    OFFERING = "offering", "offering"
    FEWER = "fewer", "fewer"
    RECALL = "recall", "recall"
    LATER = "later", "later"


@dataclass(frozen=True)
class Alternative:
    """What could be quoted instead."""

    kind: str
    offering: str
    site: str
    quantity: int
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    accepts_recall: bool = False

    def as_facts(self) -> dict[str, Any]:
        """What a program is told: the fields of a quote, and in which way it differs."""
        return {
            "kind": str(self.kind),
            "offering": self.offering,
            "site": self.site,
            "quantity": self.quantity,
            "starts_at": self.starts_at.isoformat() if self.starts_at else None,
            "ends_at": self.ends_at.isoformat() if self.ends_at else None,
            "accepts_recall": self.accepts_recall,
        }


@dataclass(frozen=True)
class _Wish:
    offering: Offering
    site: Site
    quantity: int
    ends_at: datetime | None
    rows: list[Availability]

    def here(self, row: Availability) -> bool:
        return row.site_id == self.site.pk and row.offering_id == self.offering.pk


def alternatives(
    *, sku: str, site_code: str, quantity: int, ends_at: datetime | None = None
) -> list[Alternative]:
    """What can be had instead of `quantity` servers now: the same at another site, another offering
    of as many GPUs, fewer, servers on loan, the same later.

    Only what would be accepted as it stands now: nobody waits for it, and enough is free.
    """
    offering = visible_offerings().filter(sku=sku).first()
    site = Site.objects.filter(code=site_code).first()
    if offering is None or site is None:
        return []
    wish = _Wish(offering, site, quantity, ends_at, inventory.availability(until=ends_at))
    return [*_elsewhere(wish), *_others(wish), *_here(wish)]


def _elsewhere(wish: _Wish) -> Iterator[Alternative]:
    same = [row for row in wish.rows if row.offering_id == wish.offering.pk and not wish.here(row)]
    for row in _enough(same, wish)[:MOST_OF_A_KIND]:
        yield _instead(wish, Kind.SITE, site=row.site_code)


def _others(wish: _Wish) -> Iterator[Alternative]:
    as_many = [
        row
        for row in wish.rows
        if row.offering_id != wish.offering.pk and row.gpus == wish.offering.gpus
    ]
    as_many.sort(key=lambda row: row.site_id != wish.site.pk)  # the same site first
    for row in _enough(as_many, wish)[:MOST_OF_A_KIND]:
        yield _instead(wish, Kind.OFFERING, offering=row.sku, site=row.site_code)


def _here(wish: _Wish) -> Iterator[Alternative]:
    row = next((row for row in wish.rows if wish.here(row)), None)
    if row is None or _is_waited_for(row):
        return
    if 0 < row.free < wish.quantity:
        yield _instead(wish, Kind.FEWER, quantity=row.free)
    if row.borrowable and row.free + row.borrowable >= wish.quantity:
        yield _instead(wish, Kind.RECALL, accepts_recall=True)
    now = clock.now()
    length = max(wish.ends_at - now, timedelta(hours=1)) if wish.ends_at else None
    at = inventory.free_from(
        site=wish.site, offering=wish.offering, quantity=wish.quantity, length=length
    )
    if at is not None and at > now:
        begins = at.replace(microsecond=0) + timedelta(seconds=1)
        yield _instead(
            wish, Kind.LATER, starts_at=begins, ends_at=begins + length if length else None
        )


def _enough(rows: list[Availability], wish: _Wish) -> list[Availability]:
    return [row for row in rows if row.free >= wish.quantity and not _is_waited_for(row)]


def _is_waited_for(row: Availability) -> bool:
    return queue_length(site_id=row.site_id, resource_class=row.resource_class) > 0


def _instead(wish: _Wish, kind: Kind, **other: Any) -> Alternative:
    given: dict[str, Any] = {
        "offering": wish.offering.sku,
        "site": wish.site.code,
        "quantity": wish.quantity,
        "ends_at": wish.ends_at,
    }
    return Alternative(kind, **(given | other))
