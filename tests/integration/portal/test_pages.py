"""Every page opens, says what it should, and asks the database a bounded number of times."""

from datetime import timedelta
from typing import Any

import pytest
from django.urls import reverse

from apps.catalog import services as catalog
from apps.catalog.models import Offering
from apps.core import clock
from apps.orders import selectors as orders
from apps.tenancy.context import platform_context
from tests.integration.portal.shop import SKU, Shop, a_run_of, an_order_of, make_ready
from tests.people import Browser

PLAIN = (
    "home", "catalog", "order_list", "service_list", "costs", "invoice_list", "members",
    "projects", "ssh_keys", "access_keys", "quotas", "audit", "notices",
)  # fmt: skip
MOST_QUERIES = 14


def url(name: str, *args: Any) -> str:
    return reverse(f"portal:{name}", args=args, urlconf="neocloud.urls_tenant")


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_opens_while_everything_is_empty(name: str, browser: Browser, asks_at_most: Any):
    with asks_at_most(MOST_QUERIES):
        page = browser.get(url(name))
    assert page.status_code == 200
    assert "<h1" in page.text


@pytest.mark.parametrize("name", PLAIN)
def test_a_page_asks_no_more_often_when_it_is_full(
    name: str, shop: Shop, browser: Browser, asks_at_most: Any
):
    for service in orders.services_of_order(an_order_of(shop, quantity=3).pk):
        a_run_of(service)
    with asks_at_most(MOST_QUERIES):
        page = browser.get(url(name))
    assert page.status_code == 200


def test_no_page_holds_inline_scripts_or_styles(shop: Shop, browser: Browser):
    an_order_of(shop)
    for name in PLAIN:
        page = browser.get(url(name))
        for forbidden in ("style=", "<style", "onclick", "hx-on", "<script>"):
            assert forbidden not in page.text, name
        assert "script-src 'self'" in page["Content-Security-Policy"]


def test_the_offering_page_shows_price_availability_and_what_is_charged_when(
    browser: Browser, asks_at_most: Any
):
    with asks_at_most(MOST_QUERIES):
        page = browser.get(url("offering", SKU))
    assert "₩4,000" in page.text  # a GPU-hour
    assert "₩32,000" in page.text  # an hour of the whole server
    assert "3 of 3 free" in page.text
    assert "unknown until 5 real runs exist" in page.text
    assert "What is charged when" in page.text


def test_a_price_that_will_rise_is_published_on_the_offerings_page(shop: Shop, browser: Browser):
    assert "The price changes" not in browser.get(url("offering", SKU)).text
    with platform_context():
        catalog.set_price(
            book=shop.book,
            sku=SKU,
            amount=5000,
            effective_from=clock.now_seconds() + timedelta(days=40),
            actor=None,
        )
    page = browser.get(url("offering", SKU)).text
    assert "The price changes" in page
    assert "₩5,000 per GPU-hour" in page


def test_an_order_goes_from_quote_to_a_page_with_its_progress(
    shop: Shop, browser: Browser, asks_at_most: Any
):
    # given a quote asked for on the offering's page
    asked = browser.post(url("quote", SKU), {"site": "seoul", "quantity": "2"})
    quote = browser.get(asked["Location"])
    for term in ("₩4,000", "₩64,000", "10 %", "KRW", "Allocated time", "Valid until"):
        assert term in quote.text
    # when it is confirmed
    fields = {
        "project": str(shop.project.pk),
        "name": "train",
        "image": "ubuntu-24.04",
        "ssh_keys": [str(shop.key.pk)],
        "if_unavailable": "fail",
    }
    placed = browser.post(asked["Location"] + "place/", fields)
    # then its page shows two servers, and the fragment the same
    order = orders.orders().get()
    assert placed["Location"] == url("order_detail", order.pk)
    for service in orders.services_of_order(order.pk):
        a_run_of(service)
    with asks_at_most(MOST_QUERIES):
        page = browser.get(placed["Location"])
    assert page.text.count("<progress") == 2
    assert "<html" in page.text
    with asks_at_most(MOST_QUERIES):
        part = browser.get(placed["Location"], headers={"HX-Request": "true", "Neo-Live": "1"})
    assert part.text.count("<progress") == 2
    assert "Step 4 of" in part.text
    assert "<html" not in part.text
    assert "every 2s" in part.text


def test_a_live_part_answers_304_until_something_changes(shop: Shop, browser: Browser):
    order = an_order_of(shop)
    headers = {"HX-Request": "true", "Neo-Live": "1"}
    page = url("order_detail", order.pk)
    first = browser.get(page, headers=headers)
    again = browser.get(page, headers=headers | {"If-None-Match": first["ETag"]})
    assert (first.status_code, again.status_code) == (200, 304)
    make_ready(orders.services_of_order(order.pk)[0])
    changed = browser.get(page, headers=headers | {"If-None-Match": first["ETag"]})
    assert changed.status_code == 200
    assert "every 15s" in changed.text


def test_a_live_part_takes_the_buttons_of_the_head_along(shop: Shop, browser: Browser):
    order = an_order_of(shop)
    headers = {"HX-Request": "true", "Neo-Live": "1"}
    page = url("order_detail", order.pk)
    before = browser.get(page, headers=headers)
    assert 'data-opens="cancel"' in before.text
    make_ready(orders.services_of_order(order.pk)[0])
    after = browser.get(page, headers=headers)
    assert 'id="page-actions" hx-swap-oob="true"' in after.text
    assert 'data-opens="cancel"' not in after.text


def test_a_service_that_has_ended_takes_its_buttons_with_it(shop: Shop, browser: Browser):
    service = make_ready(orders.services_of_order(an_order_of(shop).pk)[0])
    headers = {"HX-Request": "true", "Neo-Live": "1"}
    page = url("service_detail", service.pk)
    assert 'data-opens="terminate"' in browser.get(page, headers=headers).text
    browser.post(url("service_terminate", service.pk), {"confirm_name": service.name})
    after = browser.get(page, headers=headers)
    assert 'id="page-actions" hx-swap-oob="true"' in after.text
    assert 'data-opens="terminate"' not in after.text


def test_korean_readers_find_korean_names_of_what_was_agreed(shop: Shop, browser: Browser):
    order = an_order_of(shop)
    service = orders.services_of_order(order.pk)[0]
    browser.cookies["neo_language"] = "ko"
    for page in (url("order_list"), url("order_detail", order.pk)):
        assert "H200 8장 서버 1대" in browser.get(page).text
    assert "H200 8장 서버" in browser.get(url("service_detail", service.pk)).text
    # what was agreed keeps its name once the offering has another one
    with platform_context():
        Offering.objects.filter(sku=SKU).update(name="Renamed", name_ko="새 이름")
    shown = browser.get(url("order_detail", order.pk)).text
    assert order.offering_name in shown
    assert "새 이름" not in shown


def test_a_live_part_stops_asking_once_the_order_is_over(shop: Shop, browser: Browser):
    order = an_order_of(shop, queue=True, quantity=3)
    waiting = an_order_of(shop, queue=True, name="later")
    page = url("order_detail", waiting.pk)
    assert "Place in the queue" in browser.get(page).text
    browser.post(url("order_cancel", waiting.pk), {"reason": "not needed"})
    part = browser.get(page, headers={"HX-Request": "true", "Neo-Live": "1"})
    assert part.status_code == 286
    assert "hx-trigger" not in part.text
    assert order.status == "accepted"


def test_the_service_page_shows_access_proof_and_history(
    shop: Shop, browser: Browser, asks_at_most: Any
):
    service = make_ready(orders.services_of_order(an_order_of(shop).pk)[0])
    with asks_at_most(MOST_QUERIES):
        page = browser.get(url("service_detail", service.pk))
    for shown in ("ssh ubuntu@10.20.0.10", "NVIDIA H200", "AAAAIBf3", "History of states"):
        assert shown in page.text


def test_a_service_being_terminated_does_not_show_the_work_that_once_made_it(
    shop: Shop, browser: Browser
):
    service = make_ready(orders.services_of_order(an_order_of(shop).pk)[0])
    browser.post(url("service_terminate", service.pk), {"confirm_name": service.name})
    for page in (browser.get(url("service_detail", service.pk)), browser.get(url("home"))):
        assert "Terminating" in page.text
        assert "Install the operating system" not in page.text


def test_terminating_needs_the_name_of_the_service(shop: Shop, browser: Browser):
    service = make_ready(orders.services_of_order(an_order_of(shop).pk)[0])
    wrong = browser.post(
        url("service_terminate", service.pk),
        {"confirm_name": "other"},
        headers={"HX-Request": "true"},
    )
    assert wrong.status_code == 422
    assert service.name in wrong.text
    assert wrong["HX-Retarget"] == "#toasts"
    right = browser.post(
        url("service_terminate", service.pk),
        {"confirm_name": service.name},
        headers={"HX-Request": "true"},
    )
    assert right["HX-Redirect"] == url("service_detail", service.pk)
    service.refresh_from_db()
    assert service.state == "deleting"


def test_the_token_of_an_access_key_is_shown_once(browser: Browser):
    made = browser.post(url("access_keys"), {"name": "pipeline", "days": "30"})
    assert "Copy the key now" in made.text
    assert "no-store" in made["Cache-Control"]
    assert "Copy the key now" not in browser.get(url("access_keys")).text
