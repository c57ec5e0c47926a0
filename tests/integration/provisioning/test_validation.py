"""“Validate this site”: every component is asked, and one node tried without a customer."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from apps.core import clock
from apps.core.errors import Refused, SiteUnreachable, Transient
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation, Node, Ticket
from apps.orders.models import Order
from apps.provisioning import validation
from apps.provisioning.adapters import web
from apps.provisioning.models import SiteCheck
from apps.tenancy.context import platform_context, tenant_context
from tests.builders import move_clock
from tests.integration.provisioning import world


@pytest.fixture
def site(acme: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A fake site of two servers; images and call-home answer as they should."""
    monkeypatch.setattr(web, "check_image", lambda source, checksum: "1 byte")
    monkeypatch.setattr(web, "check_call_home", lambda url: "HTTP 403")
    with platform_context():
        yield world.a_fake_site()


def asked(site: Any, **choices: Any) -> SiteCheck:
    """A check of the site."""
    return validation.validate_site(site=site, actor=None, **choices)


def verdicts(check: SiteCheck) -> dict[str, bool | None]:
    """What came of each item; one that is not good stands for all of its kind."""
    found: dict[str, bool | None] = {}
    for row in check.rows:
        found[row["item"]] = False if found.get(row["item"]) is False else row["ok"]
    return found


def go_on(check: SiteCheck, rounds: int = 20, *, settle: bool = True) -> SiteCheck:
    """Let the trial go on to its end."""
    for _round in range(rounds):
        SiteCheck.objects.exclude(stage="").update(next_try_at=clock.now(), lease_until=None)
        for check_id in validation.due_checks():
            validation.advance_check(check_id)
        if settle:
            world.fake().settle()
    return SiteCheck.objects.get(pk=check.pk)


def test_a_good_site_is_good_in_everything_that_can_be_asked(site: Any) -> None:
    check = asked(site)
    assert check.is_good
    assert check.ended_at
    found = verdicts(check)
    assert found.pop("cleaning_seen") is None  # nothing was cleaned here yet
    assert all(found.values()), check.rows
    assert {"reachable", "dialect", "clock", "history", "addresses", "image"} <= set(found)


@pytest.mark.parametrize(
    ("spoil", "item"),
    [
        (lambda fake: fake.fail("describe", SiteUnreachable("refused")), "reachable"),
        (lambda fake: fake.fail("list_claims", Refused("HTTP 403")), "list_claims"),
        (lambda fake: fake.fail("cleaning_since", Refused("HTTP 403")), "history"),
        (lambda fake: setattr(fake, "clock_is_off_by", timedelta(minutes=3)), "clock"),
        (lambda fake: [setattr(n, "cleans", False) for n in fake.nodes.values()], "cleaning_nodes"),
    ],
)
def test_what_is_wrong_at_a_site_is_named_with_the_way_out(
    site: Any, spoil: Any, item: str
) -> None:
    spoil(world.fake())
    check = asked(site)
    assert not check.is_good
    assert verdicts(check)[item] is False
    told = next(row for row in check.rows if row["item"] == item)
    assert validation_words(told)
    site.refresh_from_db()
    assert site.cleans_automatically == (item not in ("reachable", "cleaning_nodes"))


def validation_words(row: dict[str, Any]) -> str:
    from apps.provisioning.validation.rows import told

    return str(told(row)["way_out"])


def test_an_image_that_is_not_what_it_should_be_and_no_addresses(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, checksum: str) -> str:
        raise Refused("checksum abc, expected def")

    monkeypatch.setattr(web, "check_image", refuse)
    site.address_pools.all().delete()
    site.is_simulated = False
    site.save()
    found = verdicts(asked(site))
    assert found["image"] is False
    assert found["addresses"] is False


def test_an_image_out_of_reach_does_not_speak_against_simulated_servers(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: str, checksum: str) -> str:
        raise Refused("no such host")

    monkeypatch.setattr(web, "check_image", refuse)
    assert site.is_simulated
    check = asked(site)
    assert verdicts(check)["image"] is None
    assert check.is_good


def test_a_trial_deploys_and_cleans_a_node_without_a_customer(acme: Any, site: Any) -> None:
    check = go_on(asked(site, with_trial=True))
    assert check.stage == ""
    assert check.is_good
    stages = [row["item"] for row in check.rows][-6:]
    assert stages == ["hold", "claim", "deploy", "power", "remove", "proof"]
    assert check.node.status == "available"
    assert check.node.clean_proof["result"] == "success"
    assert not Allocation.objects.filter(released_at=None).exists()
    assert not world.fake().claims
    with tenant_context(acme):
        assert not Order.objects.exists()
        world.until_ready(world.an_accepted_order())  # the node is sold again


def test_a_node_on_trial_is_sold_to_nobody(acme: Any, site: Any) -> None:
    check = asked(site, with_trial=True)
    validation.advance_check(check.pk)
    with tenant_context(acme):
        world.an_accepted_order()
        with pytest.raises(OutOfCapacity):
            world.an_accepted_order()


def test_a_trial_with_no_free_node_says_so(site: Any) -> None:
    Node.objects.update(is_cordoned=True)
    check = go_on(asked(site, with_trial=True), rounds=1)
    assert (check.stage, check.is_good) == ("", False)
    assert verdicts(check)["hold"] is False


def test_a_deployment_that_fails_is_removed_and_the_node_goes_back_on_proof(site: Any) -> None:
    for node in world.fake().nodes.values():
        node.deploy_error = "image not found"
    check = go_on(asked(site, with_trial=True))
    assert verdicts(check)["deploy"] is False
    assert verdicts(check)["proof"]
    assert check.node.status == "available"
    assert not check.is_good


def test_a_cleaning_that_fails_leaves_the_node_in_quarantine(site: Any) -> None:
    for node in world.fake().nodes.values():
        node.clean_error = "disk 3"
    check = go_on(asked(site, with_trial=True))
    assert (check.stage, check.is_good, check.node.status) == ("", False, "quarantined")
    assert Ticket.objects.get().node == check.node
    assert not Allocation.objects.filter(released_at=None).exists()


def test_a_node_that_is_not_cleaned_at_all_is_not_sold(site: Any) -> None:
    for node in world.fake().nodes.values():
        node.cleans = False
    check = go_on(asked(site, with_trial=True))
    assert (check.is_good, check.node.status) == (False, "quarantined")


def test_a_worker_that_dies_anywhere_in_a_trial_is_followed_by_another(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every stage's effect happens, and its outcome is lost, once."""
    from apps.provisioning.validation import trial

    store, lost = trial._good, set()

    def die_once(check: SiteCheck, said: str) -> None:
        if check.stage not in lost:
            lost.add(check.stage)
            return  # killed before the outcome was stored
        store(check, said)

    monkeypatch.setattr(trial, "_good", die_once)
    check = go_on(asked(site, with_trial=True), rounds=30)
    assert lost == {"claim", "deploy", "power", "remove", "proof"}
    assert check.is_good
    assert sum(node.deploys for node in world.fake().nodes.values()) == 1
    assert check.node.status == "available"


def test_a_trial_waits_for_a_site_that_is_busy_and_gives_up_in_the_end(site: Any) -> None:
    check = asked(site, with_trial=True)
    world.fake().fail("reserve", Transient("locked"), SiteUnreachable("nobody"))
    go_on(check, rounds=3)
    assert SiteCheck.objects.get().stage in ("claim", "deploy")
    for node in world.fake().nodes.values():
        node.seen = replace(node.seen, provision_state="deploying")
    move_clock(clock.now() + timedelta(hours=2))
    go_on(check, rounds=2, settle=False)
    assert SiteCheck.objects.get().stage == "remove"
    move_clock(clock.now() + timedelta(hours=9))
    check = go_on(check, rounds=2, settle=False)
    assert (check.stage, check.node.status) == ("", "quarantined")
