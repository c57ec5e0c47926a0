"""The slow, independent sum agrees with rating on any history, and finds what is wrong."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.core.management import CommandError, call_command
from django.db import transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from apps.core.uuids import uuid7
from apps.invoicing import selectors, services
from apps.invoicing.verify import verify_invoice
from apps.orders.states import ServiceState
from apps.tenancy.context import platform_context
from tests.builders import a_fact, a_price, a_service, a_used_service, move_clock

MARCH = datetime(2026, 2, 27, tzinfo=UTC)
MINUTES = st.integers(0, 36 * 24 * 60)
STATES = st.sampled_from([ServiceState.ACTIVE, ServiceState.ACTIVE, ServiceState.STOPPED, "failed"])
LIVE = st.tuples(st.just("live"), STATES, MINUTES, st.just(0), st.integers(0, 1), st.integers(0, 9))
IMPORTED = st.tuples(
    st.just("imported"),
    STATES,
    MINUTES,
    st.integers(0, 4000),
    st.integers(0, 60),
    st.integers(0, 9),
)
CORRECTED = st.tuples(
    st.just("corrected"),
    st.sampled_from(["", "active", "failed"]),
    MINUTES,
    st.integers(0, 4000),
    st.integers(0, 60),
    st.integers(0, 9),
)
HISTORY = st.lists(st.one_of(LIVE, IMPORTED, CORRECTED), max_size=12)


def write(service, history):
    """Facts of random kinds; a correction takes the place of an earlier fact, with or without an
    end.
    """
    facts = []
    for kind, state, minute, length, delay, pick in history:
        start = MARCH + timedelta(minutes=minute, seconds=pick)
        end = start + timedelta(seconds=length) if kind == "imported" or length % 2 else None
        recorded = start + timedelta(days=delay)
        free = [fact for fact in facts if not hasattr(fact, "replaced")]
        if kind == "corrected":
            if not free:
                continue
            target = free[pick % len(free)]
            target.replaced = True
            recorded = max(recorded, target.recorded_at)
            facts.append(a_fact(service, state, start, end, recorded=recorded, supersedes=target))
        else:
            facts.append(a_fact(service, state, start, end, recorded=recorded))


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    histories=st.lists(
        st.tuples(st.sampled_from([1, 8, 13]), st.sampled_from(["allocated", "running"]), HISTORY),
        min_size=1,
        max_size=3,
    ),
    amounts=st.lists(st.integers(0, 9_999_999), min_size=3, max_size=3),
    cuts=st.lists(MINUTES, min_size=2, max_size=2, unique=True),
)
def test_rating_and_the_slow_sum_agree_on_random_histories(acme, histories, amounts, cuts):
    with transaction.atomic():
        try:
            early, later = (MARCH + timedelta(minutes=minute) for minute in sorted(cuts))
            prices = [Decimal(amount) / 1000 for amount in amounts]
            a_price(prices[0], end=later, code="L1")
            a_price(prices[1], start=later, code="L2")
            a_price(prices[2], kind="contract", start=early, end=later, code="C1")
            for gpus, basis, history in histories:
                write(a_service(gpus_each=gpus, billing_basis=basis), history)
            for period, at in (
                ("2026-02", "2026-03-02T00:00:00"),
                ("2026-03", "2026-04-01T03:00:00"),
                ("2026-04", "2026-05-10T00:00:00"),
                ("2026-05", "2026-06-30T00:00:00"),
            ):
                move_clock(at)
                draft = services.draft_invoice(tenant=acme, period=period, actor=None)
                if draft is not None:
                    issued = services.issue_invoice(document_id=draft.pk, actor=None)
                    assert verify_invoice(issued) == []
                    for line in issued.lines.all():
                        assert selectors.explain_line(line.pk)["gpu_seconds"] == line.gpu_seconds
        finally:
            transaction.set_rollback(True)


@pytest.fixture
def issued(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    return services.issue_invoice(document_id=draft.pk, actor=None)


def test_the_command_says_that_an_invoice_agrees(issued, capsys):
    with platform_context():
        call_command("verify_invoice", issued.number)
    assert f"{issued.number}: 1 lines" in capsys.readouterr().out


def test_a_wrong_line_is_named_with_both_figures(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    draft = services.draft_invoice(tenant=acme, period="2026-03", actor=None)
    line = draft.lines.get()
    line.amount += 1
    line.save()
    (finding,) = verify_invoice(draft)
    assert "28800 GPU-seconds, 32001" in finding.document_says
    assert "28800 GPU-seconds, 32000" in finding.sum_says


def test_an_unknown_number_is_refused(platform):
    with pytest.raises(CommandError, match="no issued invoice"):
        call_command("verify_invoice", f"INV-{uuid7()}")
