"""Approvals, starts and ends as people meet them on the portal's pages."""

from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from django.urls import reverse

from apps.accounts.models import User
from apps.accounts.roles import Role
from apps.core import clock
from apps.orders import services as orders
from apps.orders.models import Approval, Order, Quote, Service
from apps.orders.selectors import order_policy
from tests.integration.portal.shop import SKU, Shop, an_order_of, make_ready
from tests.people import Browser, a_browser, a_person

SEOUL = ZoneInfo("Asia/Seoul")
DAY = timedelta(days=1)


def url(name: str, *args: Any) -> str:
    return reverse(f"portal:{name}", args=args, urlconf="neocloud.urls_tenant")


@pytest.fixture
def member(shop: Shop) -> User:
    """Somebody whose orders need approval."""
    orders.set_order_policy(
        approval_from_gpus=8, approval_hours=72, longest_days=None, actor=shop.owner
    )
    return a_person(Role.MEMBER, name="Max Member")


def an_asked_order(shop: Shop, member: User, name: str = "train") -> Order:
    quote = orders.make_quote(actor=member, offering_sku=SKU, site_code=shop.site.code, quantity=1)
    return orders.place_order(
        actor=member,
        quote_id=quote.pk,
        project_id=shop.project.pk,
        name=name,
        ssh_key_ids=[shop.key.pk],
    )


def local(instant: Any) -> str:
    """An instant as the browser's field sends it."""
    return str(instant.astimezone(SEOUL).strftime("%Y-%m-%dT%H:%M"))


def test_a_member_is_told_before_ordering_that_somebody_has_to_agree(shop: Shop, member: User):
    hers = a_browser(user=member)
    answer = hers.post(url("quote", SKU), {"site": shop.site.code, "quantity": 1})
    page = hers.get(answer["Location"])
    assert "has to agree first" in page.text
    form = {
        "project": str(shop.project.pk), "name": "train", "image": "ubuntu-24.04",
        "pasted": shop.key.public_key, "if_unavailable": "fail",
    }  # fmt: skip
    placed = hers.post(url("place", Quote.objects.get().pk), form, follow=True)
    assert "waits for approval" in placed.text
    assert "Waiting for approval" in placed.text
    assert "Max Member" in placed.text
    assert 'data-opens="approve"' not in placed.text


def test_an_approver_answers_on_the_orders_page(shop: Shop, member: User, browser: Browser):
    order = an_asked_order(shop, member)
    page = browser.get(url("order_detail", order.pk))
    assert 'data-opens="approve"' in page.text
    approval = Approval.objects.get()
    answer = browser.post(
        url("approval_approve", approval.pk), {"reason": "for the paper", "from": "order"}
    )
    assert answer["Location"] == url("order_detail", order.pk)
    page = browser.get(url("order_detail", order.pk))
    assert "for the paper" in page.text
    assert shop.owner.name in page.text
    assert 'data-opens="approve"' not in page.text


def test_the_page_of_approvals_lists_what_waits_and_what_was_answered(
    shop: Shop, member: User, browser: Browser, asks_at_most: Any
):
    first, second = an_asked_order(shop, member), an_asked_order(shop, member, "second")
    refusal = {"reason": "too expensive"}
    browser.post(url("approval_refuse", first.approval.pk), refusal)
    with asks_at_most(14):
        page = browser.get(url("approvals"))
    assert page.text.index(second.number) < page.text.index(first.number)
    assert "too expensive" in page.text
    refused = browser.post(url("approval_refuse", second.approval.pk), {"reason": ""})
    assert refused.status_code == 422


def test_the_policy_is_changed_on_the_page(shop: Shop, browser: Browser):
    page = browser.get(url("approvals"))
    assert "Nothing waits for an answer" in page.text
    form = {"approval_from_gpus": "16", "approval_hours": "24", "longest_days": ""}
    assert browser.post(url("order_policy"), form).status_code == 302
    assert (order_policy().approval_from_gpus, order_policy().longest_days) == (16, None)
    assert browser.post(url("order_policy"), form | {"approval_hours": "0"}).status_code == 422
    assert "from 16 GPUs on" in browser.get(url("approvals")).text


def test_start_and_end_are_chosen_with_the_terms_and_read_in_the_tenants_zone(
    shop: Shop, browser: Browser
):
    start = (clock.now() + DAY).replace(second=0, microsecond=0)
    form = {"site": shop.site.code, "quantity": 1,
            "starts_at": local(start), "ends_at": local(start + DAY)}  # fmt: skip
    answer = browser.post(url("quote", SKU), form)
    quote = Quote.objects.get()
    assert (quote.starts_at, quote.ends_at) == (start, start + DAY)
    page = browser.get(answer["Location"])
    assert start.astimezone(SEOUL).strftime("%Y-%m-%d %H:%M") in page.text
    refused = browser.post(url("quote", SKU), form | {"ends_at": local(start - DAY)})
    assert refused.status_code == 422


def test_a_scheduled_order_says_so_and_can_be_moved(shop: Shop, browser: Browser):
    start = (clock.now() + DAY).replace(second=0, microsecond=0)
    quote = orders.make_quote(
        actor=shop.owner, offering_sku=SKU, site_code=shop.site.code, quantity=1, starts_at=start
    )
    order = orders.place_order(
        actor=shop.owner, quote_id=quote.pk, project_id=shop.project.pk, name="later",
        ssh_key_ids=[shop.key.pk],
    )  # fmt: skip
    page = browser.get(url("order_detail", order.pk))
    assert "Scheduled" in page.text
    assert "holds no server" in page.text
    assert "Scheduled" in browser.get(url("order_list")).text
    later = start + DAY
    form = {"starts_at": local(later), "ends_at": ""}
    browser.post(url("order_schedule", order.pk), form)
    assert Order.objects.get().starts_at == later


def test_the_end_of_a_service_is_changed_on_its_page(shop: Shop, browser: Browser):
    service = make_ready(Service.objects.get(order=an_order_of(shop)))
    end = (clock.now() + 2 * DAY).replace(second=0, microsecond=0)
    answer = browser.post(url("service_end", service.pk), {"ends_at": local(end)})
    assert answer.status_code == 302
    assert Service.objects.get().ends_at == end
    page = browser.get(url("service_detail", service.pk))
    assert end.astimezone(SEOUL).strftime("%Y-%m-%d %H:%M") in page.text
    assert f'value="{local(end)}"' in page.text
