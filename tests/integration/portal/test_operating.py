"""What a customer asks of a running server on its page."""

import pytest
from django.urls import reverse

from apps.accounts.roles import Role
from apps.orders.models import Service
from apps.provisioning.models import Run
from tests.integration.portal.shop import an_order_of, make_ready
from tests.people import a_browser, a_person


@pytest.fixture
def service(shop):
    made = Service.objects.get(order=an_order_of(shop))
    make_ready(made)
    made.refresh_from_db()
    return made


def url(name, *args):
    return reverse(f"portal:{name}", args=args, urlconf="neocloud.urls_tenant")


def page_of(browser, service):
    return browser.get(url("service_detail", service.pk)).content.decode()


def operate(browser, service, verb, **data):
    return browser.post(url("service_operate", service.pk, verb), data)


def test_the_page_offers_what_fits_the_state(browser, service):
    page = page_of(browser, service)

    for label in ("Power off", "Reboot", "Power cycle", "Reinstall", "Rescue system"):
        assert f">{label}</button>" in page
    assert 'data-opens="operate-power_on"' not in page
    assert "allocated time stays charged" in page


def test_a_reboot_begins_and_shows_how_far_it_is(browser, service):
    answer = operate(browser, service, "reboot", reason="hangs")

    assert answer.status_code == 302
    run = Run.objects.get(service=service.pk, blueprint="bare_metal_reboot")
    page = page_of(browser, service)
    assert "Rebooting" in page
    assert "Switch off" in page
    assert 'data-opens="operate-reboot"' not in page
    assert run.status == "forward"


def test_a_second_work_is_refused_in_words(browser, service):
    operate(browser, service, "reboot")
    answer = operate(browser, service, "power_off")

    assert answer.status_code == 409
    assert "is being worked on" in answer.content.decode()


def test_a_reinstallation_takes_image_and_keys(browser, service, shop):
    answer = operate(
        browser, service, "reinstall", image="ubuntu-24.04", ssh_key_ids=[str(shop.key.pk)]
    )

    assert answer.status_code == 302
    wanted = Run.objects.get(service=service.pk, blueprint="bare_metal_reinstall").wanted
    assert wanted["image"] == "ubuntu-24.04"
    assert wanted["ssh_keys"] == [shop.key.public_key]


@pytest.mark.parametrize("data", [{"image": "windows"}, {"ssh_key_ids": ["nonsense"]}])
def test_a_choice_that_does_not_exist_is_refused(browser, service, data):
    assert operate(browser, service, "reinstall", **data).status_code == 422
    assert not Run.objects.filter(service=service.pk, blueprint="bare_metal_reinstall").exists()


def test_the_rescue_system_wants_a_password(browser, service):
    assert operate(browser, service, "rescue", password="short").status_code == 422
    assert operate(browser, service, "rescue", password="a long password").status_code == 302


def test_name_and_tags_are_changed(browser, service):
    browser.post(url("service_rename", service.pk), {"name": "trainer-9"})
    browser.post(url("service_tags", service.pk), {"tags": "team=vision\n\nurgent\n"})

    service.refresh_from_db()
    assert (service.name, service.tags) == ("trainer-9", {"team": "vision", "urgent": ""})
    assert "team=vision, urgent" in page_of(browser, service)


def test_who_only_looks_sees_no_buttons_and_may_not(shop, service):
    browser = a_browser(user=a_person(Role.VIEWER, email="viewer@acme.test"))

    page = page_of(browser, service)

    assert "operate-reboot" not in page
    assert operate(browser, service, "reboot").status_code == 403


def test_staffs_own_verbs_are_not_the_customers(browser, service):
    assert operate(browser, service, "replace_host").status_code == 404
    assert operate(browser, service, "make").status_code == 404
