"""What was agreed, named in the reader's language: offerings, sites and images."""

from functools import cached_property
from typing import Protocol
from uuid import UUID

from django.utils.functional import lazy
from django.utils.translation import ngettext

from apps.catalog import selectors as catalog
from apps.core import show
from apps.inventory import selectors as inventory


class Agreed(Protocol):
    """A quote, an order or a reservation: it keeps the English name it was made with."""

    offering_id: UUID
    offering_name: str


class Names:
    """The names for one page: each kind is read once, whatever the number of rows."""

    def offering(self, agreed: Agreed) -> str:
        """The name that was agreed; the translation as long as it translates that very name."""
        if not show.reads_korean():
            return agreed.offering_name
        name, korean = self._offerings.get(agreed.offering_id, ("", ""))
        return korean if korean and name == agreed.offering_name else agreed.offering_name

    def site(self, code: str) -> str:
        """The site of a code; the code where there is none."""
        return self._sites.get(code) or code

    def image(self, code: str) -> str:
        """The image of a code; the code where there is none."""
        return self._images.get(code) or code

    @cached_property
    def _offerings(self) -> dict[UUID, tuple[str, str]]:
        return catalog.offering_names()

    @cached_property
    def _sites(self) -> dict[str, str]:
        return {site.code: show.local(site, "name") for site in inventory.sites()}

    @cached_property
    def _images(self) -> dict[str, str]:
        return catalog.image_names()


def servers(quantity: int, offering: str) -> str:
    """How many of what: 2 servers: 8 × H200 bare metal server."""
    return ngettext("{n} server: {offering}", "{n} servers: {offering}", quantity).format(
        n=quantity, offering=offering
    )


def offering_for_readers(agreed: Agreed) -> object:
    """The offering's name in a message that is worded later, in the language of each reader."""
    return lazy(lambda: Names().offering(agreed), str)()
