"""The main job, in browsers: from an order to an exact invoice, by three people."""

import csv
import io
import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect
from psycopg.rows import dict_row

from tests.integration.provisioning.ironic.product import SKU
from tests.integration.provisioning.world import KEY

pytestmark = [pytest.mark.browser, pytest.mark.ironic, pytest.mark.slow]
LIVE = 60_000  # milliseconds a page may take to show, by itself, what has happened
NAME = "train-1"


def test_an_order_becomes_a_server_and_an_invoice_before_the_eyes_of_three_people(
    three_people, own_database, tmp_path
):
    owner, operator, finance = (three_people[name] for name in ("owner", "operator", "finance"))

    the_operator_sees_what_can_be_sold(operator)
    the_owner_adds_a_key(owner)
    the_owner_orders(owner)
    the_owner_watches_it_become_active(owner)
    the_owner_terminates(owner)
    the_operator_reads_what_happened(operator, the_service(own_database)["node_name"])
    file = finance_invoices(finance, tmp_path)
    the_same_number_everywhere(owner, finance, file, the_service(own_database))
    the_owner_changes_to_korean(owner)

    for person in three_people.values():
        assert person.troubles == []


def the_operator_sees_what_can_be_sold(operator):
    page = operator.page
    operator.look()
    operator.go("/capacity/")
    expect(page.get_by_role("cell", name=re.compile("gpu.h100.8x")).first).to_be_visible()
    operator.go("/sites/")
    page.get_by_role("link", name="Lab").first.click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Lab")


def the_owner_adds_a_key(owner):
    page = owner.page
    owner.look()
    owner.go("/ssh-keys/")
    page.get_by_label("Name").fill("laptop")
    page.get_by_label("Public key").fill(KEY)
    page.get_by_role("button", name="Add").click()
    expect(page.get_by_role("cell", name="laptop SHA256")).to_be_visible()


def the_owner_orders(owner):
    page = owner.page
    owner.go("/catalog/")
    owner.look()
    owner.go(f"/catalog/{SKU}/")
    page.get_by_role("button", name="Show the terms").click()
    expect(page.get_by_text("per GPU-hour").first).to_be_visible()
    page.get_by_label("Name").fill(NAME)
    page.get_by_role("button", name="Order with these terms").click()
    expect(page).to_have_url(re.compile("/orders/"))


def the_owner_watches_it_become_active(owner):
    """Nobody reloads: the page tells by itself."""
    page = owner.page
    owner.look()
    expect(page.locator("main")).to_contain_text("Active", timeout=LIVE)
    page.get_by_role("link", name=NAME).first.click()
    expect(page.locator("main")).to_contain_text("10.20.0.")
    expect(page.locator("main")).to_contain_text("GPU count")
    owner.look()


def the_owner_terminates(owner):
    page = owner.page
    page.get_by_role("button", name="Terminate").click()
    dialog = page.locator("dialog[open]")
    dialog.get_by_role("textbox").last.fill("another-name")
    expect(dialog.get_by_role("button", name="Terminate")).to_be_disabled()
    dialog.get_by_role("textbox").last.fill(NAME)
    dialog.get_by_role("button", name="Terminate").click()
    expect(page.locator("main")).to_contain_text("Terminated", timeout=LIVE)


def the_operator_reads_what_happened(operator, node):
    page = operator.page
    operator.go("/runs/")
    page.locator("main table tbody tr").last.get_by_role("link").first.click()
    expect(page.locator("main")).to_contain_text("GPU count")
    expect(page.locator("main")).to_contain_text("the server called home")
    operator.look()
    operator.go("/nodes/?text=" + node)
    page.get_by_role("link", name=node).first.click()
    expect(page.locator("main")).to_contain_text("Available")
    expect(page.locator("main")).to_contain_text("simulated")


def finance_invoices(finance, folder) -> Path:
    page = finance.page
    finance.look()
    month = datetime.now(UTC).astimezone(ZoneInfo("Asia/Seoul")).strftime("%Y-%m")
    finance.go(f"/finance/month-close/?period={month}")
    page.get_by_role("button", name="Draft the final invoice").click()
    expect(page.locator("main")).to_contain_text("Draft")
    finance.look()
    page.get_by_role("button", name="Issue", exact=True).first.click()
    page.locator("dialog[open]").get_by_role("button", name="Issue").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("INV-")
    with page.expect_download() as download:
        page.get_by_role("link", name="Lines").click()
    file = folder / "lines.csv"
    download.value.save_as(file)
    page.get_by_role("link", name="Explain").first.click()
    expect(page.locator("main")).to_contain_text("user-ready, proven")
    return file


def the_service(own_database):
    """The one service and the price of its GPU-hour, as the database has them."""
    with own_database.connect("neo_owner") as owner:
        cursor = owner.cursor(row_factory=dict_row)
        return cursor.execute(
            "SELECT s.node_name, s.ready_at, s.ended_at, p.amount FROM t_acme.orders_service s"
            " JOIN catalog_price p ON p.sku = s.sku JOIN catalog_pricebook b ON b.id = p.book_id"
            " WHERE b.currency = 'KRW'"
        ).fetchone()


def the_same_number_everywhere(owner, finance, file, service):
    seconds = int((service["ended_at"] - service["ready_at"]).total_seconds())
    amount = (Decimal(seconds * 8) * service["amount"] / 3600).quantize(Decimal(1), ROUND_HALF_UP)

    raw = file.read_bytes()
    assert raw.startswith(b"\xef\xbb\xbf")
    assert b"\r\n" in raw
    (row,) = csv.DictReader(io.StringIO(raw.decode("utf-8-sig")))
    assert row["amount"] == str(amount)
    assert row["gpu_seconds"] == str(seconds * 8)
    shown = f"₩{amount:,}"
    owner.go("/costs/")
    owner.look()
    expect(owner.page.locator("main")).to_contain_text(shown)
    owner.go("/invoices/")
    owner.page.get_by_role("link", name=re.compile("INV-")).first.click()
    expect(owner.page.locator("main")).to_contain_text(shown)
    owner.look()
    finance.go("/finance/")
    expect(finance.page.locator("main")).to_contain_text(shown)


def the_owner_changes_to_korean(owner):
    page = owner.page
    owner.go("/")
    page.locator("header summary, header [data-bs-toggle=dropdown]").last.click()
    page.get_by_role("button", name="한국어").click()
    expect(page.locator("nav").first).to_contain_text("카탈로그")
