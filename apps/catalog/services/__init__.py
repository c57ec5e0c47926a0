"""Every change to what is sold and what it costs."""

from apps.catalog.services.contracts import (
    Terms,
    change_contract,
    end_contract,
    sign_contract,
)
from apps.catalog.services.documents import export_catalog, import_catalog
from apps.catalog.services.offerings import retire_offering, save_offering
from apps.catalog.services.pricing import save_price_book, set_price

__all__ = [
    "Terms",
    "change_contract",
    "end_contract",
    "export_catalog",
    "import_catalog",
    "retire_offering",
    "save_offering",
    "save_price_book",
    "set_price",
    "sign_contract",
]
