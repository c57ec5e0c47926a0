"""Long lists: no row twice, none missing, while others are added."""

from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from apps.core.uuids import uuid7
from apps.invoicing.models import InvoiceProjection
from tests.integration.api.program import Program

ISSUED = datetime(2026, 4, 1, tzinfo=UTC)


def some_invoices(count: int) -> set[str]:
    """Invoices that all carry the same instant; their ids."""
    made = InvoiceProjection.objects.bulk_create(
        InvoiceProjection(
            document=uuid7(),
            tenant=uuid7(),
            kind="invoice",
            status="issued",
            number=f"INV-2026-{number:06d}",
            period="2026-03",
            currency="KRW",
            subtotal=1,
            tax=0,
            total=1,
            issued_at=ISSUED,
            created_at=ISSUED,
        )
        for number in range(count)
    )
    return {str(one.document) for one in made}


def following(page: dict[str, Any]) -> dict[str, str]:
    """The parameters of the next page."""
    return dict(parse_qsl(urlsplit(page["next"]).query))


def test_250_invoices_of_one_instant_come_on_three_pages_once_each(console: Program) -> None:
    wanted = some_invoices(250)

    pages = [console.get("invoices", limit=100)]
    while pages[-1]["next"]:
        pages.append(console.get("invoices", **following(pages[-1])))

    seen = [row["id"] for page in pages for row in page["items"]]
    assert [len(page["items"]) for page in pages] == [100, 100, 50]
    assert len(seen) == len(set(seen)) == 250
    assert set(seen) == wanted


def test_an_invoice_added_between_two_pages_hides_none(console: Program) -> None:
    wanted = some_invoices(250)

    pages = [console.get("invoices", limit=100)]
    some_invoices(1)
    while pages[-1]["next"]:
        pages.append(console.get("invoices", **following(pages[-1])))

    seen = [row["id"] for page in pages for row in page["items"]]
    assert len(seen) == len(set(seen))
    assert wanted <= set(seen)


def test_the_next_page_keeps_the_conditions(console: Program) -> None:
    some_invoices(3)

    page = console.get("invoices", limit=2, currency="KRW")

    assert following(page)["currency"] == "KRW"
    assert following(page)["limit"] == "2"


@pytest.mark.parametrize("limit", ["0", "201", "many"])
def test_a_page_has_1_to_200_rows(console: Program, limit: str) -> None:
    problem = console.refused("GET", f"invoices?limit={limit}", status=422)

    assert problem["field"] == "limit"
