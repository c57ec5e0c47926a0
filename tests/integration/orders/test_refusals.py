"""Bad input: an error that names field, rule and way out; nothing is changed."""

from datetime import timedelta

import pytest

from apps.accounts.models import SSHKey
from apps.core import clock
from apps.core.errors import AppError
from apps.core.uuids import uuid7
from apps.inventory.models import Site
from apps.orders import services as orders
from apps.orders.models import Quote, TenantLimit
from apps.tenancy.context import platform_context, tenant_context
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world

pytestmark = pytest.mark.django_db


@pytest.fixture
def person(site, acme):
    builders.a_project("training")
    return builders.a_person()


def a_quote(person, **choices):
    asked = {"offering_sku": "bm.h200.8x", "site_code": world.SITE, "quantity": 1} | choices
    return orders.make_quote(actor=person, **asked)


def an_order(person, **choices):
    quote = choices.pop("quote", None) or a_quote(person)
    asked = {
        "quote_id": quote.pk,
        "project_id": world.Project.objects.get().pk,
        "name": "train",
        "ssh_public_keys": [world.KEY],
    }
    return orders.place_order(actor=person, **(asked | choices))


def refused(act, *, field, says, code=None):
    """The act is refused with that field and those words, and leaves nothing behind."""
    before = ledger.rows()
    with pytest.raises(AppError) as caught:
        act()
    assert ledger.rows() == before
    assert caught.value.field == field
    for word in says:
        assert word in caught.value.detail
    assert "{" not in caught.value.detail
    if code:
        assert caught.value.code == code
    return caught.value


@pytest.mark.parametrize(
    ("wish", "field", "says"),
    [
        ({"offering_sku": "bm.b300.8x"}, "offering", ["bm.b300.8x", "bm.h200.8x"]),
        ({"offering_sku": ""}, "offering", ["bm.h200.8x"]),
        ({"quantity": 0}, "quantity", ["whole number from 1", "you asked for 0"]),
        ({"quantity": -1}, "quantity", ["whole number from 1", "-1"]),
        ({"quantity": 1_000_000}, "quantity", ["whole number from 1", "1000000"]),
        ({"currency": "USD"}, "currency", ["KRW", "USD"]),
        ({"site_code": "busan"}, "site", ["busan", world.SITE]),
    ],
)
def test_a_quote_for_something_impossible_names_the_field_and_the_way_out(
    person, wish, field, says
):
    refused(lambda: a_quote(person, **wish), field=field, says=says)


@pytest.mark.parametrize("column", [{"status": "paused"}, {"failing_since": "an hour ago"}])
def test_a_site_that_is_paused_or_silent_sells_nothing(person, column):
    if "failing_since" in column:
        column = {"failing_since": clock.now() - timedelta(hours=1)}
    quote = a_quote(person)
    Site.objects.update(**column)

    refused(lambda: a_quote(person), field="site", says=[world.SITE, "hoose"])
    refused(lambda: an_order(person, quote=quote), field="site", says=[world.SITE])


def test_a_site_that_missed_one_answer_still_sells(person):
    Site.objects.update(failing_since=clock.now() - timedelta(seconds=5))

    assert an_order(person).status == "accepted"


@pytest.mark.parametrize(
    ("wish", "field", "says"),
    [
        ({"ssh_public_keys": ["ssh-ed25519 not-a-key"]}, "ssh_public_keys", ["damaged"]),
        ({"ssh_public_keys": ["  "]}, "ssh_keys", ["at least one SSH public key"]),
        ({"ssh_public_keys": []}, "ssh_keys", ["at least one SSH public key"]),
        ({"ssh_key_ids": [uuid7()]}, "ssh_keys", ["does not exist"]),
        ({"name": ""}, "name", ["1 to 60 letters"]),
        ({"name": "9lives"}, "name", ["9lives"]),
        ({"name": "ends-"}, "name", ["ends-"]),
        ({"name": "new\nline"}, "name", ["letters, digits and hyphens"]),
        ({"name": "n" * 61}, "name", ["1 to 60"]),
        ({"image_code": "windows-95"}, "image", ["windows-95", "ubuntu-24.04"]),
        ({"project_id": uuid7()}, "project", ["training"]),
        ({"if_unavailable": "beg"}, "if_unavailable", ["fail, queue", "beg"]),
        ({"quote_id": uuid7()}, "quote", []),
    ],
)
def test_an_order_that_breaks_a_rule_names_the_field_and_changes_nothing(person, wish, field, says):
    a_quote(person)  # counted before
    quote = a_quote(person)

    error = refused(
        lambda: an_order(person, **({"quote": quote} | wish)),
        field=field,
        says=says,
    )
    assert error.status in (404, 409, 422)


def test_an_expired_quote_is_refused_with_its_instant(person):
    quote = a_quote(person)
    Quote.objects.update(valid_until=clock.now() - timedelta(seconds=1))

    refused(
        lambda: an_order(person, quote=quote),
        field="quote",
        says=["valid until", "Ask for a new quote"],
        code="quote_expired",
    )


def test_what_belongs_to_another_tenant_does_not_exist(person, globex):
    order = an_order(person)
    service = world.the_service(order)
    quote = a_quote(person)
    key = SSHKey.objects.create(
        user=person, name="mine", public_key=world.KEY, fingerprint="SHA256:x"
    )
    project = world.Project.objects.get()
    with tenant_context(globex):
        other = builders.a_person()
        mine = builders.a_project("theirs")
        with platform_context():
            book = builders.a_price_book(currency="USD")
            builders.a_price(3, sku="bm.h200.8x", book=book)
        own = a_quote(other)
        wishes = (
            {"quote_id": quote.pk, "project_id": mine.pk},
            {"project_id": project.pk, "quote": own},
            {"ssh_key_ids": [key.pk], "project_id": mine.pk, "quote": own},
        )
        for wish in wishes:
            before = ledger.rows()
            with pytest.raises(AppError) as caught:
                an_order(other, **({"quote": own} | wish))
            assert caught.value.code in ("quote_not_found", "unknown_project", "unknown_ssh_key")
            assert ledger.rows() == before
        for act in (
            lambda: orders.cancel_order(order_id=order.pk, actor=other),
            lambda: orders.terminate_service(service_id=service.pk, actor=other),
            lambda: orders.protect_service(service_id=service.pk, is_protected=True, actor=other),
            lambda: orders.set_project_limit(project_id=project.pk, max_gpus=8, actor=other),
        ):
            with pytest.raises(AppError) as caught:
                act()
            assert caught.value.code == "not_found"
    assert world.the_service(order).state == "provisioning"


@pytest.mark.parametrize(
    ("columns", "code", "says"),
    [
        ({"max_gpus": 7}, "quota_exceeded", ["limit of your organisation is 7", "0 are in use"]),
        ({"max_services": 0}, "too_many_services", ["limit is 0 services", "0 exist"]),
    ],
)
def test_a_quota_that_would_be_passed_is_refused_with_its_figures(person, columns, code, says):
    quote = a_quote(person)
    orders.ensure_tenant_limit(tenant=_tenant())
    TenantLimit.objects.filter(tenant=_tenant()).update(**columns)

    refused(lambda: an_order(person, quote=quote), field="quantity", says=says, code=code)


def _tenant():
    from apps.core.realms import current_tenant_id

    return current_tenant_id()


def test_a_projects_share_is_counted_by_itself(person):
    an_order(person, name="first")
    quote = a_quote(person)
    project = world.Project.objects.get()
    orders.set_project_limit(project_id=project.pk, max_gpus=15, actor=person)

    refused(
        lambda: an_order(person, quote=quote),
        field="quantity",
        says=["training is 15 GPUs", "8 are in use", "8 more"],
    )

    orders.set_project_limit(project_id=project.pk, max_gpus=16, actor=person)
    assert an_order(person, quote=quote).status == "accepted"


def test_a_limit_out_of_range_names_its_own_field(person):
    with platform_context():
        operator = builders.a_person(role="operator")
        for field in ("max_gpus", "max_services"):
            asked = {"max_gpus": 8, "max_services": 8, field: -1}
            with pytest.raises(AppError) as caught:
                orders.set_tenant_limit(tenant=uuid7(), actor=operator, **asked)
            assert caught.value.field == field


def test_no_free_server_is_refused_with_what_is_free(person):
    quote = a_quote(person, quantity=3)

    refused(
        lambda: an_order(person, quote=quote),
        field="quantity",
        says=["Only 2 free", "you asked for 3", "queue"],
        code="out_of_capacity",
    )
