"""The slow, independent sum agrees with rating on any history, and finds what is wrong."""

import pytest
from django.core.management import CommandError, call_command

from apps.core.uuids import uuid7
from apps.invoicing import selectors, services
from apps.invoicing.verify import verify_invoice
from apps.tenancy.context import platform_context
from tests.builders import a_price, a_used_service, move_clock
from tests.histories import a_history

SAMPLE = range(40)  # `./dev bench histories` tries two thousand


@pytest.mark.parametrize("seed", SAMPLE)
def test_rating_and_the_slow_sum_agree_on_random_histories(acme, seed):
    for closing in a_history(seed, acme):
        move_clock(closing.at)
        draft = services.draft_invoice(tenant=acme, period=closing.period, actor=None)
        if draft is None:
            continue
        issued = services.issue_invoice(document_id=draft.pk, actor=None)
        assert verify_invoice(issued) == []
        for line in issued.lines.exclude(kind="reservation"):
            assert selectors.explain_line(line.pk)["gpu_seconds"] == line.gpu_seconds


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
