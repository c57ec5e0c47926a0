"""What is sold: offerings, price books, prices, the catalog as one file."""

from typing import Any
from uuid import UUID

from django.db.models import QuerySet

from apps.api.operations import Asked, Endpoint, acts, lists, shows
from apps.api.serializers import catalog as shapes
from apps.api.serializers.imports import ImportReportSerializer
from apps.catalog import selectors, services
from apps.catalog.models import Contract, Offering, Price, PriceBook
from apps.tenancy.selectors import tenants


class AllOfferings(Endpoint):
    """Products."""

    @lists(
        "listAllOfferings",
        "catalog.view",
        shapes.PlatformOffering,
        query=shapes.OfferingFilters,
    )
    def get(self, asked: Asked) -> QuerySet[Offering]:
        """List offerings, retired ones too, newest first."""
        return selectors.all_offerings().prefetch_related("images").filter(**asked.query)


class OfferingRetirement(Endpoint):
    """Takes a product off sale."""

    @acts("retireOffering", "catalog.manage", shapes.PlatformOffering)
    def post(self, asked: Asked, sku: str) -> Offering:
        """Take an offering off sale; services that exist go on."""
        return services.retire_offering(sku=sku, actor=asked.user)


class PriceBooks(Endpoint):
    """Lists and contracts."""

    @lists(
        "listPriceBooks",
        "catalog.view",
        shapes.PriceBookSerializer,
        query=shapes.PriceBookFilters,
        order=("-id",),
    )
    def get(self, asked: Asked) -> QuerySet[PriceBook]:
        """List price books, newest first."""
        return selectors.price_books().filter(**asked.query)

    @acts(
        "savePriceBook",
        "price.manage",
        shapes.PriceBookSerializer,
        body=shapes.NewPriceBook,
        status=201,
    )
    def post(self, asked: Asked) -> PriceBook:
        """Make a price book, or rename the one of that code."""
        return services.save_price_book(actor=asked.user, **asked.body)


class PriceBookItem(Endpoint):
    """One list or contract."""

    @shows("showPriceBook", "catalog.view", shapes.PriceBookSerializer)
    def get(self, asked: Asked, book: UUID) -> PriceBook:
        """Show a price book."""
        return selectors.price_books().get(pk=book)


class Prices(Endpoint):
    """The versions of a book's prices."""

    @lists("listPrices", "catalog.view", shapes.PriceSerializer, query=shapes.PriceFilters)
    def get(self, asked: Asked, book: UUID) -> QuerySet[Price]:
        """List all versions of a book's prices, newest first."""
        found = selectors.price_books().get(pk=book)
        return selectors.list_prices(book=found).select_related("book").filter(**asked.query)

    @acts("setPrice", "price.manage", shapes.PriceSerializer, body=shapes.NewPrice, status=201)
    def post(self, asked: Asked, book: UUID) -> Price:
        """Set a price from an instant on; the running version ends there."""
        found = selectors.price_books().get(pk=book)
        return services.set_price(book=found, actor=asked.user, **asked.body)


class Contracts(Endpoint):
    """What was agreed with tenants."""

    @lists(
        "listContracts",
        "catalog.view",
        shapes.ContractSerializer,
        query=shapes.ContractFilters,
        order=("-effective_from", "-id"),
    )
    def get(self, asked: Asked) -> QuerySet[Contract]:
        """List every version of every contract, newest first."""
        return selectors.contracts().filter(**asked.query)

    @acts(
        "signContract",
        "price.manage",
        shapes.ContractSerializer,
        body=shapes.NewContract,
        status=201,
    )
    def post(self, asked: Asked) -> Contract:
        """Agree terms with a tenant from an instant on."""
        body = dict(asked.body)
        return services.sign_contract(
            tenant=tenants().get(pk=body.pop("tenant")),
            code=body.pop("code"),
            effective_from=body.pop("effective_from"),
            effective_to=body.pop("effective_to", None),
            terms=services.Terms(**body),
            actor=asked.user,
        )


class ContractChanging(Endpoint):
    """New terms of a contract."""

    @acts(
        "changeContract",
        "price.manage",
        shapes.ContractSerializer,
        body=shapes.ContractChange,
        status=201,
    )
    def post(self, asked: Asked, code: str) -> Contract:
        """Let other terms hold from an instant on; the version in force ends there."""
        body = dict(asked.body)
        return services.change_contract(code=code, at=body.pop("at"), terms=body, actor=asked.user)


class ContractEnding(Endpoint):
    """The end of a contract."""

    @acts("endContract", "price.manage", shapes.ContractSerializer, body=shapes.ContractEnd)
    def post(self, asked: Asked, code: str) -> Contract:
        """End a contract at an instant still to come."""
        return services.end_contract(code=code, actor=asked.user, **asked.body)


class CatalogImport(Endpoint):
    """The catalog from a file."""

    @acts("importCatalog", "catalog.manage", ImportReportSerializer, body=shapes.CatalogText)
    def post(self, asked: Asked) -> Any:
        """Import GPU models, images, offerings and prices from YAML: all of it or nothing."""
        return services.import_catalog(actor=asked.user, **asked.body)


class CatalogFile(Endpoint):
    """The catalog as a file."""

    @shows("exportCatalog", "catalog.view", shapes.CatalogExport)
    def get(self, asked: Asked) -> dict[str, str]:
        """Show the catalog as YAML that can be imported again."""
        return {"text": services.export_catalog()}
