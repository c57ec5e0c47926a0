"""Sites and their secrets, watch leases, addresses."""

from typing import Any
from uuid import uuid4

import pytest

from apps.audit.models import AuditEntry
from apps.core.errors import Invalid
from apps.core.machine import WrongStatus
from apps.core.models import Secret
from apps.inventory import services
from apps.inventory.errors import AddressesExhausted
from apps.inventory.models import AddressLease, AddressPool, Site
from apps.tenancy.context import platform_context, tenant_context
from tests.integration.inventory.builders import a_pool, a_site


def save(**columns: Any) -> Site:
    given = {
        "code": "seoul",
        "name": "Seoul",
        "endpoint": "https://ironic.example.com:6385",
        "username": "neo",
        "password": "hunter2 hunter2",
        "call_home_url": "https://console.example.com/call-home",
        "actor": None,
    }
    return services.save_site(**(given | columns))


def test_a_new_site_is_paused_and_its_password_sealed(platform: None) -> None:
    site = save()
    assert site.status == "paused"
    assert b"hunter2" not in bytes(Secret.objects.get().sealed)
    assert services.site_password(site) == "hunter2 hunter2"
    entry = AuditEntry.objects.get(action="site.added")
    assert "hunter2" not in str(entry.after)


def test_the_password_is_read_from_a_tenants_side_too(acme: Any) -> None:
    with platform_context():
        site = save()
    assert services.site_password(Site.objects.get(pk=site.pk)) == "hunter2 hunter2"
    assert not Secret.objects.exists()


def test_saving_again_changes_the_site_and_keeps_the_password(platform: None) -> None:
    save()
    site = save(name="Seoul 1", password=None)
    assert Site.objects.get().name == "Seoul 1"
    assert services.site_password(site) == "hunter2 hunter2"
    save(password="correct horse")
    assert services.site_password(Site.objects.get()) == "correct horse"
    assert Secret.objects.count() == 1


@pytest.mark.parametrize(
    ("columns", "field", "says"),
    [
        ({"endpoint": "ironic.example.com"}, "endpoint", "https://host"),
        ({"endpoint": "https://neo:secret@ironic"}, "endpoint", r"https://\[hidden\]@"),
        ({"call_home_url": "ftp://x"}, "call_home_url", "https://host"),
        ({"timezone": "Seoul"}, "timezone", "Asia/Seoul"),
        ({"code": "Seoul 1"}, "code", "code"),
        ({"name": ""}, "name", "name"),
    ],
)
def test_a_bad_site_is_refused_by_field(
    platform: None, columns: dict[str, Any], field: str, says: str
) -> None:
    with pytest.raises(Invalid, match=says) as caught:
        save(**columns)
    assert caught.value.field == field
    assert not Site.objects.exists()


def test_a_site_is_paused_and_resumed_with_its_reason(platform: None) -> None:
    site = a_site()
    assert services.pause_site(site=site, actor=None, reason="power work").status == "paused"
    assert Site.objects.get().status_reason == "power work"
    with pytest.raises(WrongStatus):
        services.pause_site(site=site, actor=None, reason="again")
    services.resume_site(site=site, actor=None)
    assert (Site.objects.get().status, Site.objects.get().status_reason) == ("active", "")
    actions = AuditEntry.objects.order_by("id").values_list("action", flat=True)
    assert list(actions) == ["site.paused", "site.resumed"]


def test_a_failing_site_tells_since_when_and_forgets_it_when_it_answers(platform: None) -> None:
    site = a_site()
    services.record_site_failure(site=site, error="https://neo:secret@ironic timed out")
    since = Site.objects.get().failing_since
    services.record_site_failure(site=site, error="refused")
    stored = Site.objects.get()
    assert (stored.failing_since, stored.last_error) == (since, "refused")
    services.record_site_success(site=site)
    stored = Site.objects.get()
    assert (stored.failing_since, stored.last_error) == (None, "")
    assert stored.last_seen_at is not None


def test_a_secret_in_an_error_is_not_kept(platform: None) -> None:
    site = a_site()
    services.record_site_failure(site=site, error="https://neo:secret@ironic timed out")
    assert "secret" not in Site.objects.get().last_error


def test_a_watch_belongs_to_one_until_it_is_finished_and_due(platform: None) -> None:
    site = a_site()
    assert services.claim_site_watch(site_id=site.pk, seconds=30)
    assert not services.claim_site_watch(site_id=site.pk, seconds=30)
    services.finish_site_watch(site_id=site.pk, next_in_seconds=30)
    assert not services.claim_site_watch(site_id=site.pk, seconds=30)
    services.finish_site_watch(site_id=site.pk)
    assert services.claim_site_watch(site_id=site.pk, seconds=30)


def test_what_is_found_out_about_cleaning_is_kept(platform: None) -> None:
    site = a_site(cleans_automatically=False)
    services.mark_site_cleaning(site=site, cleans_automatically=True)
    assert Site.objects.get().cleans_automatically


def test_the_lowest_free_address_is_leased_and_comes_back(acme: Any) -> None:
    with platform_context():
        site = a_site()
        a_pool(site, gateway="10.20.0.11")

    def lease() -> AddressLease:
        return services.lease_address(site=site, tenant=acme.pk, service=uuid4())

    first, second = lease(), lease()
    assert [one.address for one in (first, second)] == ["10.20.0.10", "10.20.0.12"]
    assert [one.vlan for one in (first, second)] == [100, 100]
    with pytest.raises(AddressesExhausted, match="widen a pool"):
        lease()
    assert services.release_addresses(service=first.service) == 1
    assert services.release_addresses(service=first.service) == 0
    assert lease().address == "10.20.0.10"


def test_a_service_asking_twice_keeps_its_address(acme: Any) -> None:
    with platform_context():
        site = a_site()
        a_pool(site)
    service = uuid4()
    leases = [services.lease_address(site=site, tenant=acme.pk, service=service) for _ in "ab"]
    assert leases[0] == leases[1]


def test_tenants_get_other_addresses_and_another_network(acme: Any, globex: Any) -> None:
    with platform_context():
        site = a_site()
        a_pool(site)
    mine = services.lease_address(site=site, tenant=acme.pk, service=uuid4())
    with tenant_context(globex):
        theirs = services.lease_address(site=site, tenant=globex.pk, service=uuid4())
        assert AddressLease.objects.count() == 1
    assert (theirs.address, theirs.vlan) == ("10.20.0.11", 101)
    assert (mine.address, mine.vlan) == ("10.20.0.10", 100)


def test_a_full_pool_hands_over_to_the_next(acme: Any) -> None:
    with platform_context():
        site = a_site()
        a_pool(site, last_address="10.20.0.10")
        a_pool(
            site,
            name="b",
            prefix="fd00::/64",
            gateway="fd00::1",
            first_address="fd00::10",
            last_address="fd00::ffff:ffff",
        )
    given = [
        services.lease_address(site=site, tenant=acme.pk, service=uuid4()).address for _ in "abc"
    ]
    assert given == ["10.20.0.10", "fd00::10", "fd00::11"]


@pytest.mark.parametrize(
    ("columns", "field"),
    [
        ({"prefix": "10.20.0.0/33"}, "prefix"),
        ({"gateway": "10.21.0.1"}, "gateway"),
        ({"first_address": "10.20.0"}, "first_address"),
        ({"last_address": "10.20.0.5"}, "last_address"),
        ({"vlan_first": 0}, "vlan_last"),
        ({"vlan_last": 5000}, "vlan_last"),
    ],
)
def test_a_bad_pool_is_refused_by_field(
    platform: None, columns: dict[str, Any], field: str
) -> None:
    site = a_site()
    given: dict[str, Any] = {
        "name": "a",
        "prefix": "10.20.0.0/24",
        "gateway": "10.20.0.1",
        "first_address": "10.20.0.10",
        "last_address": "10.20.0.20",
    }
    with pytest.raises(Invalid) as caught:
        services.save_address_pool(site=site, actor=None, **(given | columns))
    assert caught.value.field == field
    assert not AddressPool.objects.exists()
    services.save_address_pool(site=site, actor=None, **given)
    assert AddressPool.objects.get().first_address == "10.20.0.10"
