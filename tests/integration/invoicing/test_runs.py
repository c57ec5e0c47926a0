"""An invoice run drafts every tenant, each for itself, and issues what was reviewed."""

import random
import signal
import subprocess
import sys
from functools import partial

import pytest

from apps.core.uuids import uuid7
from apps.invoicing import runs, services
from apps.invoicing.models import Document, InvoiceProjection, InvoiceRun
from apps.invoicing.states import RunStatus
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from apps.tenancy.services import create_tenant
from tests.builders import a_fact, a_price, a_reservation, a_service, a_used_service, move_clock
from tests.racing import together

MARCH = "2026-03"


def used_by(tenant, **columns):
    with tenant_context(tenant):
        return a_used_service(**columns)


def a_run(period=MARCH, currency="KRW"):
    run = runs.start_run(period=period, currency=currency, actor=None)
    runs.work(seconds=60)
    run.refresh_from_db()
    return run


def by_slug(run):
    slugs = dict(Tenant.objects.values_list("pk", "slug"))
    return {slugs[row.tenant]: row for row in run.tenants.all()}


def codes(row):
    return {warning["code"] for warning in row.warnings}


@pytest.fixture
def alpha(platform):
    a_price(4000)
    tenant = create_tenant(slug="run-alpha", name="alpha")
    used_by(tenant)
    move_clock("2026-04-01T03:00:00")
    return tenant


def test_one_tenants_trouble_stops_nobody_else(alpha):
    beta, gamma = (create_tenant(slug=f"run-{name}", name=name) for name in ("beta", "gamma"))
    used_by(beta, sku=f"unpriced-{uuid7().hex[-6:]}")
    used_by(gamma)
    with tenant_context(gamma):
        draft = services.draft_invoice(tenant=gamma, period=MARCH, actor=None)
        services.issue_invoice(document_id=draft.pk, actor=None)

    run = a_run()
    rows = by_slug(run)

    assert run.status == RunStatus.REVIEW
    assert (rows["run-alpha"].status, rows["run-alpha"].total) == ("drafted", 35200)
    assert codes(rows["run-alpha"]) == {"no_legal_data", "first_invoice"}
    assert (rows["run-beta"].status, rows["run-beta"].error_code) == ("refused", "no_price")
    assert (rows["run-gamma"].status, rows["run-gamma"].document) == ("invoiced", draft.pk)
    assert rows["acme"].status == "nothing"


def test_an_unexpected_error_is_the_tenants_alone(alpha, monkeypatch):
    def broken(**kwargs):
        raise ZeroDivisionError("oops")

    monkeypatch.setattr(services, "draft_invoice", broken)
    row = by_slug(a_run())["run-alpha"]
    assert (row.status, row.error_code, row.error) == (
        "refused", "unexpected", "ZeroDivisionError: oops",
    )  # fmt: skip


def test_a_run_started_twice_is_one_run(alpha):
    first = a_run()
    again = runs.start_run(period=MARCH, currency="KRW", actor=None)
    assert again.pk == first.pk
    assert runs.work() == 0


def test_what_was_reviewed_is_issued_and_the_run_finishes(alpha):
    run = a_run()
    assert runs.approve(run_id=run.pk, actor=None) == 1
    runs.work(seconds=60)
    run.refresh_from_db()
    row = by_slug(run)["run-alpha"]
    assert (run.status, row.status) == (RunStatus.FINISHED, "issued")
    assert row.number.startswith("INV-2026-")
    assert InvoiceProjection.objects.get(document=row.document).number == row.number


def test_a_draft_that_went_stale_comes_back_for_review_with_its_new_figures(alpha):
    run = a_run()
    with tenant_context(alpha):
        late = a_service(gpus_each=1)
        a_fact(
            late,
            start="2026-03-20T00:00:00",
            end="2026-03-20T01:00:00",
            recorded="2026-04-01T02:00:00",
        )
    runs.approve(run_id=run.pk, actor=None)
    runs.work(seconds=60)
    run.refresh_from_db()
    row = by_slug(run)["run-alpha"]
    assert (run.status, row.status, row.total) == (RunStatus.REVIEW, "drafted", 39600)
    assert "stale" in codes(row)


def test_a_refused_tenant_is_rated_again_after_the_trouble_is_gone(alpha):
    sku = f"unpriced-{uuid7().hex[-6:]}"
    beta = create_tenant(slug="run-beta", name="beta")
    used_by(beta, sku=sku)
    run = a_run()
    a_price(1000, sku=sku)
    assert runs.redraft(run_id=run.pk, tenants=[beta.pk], actor=None) == 1
    runs.work(seconds=60)
    assert by_slug(run)["run-beta"].status == "drafted"


def test_differences_to_the_month_before_are_pointed_out(alpha):
    first = a_run()
    runs.approve(run_id=first.pk, actor=None)
    runs.work(seconds=60)
    used_by(alpha, start="2026-04-10T00:00:00", end="2026-04-10T05:00:00")
    move_clock("2026-05-01T03:00:00")
    row = by_slug(a_run("2026-04"))["run-alpha"]
    assert (row.previous_total, row.total) == (35200, 176000)
    assert row.warnings[-1] == {"code": "differs_much", "figures": {"before": "35200"}}


def test_a_tenant_with_a_reservation_alone_is_invoiced(platform):
    tenant = create_tenant(slug="run-reserved", name="Reserved")
    with tenant_context(tenant):
        a_reservation(starts_at="2026-02-28T15:00:00", ends_at="2026-03-31T15:00:00")
    move_clock("2026-04-01T03:00:00")
    assert by_slug(a_run())["run-reserved"].status == "drafted"


def test_a_month_that_is_not_over_is_refused_for_each(alpha):
    move_clock("2026-03-20T00:00:00")
    assert by_slug(a_run())["run-alpha"].error_code == "period_not_over"


def test_a_row_that_killed_its_workers_is_given_up(alpha):
    run = runs.start_run(period=MARCH, currency="KRW", actor=None)
    run.tenants.filter(tenant=alpha.pk).update(attempts=runs.MOST_ATTEMPTS)
    runs.work(seconds=60)
    row = by_slug(run)["run-alpha"]
    assert (row.status, row.error_code) == ("refused", "unexpected")


TENANTS = 20
WORKER = """
import django, sys
django.setup()
from django.db import connection
from tests import databases
connection.settings_dict.update(databases.entry(databases.url_of("neo_app", sys.argv[1])))
from apps.invoicing import runs
from apps.tenancy.context import platform_context
print("ready", flush=True)
with platform_context():
    runs.work(seconds=120)
"""


@pytest.mark.slow
def test_workers_that_are_killed_leave_neither_gap_nor_repeat(own_database):
    """Twenty tenants, workers that die at random, two runs started at once."""
    with platform_context():
        tenants = [create_tenant(slug=f"kill-{n:02d}", name=f"kill {n}") for n in range(TENANTS)]
        a_price(4000, start="2024-01-01T00:00:00")
        for tenant in tenants:
            used_by(tenant, start="2024-03-10T00:00:00", end="2024-03-10T01:00:00")
        start = partial(runs.start_run, period="2024-03", currency="KRW", actor=None)
        first, second = together([start, start])
        assert first.pk == second.pk
        run = InvoiceRun.objects.get()
        _work_and_kill(own_database.name, kills=6)
        run.refresh_from_db()
        assert run.status == RunStatus.REVIEW
        assert run.tenants.filter(status="drafted").count() == TENANTS
        assert runs.approve(run_id=run.pk, actor=None) == TENANTS
        _work_and_kill(own_database.name, kills=6)
        run.refresh_from_db()
        assert run.status == RunStatus.FINISHED
        numbers = sorted(InvoiceProjection.objects.values_list("number", flat=True))
        assert numbers == [f"INV-2024-{n:06d}" for n in range(1, TENANTS + 1)]
        for tenant in tenants:
            with tenant_context(tenant):
                assert Document.objects.get().lines.count() == 1


def _work_and_kill(database, *, kills):
    """Three workers at a time, some shot after a random while; the last ones finish the work."""
    dice = random.Random(7)
    for number in range(kills + 3):
        worker = subprocess.Popen(
            [sys.executable, "-c", WORKER, database], stdout=subprocess.PIPE, text=True
        )
        assert worker.stdout.readline() == "ready\n"
        if number < kills:
            try:
                worker.wait(dice.uniform(0.02, 0.4))
            except subprocess.TimeoutExpired:
                worker.send_signal(signal.SIGKILL)
        code = worker.wait(120)
        assert number < kills or code == 0
