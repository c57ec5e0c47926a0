"""Many people at one moment, on a committed database: nothing twice, nothing held by a refusal."""

import random
from dataclasses import replace
from datetime import timedelta
from typing import Any

from django.db import connection

from apps.accounts.models import Project, User
from apps.catalog.models import Offering
from apps.core import clock, realms
from apps.core.errors import AppError, NodeFault, Transient
from apps.inventory.errors import OutOfCapacity
from apps.inventory.models import Allocation, Node
from apps.orders import services as orders
from apps.orders.errors import QuotaExceeded
from apps.orders.models import Fact, Order, Reservation, Service, ServiceProjection, TenantLimit
from apps.orders.tasks import keep_capacity, serve_queues
from apps.provisioning.engine import claims, runs
from apps.provisioning.models import Run
from apps.provisioning.states import OPEN
from apps.tenancy import relay
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from tests import builders
from tests.integration.orders import ledger
from tests.integration.provisioning import world
from tests.racing import apart, together


def _open(nodes: int, **limits: int) -> list[Tenant]:
    """A site with nodes, two tenants with a person, a project and limits."""
    world.a_fake_site(nodes=nodes)
    Offering.objects.update(max_quantity=8)
    builders.a_price(3, sku="bm.h200.8x", book=builders.a_price_book(currency="USD"))
    tenants = list(Tenant.objects.order_by("slug"))
    for tenant in tenants:
        with tenant_context(tenant):
            builders.a_person()
            builders.a_project()
            orders.ensure_tenant_limit(tenant=tenant.pk)
            given = {"max_gpus": 10_000, "max_services": 10_000} | limits
            TenantLimit.objects.filter(tenant=tenant.pk).update(**given)
    return tenants


def _quoted(tenant: Tenant, count: int) -> list[Any]:
    with tenant_context(tenant):
        return [
            orders.make_quote(
                actor=User.objects.get(), offering_sku="bm.h200.8x", site_code=world.SITE,
                quantity=1,
            ).pk
            for _number in range(count)
        ]  # fmt: skip


def _place(tenant: Tenant, quote: Any, if_unavailable: str = "fail") -> Any:
    def job() -> Any:
        with tenant_context(tenant):
            return orders.place_order(
                actor=User.objects.get(), quote_id=quote, project_id=Project.objects.get().pk,
                name="train", ssh_public_keys=[world.KEY], if_unavailable=if_unavailable,
            ).pk  # fmt: skip

    return job


def _inside(tenant: Tenant, job: Any) -> Any:
    def run() -> Any:
        with tenant_context(tenant):
            return job()

    return apart(run)


def _is_error(result: Any) -> bool:
    return isinstance(result, Exception)


def _sound(tenants: list[Tenant]) -> None:
    for tenant in tenants:
        _inside(tenant, ledger.must_be_sound)


def test_the_last_node_goes_to_exactly_one_of_two_twenty_times(committed: None) -> None:
    """Case S04."""
    tenants = apart(lambda: _open(1))
    for _round in range(20):
        quotes = [apart(lambda tenant=tenant: _quoted(tenant, 1))[0] for tenant in tenants]

        results = together([_place(t, q) for t, q in zip(tenants, quotes, strict=True)])

        refusals = [one for one in results if _is_error(one)]
        assert [type(one) for one in refusals] == [OutOfCapacity], results
        assert apart(lambda: Allocation.objects.filter(released_at=None).count()) == 1
        assert apart(lambda: Node.objects.filter(status="available").count()) == 0
        loser = tenants[next(place for place, one in enumerate(results) if _is_error(one))]
        assert _inside(loser, ledger.used) == {"gpus": 0, "services": 0}
        winner = next(tenant for tenant in tenants if tenant is not loser)
        _inside(
            winner,
            lambda: orders.terminate_service(
                service_id=Service.objects.exclude(state="deleting").get().pk,
                actor=User.objects.get(),
            ),
        )
        apart(lambda: Node.objects.update(status="available"))
    assert sum(_inside(t, Order.objects.count) for t in tenants) == 20


def test_the_last_of_a_quota_goes_to_exactly_one_of_two_twenty_times(committed: None) -> None:
    """Case S04, with nodes to spare and a quota of eight GPUs."""
    acme, _globex = apart(lambda: _open(8, max_gpus=8))
    for _round in range(20):
        quotes = apart(lambda: _quoted(acme, 2))

        results = together([_place(acme, quote) for quote in quotes])

        refusals = [one for one in results if _is_error(one)]
        assert [type(one) for one in refusals] == [QuotaExceeded], results
        assert refusals[0].facts["used"] == 8
        assert _inside(acme, ledger.used) == {"gpus": 8, "services": 1}
        _inside(
            acme,
            lambda: orders.terminate_service(
                service_id=Service.objects.exclude(state="deleting").get().pk,
                actor=User.objects.get(),
            ),
        )
        apart(lambda: Node.objects.update(status="available"))
    _sound([acme])


def test_sixty_four_orders_for_eight_nodes_make_eight_servers(committed: None) -> None:
    tenants = apart(lambda: _open(8))
    quotes = {tenant.pk: apart(lambda tenant=tenant: _quoted(tenant, 32)) for tenant in tenants}
    jobs = [_place(tenant, quote) for tenant in tenants for quote in quotes[tenant.pk]]
    random.Random(8).shuffle(jobs)

    results = together(jobs)

    refusals = [one for one in results if _is_error(one)]
    assert {type(one) for one in refusals} == {OutOfCapacity}, refusals
    assert len(refusals) == 56
    assert {(one.facts["free"], one.facts["wanted"]) for one in refusals} == {(0, 1)}
    nodes = apart(lambda: list(Allocation.objects.values_list("node_id", flat=True)))
    assert len(nodes) == len(set(nodes)) == 8
    assert sum(_inside(tenant, Order.objects.count) for tenant in tenants) == 8
    assert sum(_inside(tenant, lambda: ledger.used()["gpus"]) for tenant in tenants) == 64
    _sound(tenants)


def test_one_quote_placed_by_eight_at_one_moment_is_one_order(committed: None) -> None:
    acme, _globex = apart(lambda: _open(8))
    (quote,) = apart(lambda: _quoted(acme, 1))

    results = together([_place(acme, quote)] * 8)

    assert len(set(results)) == 1
    assert _inside(acme, Order.objects.count) == 1
    assert _inside(acme, ledger.used) == {"gpus": 8, "services": 1}
    _sound([acme])


def test_three_deletes_give_the_quota_back_once(committed: None) -> None:
    """Case S06: two at one moment, one afterwards."""
    acme, _globex = apart(lambda: _open(2, max_gpus=16))
    (quote,) = apart(lambda: _quoted(acme, 1))
    apart(_place(acme, quote))

    def end() -> str:
        with tenant_context(acme):
            service = Service.objects.get()
            return orders.terminate_service(service_id=service.pk, actor=User.objects.get()).state

    assert together([end, end]) == ["deleting", "deleting"]
    assert apart(end) == "deleting"

    assert _inside(acme, ledger.used) == {"gpus": 0, "services": 0}
    assert _inside(acme, lambda: Fact.objects.filter(state="deleting").count()) == 1
    _sound([acme])


def test_a_storm_of_everything_ends_without_a_deadlock(committed: None) -> None:
    """Placing, reserving, borrowing, cancelling, ending, failing, limiting, serving and watching in
    many threads.
    """
    tenants = apart(lambda: _open(6))
    dice = random.Random(64)
    for _round in range(4):
        jobs = []
        for tenant in tenants:
            quotes = apart(lambda tenant=tenant: _quoted(tenant, 6))
            jobs += [_place(tenant, quote, dice.choice(["fail", "queue"])) for quote in quotes]
            jobs += [_somebody(tenant, act) for act in (_cancel, _end, _fail, _limit) * 2]
            jobs += [_somebody(tenant, act) for act in (_reserve, _reserve, _give_up, _borrow)]
        jobs += [
            serve_queues.run,
            serve_queues.run,
            keep_capacity.run,
            _observe,
            _observe,
            _work,
            _work,
            _work,
        ]
        world.fake().fail("deploy", NodeFault("PXE timed out"), Transient("locked"))
        dice.shuffle(jobs)

        results = together(jobs)

        unforeseen = [one for one in results if _is_error(one) and not isinstance(one, AppError)]
        assert unforeseen == []
        _sound(tenants)
        world.fake().settle()
        _set_free()
    apart(_work)  # whoever had no time to work in the storm
    live = apart(lambda: list(Allocation.objects.filter(released_at=None, service__isnull=False)))
    assert len({one.node_id for one in live}) == len(live)
    assert apart(lambda: Run.objects.exclude(position=0).exists()), "the workers did something"
    assert apart(_deadlocks) == 0


def _deadlocks() -> int:
    """How many the server has broken up in this database; the engine would just try again."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")
        return int(cursor.fetchone()[0])


def _set_free() -> None:
    """Nodes nobody holds go back, here and at the site: the next round needs some."""

    def free() -> None:
        held = Allocation.objects.filter(released_at=None).values("node")
        Run.objects.filter(status__in=OPEN, service__in=_ended_services()).update(
            status="undone", lease_until=None
        )
        for node in Node.objects.exclude(pk__in=held):
            Node.objects.filter(pk=node.pk).update(
                status="available", seen_provision_state="available", seen_instance=None
            )
            site_node = world.fake().nodes[node.infra_id]
            site_node.seen = replace(site_node.seen, provision_state="available", instance_id=None)

    apart(free)


def _ended_services() -> list[Any]:
    return list(
        ServiceProjection.objects.exclude(state__in=("provisioning", "active")).values_list(
            "service", flat=True
        )
    )


def _work() -> None:
    """A worker: deliver events, advance every run that is due."""
    for _round in range(3):
        relay.deliver_waiting()
        for run_id in claims.due_runs():
            runs.advance(run_id)


def _somebody(tenant: Tenant, act: Any) -> Any:
    def job() -> None:
        with tenant_context(tenant):
            act(User.objects.get())

    return job


def _cancel(actor: User) -> None:
    order = Order.objects.filter(status__in=("accepted", "queued")).order_by("?").first()
    if order is not None:
        orders.cancel_order(order_id=order.pk, actor=actor)


def _end(actor: User) -> None:
    service = Service.objects.order_by("?").first()
    if service is not None:
        orders.terminate_service(service_id=service.pk, actor=actor)


def _fail(actor: User) -> None:
    service = Service.objects.filter(state="provisioning").order_by("?").first()
    if service is not None:
        orders.fail_service(service_id=service.pk, run=service.pk)


def _reserve(actor: User) -> None:
    days = random.Random().randint(0, 40)
    starts_at = clock.now() + timedelta(days=days)
    quote = orders.quote_reservation(
        actor=actor, offering_sku="bm.h200.8x", site_code=world.SITE, quantity=1,
        starts_at=starts_at, ends_at=starts_at + timedelta(days=20),
    )  # fmt: skip
    orders.place_reservation(
        actor=actor, quote_id=quote.pk, project_id=Project.objects.get().pk, name="term"
    )


def _give_up(actor: User) -> None:
    booked = Reservation.objects.filter(status="booked").order_by("?").first()
    if booked is not None:
        orders.cancel_reservation(reservation_id=booked.pk, actor=actor)


def _borrow(actor: User) -> None:
    quote = orders.make_quote(
        actor=actor, offering_sku="bm.h200.8x", site_code=world.SITE, quantity=1,
        accepts_recall=True,
    )  # fmt: skip
    _place(Tenant.objects.get(pk=realms.current_tenant_id()), quote.pk)()


def _limit(actor: User) -> None:
    project = Project.objects.get()
    orders.set_project_limit(project_id=project.pk, max_gpus=10_000, actor=actor)


def _observe() -> None:
    from apps.inventory import services as inventory
    from apps.inventory.models import Site

    with platform_context():
        observed = [node.seen for node in world.fake().nodes.values()]
        inventory.note_observation(site=Site.objects.get(), observed=observed, is_complete=True)
