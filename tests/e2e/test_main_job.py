"""The main job, in browsers: from an order to an exact invoice, by three people."""

import csv
import io
import re
from datetime import UTC, datetime
from decimal import ROUND_HALF_UP, Decimal
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect
from psycopg.rows import dict_row

from tests.e2e.person import LIVE
from tests.integration.provisioning.world import KEY

pytestmark = [pytest.mark.browser, pytest.mark.ironic, pytest.mark.slow]
SKU, CLASS, GPUS = "bm.h200.8x", "gpu.h200.8x", 8
NAME = "train-1"


def test_an_order_becomes_a_server_and_an_invoice_before_the_eyes_of_three_people(
    three_people, own_database
):
    owner, operator, finance = (three_people[name] for name in ("owner", "operator", "finance"))

    the_operator_puts_the_site_on_sale(operator)
    the_owner_adds_a_key(owner)
    the_owner_orders(owner)
    the_owner_watches_it_become_active(owner)
    the_owner_terminates(owner)
    used = the_service(own_database)
    the_operator_reads_what_happened(operator, used)
    invoice = finance_invoices(finance)
    the_number_is_right_and_everywhere_the_same(owner, finance, invoice, used)
    all_read_korean(owner, operator, finance)

    for person in three_people.values():
        assert person.troubles == []


def the_operator_puts_the_site_on_sale(operator):
    operator.sign_in()
    operator.look()
    operator.go("/sites/")
    operator.follow("Lab")
    operator.press("Ask it now")
    operator.heading("What the site said")
    operator.reads("On for every node")
    expect(operator.main).not_to_contain_text("not good")
    operator.follow("Lab")
    operator.press("Compare its nodes")
    operator.reads("Nothing was changed.")
    operator.go("/nodes/")
    expect(operator.main.get_by_role("link", name=re.compile("gpu-h200"))).to_have_count(0)

    operator.go("/sites/")
    operator.follow("Lab")
    operator.press("Compare its nodes")
    operator.press("Import")
    operator.reads("What the import did.")
    operator.follow("Lab")
    operator.press("Resume")
    operator.dialog().get_by_label("Reason").fill("the nodes are in")
    operator.dialog().get_by_role("button", name="Resume").click()
    expect(operator.page.get_by_role("button", name="Pause")).to_be_visible()

    operator.go("/capacity/")
    row = operator.main.get_by_role("row").filter(has=operator.page.get_by_text(CLASS, exact=True))
    expect(row.get_by_role("cell", name="8", exact=True).first).to_be_visible()


def the_owner_adds_a_key(owner):
    owner.sign_in()
    owner.look()
    owner.go("/ssh-keys/")
    owner.page.get_by_label("Name").fill("laptop")
    owner.page.get_by_label("Public key").fill(KEY)
    owner.press("Add")
    expect(owner.page.get_by_role("cell", name="laptop SHA256")).to_be_visible()


def the_owner_orders(owner):
    owner.go("/catalog/")
    owner.reads("8 free now")
    owner.look()
    owner.page.locator(f"a.btn[href$='/catalog/{SKU}/']").click()
    owner.press("Show the terms")
    owner.heading("Confirm the order")
    owner.reads("₩5,425")
    owner.page.get_by_label("Name").fill(NAME)
    owner.press("Order with these terms")
    expect(owner.page).to_have_url(re.compile("/orders/"))


def the_owner_watches_it_become_active(owner):
    """Nobody reloads: the page tells by itself."""
    owner.stays()
    owner.reads("Step ")
    owner.look()
    owner.reads("Ready since", within=LIVE)
    owner.has_stayed()
    owner.follow(NAME)
    owner.heading(NAME)
    owner.reads("10.20.0.", "ssh ubuntu@", "GPU count")
    owner.look()


def the_owner_terminates(owner):
    owner.press("Terminate")
    dialog = owner.dialog()
    typed = dialog.get_by_label("to confirm")
    typed.fill("another-name")
    expect(dialog.get_by_role("button", name="Terminate")).to_be_disabled()
    typed.fill(NAME)
    dialog.get_by_role("button", name="Terminate").click()
    owner.reads(re.compile("Terminating|Terminated"))
    owner.stays()
    owner.reads("Terminated", within=LIVE)
    owner.has_stayed()


def the_operator_reads_what_happened(operator, used):
    operator.go("/runs/")
    operator.main.get_by_role("row").last.get_by_role("link").first.click()
    operator.heading(NAME)
    operator.reads("GPU count", "as agreed", "the server called home", "succeeded")
    operator.look()
    operator.go(f"/nodes/?text={used['node_name']}")
    operator.follow(used["node_name"])
    operator.heading(used["node_name"])
    expect(operator.page.locator(".neo-heading")).to_contain_text("Available")
    operator.reads("simulated", "the steps ran, but no disk was erased", "success")


def finance_invoices(finance):
    """Issue this month's final invoice; gives the file of its lines."""
    finance.sign_in()
    finance.look()
    month = datetime.now(UTC).astimezone(ZoneInfo("Asia/Seoul")).strftime("%Y-%m")
    finance.go(f"/finance/month-close/?period={month}")
    finance.press("Draft the final invoice")
    finance.reads("Draft")
    finance.look()
    finance.press("Issue")
    finance.dialog().get_by_role("button", name="Issue").click()
    finance.heading("INV-")
    finance.look()
    file = download(finance, "Lines")
    finance.follow("Explain")
    finance.heading("Why")
    finance.reads("user-ready, proven", f"× {GPUS}")
    return file


def download(person, name):
    with person.page.expect_download() as got:
        person.page.get_by_role("link", name=name).first.click()
    return got.value.path().read_bytes()


def the_service(own_database):
    """The one service and the list price of its GPU-hour, as the database has them."""
    with own_database.connect("neo_owner") as owner:
        cursor = owner.cursor(row_factory=dict_row)
        (found,) = cursor.execute(
            "SELECT s.node_name, s.ready_at, s.ended_at, p.amount AS price"
            " FROM t_acme.orders_service s"
            " JOIN catalog_price p ON p.sku = s.sku JOIN catalog_pricebook b ON b.id = p.book_id"
            " WHERE b.currency = 'KRW'"
        ).fetchall()
    return found


def the_number_is_right_and_everywhere_the_same(owner, finance, file, used):
    seconds = int((used["ended_at"] - used["ready_at"]).total_seconds())
    exact = Decimal(seconds * GPUS) * used["price"] / 3600
    amount = exact.quantize(Decimal(1), ROUND_HALF_UP)
    assert amount > 0

    assert file.startswith(b"\xef\xbb\xbf")
    assert file.count(b"\r\n") == file.count(b"\n") == 2
    (row,) = csv.DictReader(io.StringIO(file.decode("utf-8-sig"), newline=""))
    assert row["amount"] == str(amount)
    assert row["gpu_seconds"] == str(seconds * GPUS)

    shown = re.compile(rf"₩{amount:,}(?![\d,])")
    owner.go("/costs/")
    owner.look()
    owner.reads(shown)
    owner.go("/invoices/")
    owner.follow(re.compile("INV-"))
    owner.heading("INV-")
    owner.reads(shown)
    owner.look()
    assert download(owner, "Lines (CSV)") == file
    finance.go("/finance/")
    finance.reads(shown)


def all_read_korean(owner, operator, finance):
    for person, word in ((owner, "카탈로그"), (operator, "사이트"), (finance, "청구서")):
        person.go("/" if person is not finance else "/finance/")
        person.page.locator("header summary, header [data-bs-toggle=dropdown]").last.click()
        person.press("한국어")
        expect(person.page.get_by_role("navigation").first).to_contain_text(word)
        person.fits()
