"""The one honest status: at each moment one, in words, with what is known of the time."""

from datetime import timedelta

import pytest

from apps.core import clock
from apps.orders.models import Condition
from apps.orders.states import OrderStatus, ServiceState
from apps.provisioning import standing
from apps.provisioning.selectors import Progress
from tests import builders

pytestmark = pytest.mark.django_db


def of(state=ServiceState.PROVISIONING, condition="", progress=None, **columns):
    service = builders.a_service(state=state, condition=condition, **columns)
    return standing.of_service(service, progress)


def a_progress(**more):
    now = clock.now()
    asked = {
        "run_id": None, "status": "forward", "step": 3, "of": 9, "label": "Deploy", "attempts": 1,
        "expected_at": None, "latest_at": None, "started_at": now,
    }  # fmt: skip
    return Progress(**(asked | more))


@pytest.mark.parametrize("state", ServiceState.values)
@pytest.mark.parametrize("condition", Condition.values)
def test_every_state_and_condition_has_words_and_a_colour(acme, state, condition):
    shown = of(state, condition)
    assert shown.label
    assert shown.tone


@pytest.mark.parametrize("status", OrderStatus.values)
def test_every_status_of_an_order_has_words_and_a_colour(acme, status):
    shown = standing.of_order(builders.an_order(status=status))
    assert shown.label
    assert shown.tone


def test_work_under_way_says_which_step_and_which_try(acme):
    assert of(progress=a_progress()).detail == "Step 3 of 9: Deploy"
    shown = of(condition="retrying", progress=a_progress())
    assert (shown.code, shown.detail) == ("retrying", "Step 3 of 9: Deploy, attempt 2")


def test_a_time_is_expected_only_while_it_lies_ahead(acme):
    now, hour = clock.now(), timedelta(hours=1)
    usual = {"expected_at": now + hour, "latest_at": now + 2 * hour}
    assert of(progress=a_progress(**usual)).expected_at == now + hour
    late = {"expected_at": now - hour, "latest_at": now + hour}
    assert of(progress=a_progress(**late)).expected_at == now + hour
    over = {"expected_at": now - 2 * hour, "latest_at": now - hour}
    shown = of(progress=a_progress(**over))
    assert shown.expected_at is None
    assert shown.is_awaited


def test_what_is_over_is_not_awaited(acme):
    for state in (ServiceState.ACTIVE, ServiceState.DELETING, ServiceState.FAILED):
        assert not of(state).is_awaited


def test_an_order_of_several_servers_stands_where_the_worst_of_them_stands(acme):
    order = builders.an_order(quantity=3)
    each = [of(ServiceState.ACTIVE), of(condition="looked_at"), of(condition="working")]
    shown = standing.of_order(order, each)
    assert shown.code == "needs_attention"
    assert shown.detail == "1 of 3 servers ready"
    assert shown.is_awaited


def test_lists_tell_the_same_as_pages(acme):
    service = builders.a_service(state=ServiceState.PROVISIONING, condition="delayed")
    order = service.order
    assert standing.of_services([service])[service.pk].code == "delayed"
    assert standing.of_orders([order])[order.pk].code == "delayed"


def test_a_suspension_says_until_when(acme):
    until = clock.now() + timedelta(days=7)
    shown = of(ServiceState.SUSPENDED, suspended_until=until)
    assert "terminated" in shown.detail
