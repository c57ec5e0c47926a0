"""A draft gets its number and never changes again."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection, transaction

from apps.core.models import OutboxEvent
from apps.invoicing import handlers, services
from apps.invoicing.errors import AlreadyInvoiced, DraftIsStale, NothingToInvoice
from apps.invoicing.models import Document, DocumentLine, NumberSeries
from apps.notices.models import Notice
from apps.orders.ledger import lock_facts_shared
from apps.orders.models import Fact
from apps.orders.states import ServiceState
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.services import create_tenant
from tests.builders import a_fact, a_person, a_price, a_used_service, move_clock


@pytest.fixture
def draft(acme):
    a_price(4000)
    a_used_service()
    move_clock("2026-04-01T03:00:00")
    return services.draft_invoice(tenant=acme, period="2026-03", actor=None)


def issue(document):
    return services.issue_invoice(document_id=document.pk, actor=None)


def test_numbers_follow_each_other_by_the_year_of_supply(acme, draft):
    first = issue(draft)
    a_used_service("2026-12-31T14:00:00", "2026-12-31T16:00:00")
    move_clock("2027-02-01T03:00:00")
    december = services.draft_invoice(tenant=acme, period="2026-12", actor=None)
    january = services.draft_invoice(tenant=acme, period="2027-01", actor=None)
    assert [first.number, issue(december).number, issue(january).number] == [
        "INV-2026-000001",
        "INV-2026-000002",
        "INV-2027-000001",
    ]


def test_issuing_twice_gives_the_same_document_and_no_second_number(draft):
    assert issue(draft).number == issue(draft).number
    assert NumberSeries.objects.get(code="INV-2026").next_number == 2


def test_a_draft_whose_facts_changed_is_rated_again_and_not_issued(draft):
    a_used_service("2026-03-20T00:00:00", "2026-03-20T01:00:00")
    with pytest.raises(DraftIsStale, match="35200"):
        issue(draft)
    draft.refresh_from_db()
    assert (draft.status, draft.subtotal, draft.lines.count()) == ("draft", 64000, 2)
    assert issue(draft).number == "INV-2026-000001"


def test_facts_of_another_month_do_not_make_a_draft_stale(draft):
    a_used_service("2026-04-20T00:00:00", "2026-04-20T01:00:00")
    assert issue(draft).number


def test_a_draft_whose_usage_was_taken_back_goes_away(acme, draft):
    fact = Fact.objects.get(state=ServiceState.ACTIVE)
    a_fact(fact.service, "", fact.start_at, recorded="2026-04-01T03:00:00", supersedes=fact)
    with pytest.raises(NothingToInvoice):
        issue(draft)
    assert not Document.objects.exists()


def test_the_people_who_may_see_invoices_are_told_once(acme, draft):
    a_person(role="billing", email="money@example.test", language="en")
    a_person(role="viewer", email="viewer@example.test")
    issued = issue(draft)
    event = OutboxEvent.objects.get(name="invoice.issued", subject=issued.pk)
    for _repeat in range(2):
        handlers.tell_of_invoice(event)
    told = Notice.objects.filter(kind="invoice.issued")
    assert "viewer@example.test" not in {notice.email for notice in told}
    mine = told.get(email="money@example.test")
    assert mine.subject == f"Invoice {issued.number} for 2026-03"
    assert "₩35,200" in mine.body


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE invoicing_document SET total = 1",
        "UPDATE invoicing_document SET status = 'draft', number = NULL",
        "DELETE FROM invoicing_document",
        "TRUNCATE invoicing_document CASCADE",
        "UPDATE invoicing_documentline SET amount = 1",
        "DELETE FROM invoicing_documentline",
        "TRUNCATE invoicing_documentline",
        "INSERT INTO invoicing_documentline SELECT (jsonb_populate_record(l,"
        " jsonb_build_object('id', uuidv7(), 'position', 99, 'kind', 'late_usage'))).*"
        " FROM invoicing_documentline l",
        "UPDATE orders_fact SET start_at = start_at - interval '1 hour'",
        "DELETE FROM orders_fact",
        "TRUNCATE orders_fact CASCADE",
        "UPDATE catalog_price SET amount = 1",
        "DELETE FROM catalog_price",
        "TRUNCATE catalog_price CASCADE",
    ],
)
def test_the_database_refuses_to_change_what_was_billed(draft, change):
    issue(draft)
    with (
        pytest.raises(DatabaseError) as refused,
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)
    assert getattr(refused.value.__cause__, "sqlstate", "") in ("42501", "23001", "P0001")
    assert DocumentLine.objects.get().amount == 32000


def a_draft_of_march_2024(tenant):
    a_used_service("2024-03-10T00:00:00", "2024-03-10T01:00:00")
    return services.draft_invoice(tenant=tenant, period="2024-03", actor=None)


def test_twenty_tenants_at_once_get_twenty_numbers_without_a_hole(own_database):
    with platform_context():
        tenants = [create_tenant(slug=f"race-{n}", name=f"Race {n}") for n in range(20)]
    a_price(4000, start="2024-01-01T00:00:00")
    drafts = []
    for tenant in tenants:
        with tenant_context(tenant):
            drafts.append(a_draft_of_march_2024(tenant))

    def issue_in_own_thread(number):
        try:
            with tenant_context(tenants[number]):
                if number == 7:  # this one fails after it took its number, then tries again
                    with transaction.atomic():
                        issue(drafts[number])
                        transaction.set_rollback(True)
                return issue(drafts[number]).number
        finally:
            connection.close()

    with ThreadPoolExecutor(20) as pool:
        numbers = list(pool.map(issue_in_own_thread, range(20)))

    assert sorted(numbers) == [f"INV-2024-{n:06d}" for n in range(1, 21)]


def test_a_draft_waits_for_a_fact_that_is_being_written(own_database):
    tenant = own_database.tenant("acme")
    with tenant_context(tenant):
        a_price(4000, start="2024-01-01T00:00:00")
        service = a_used_service("2024-03-10T00:00:00", "2024-03-10T01:00:00")

    def draft():
        try:
            with tenant_context(tenant):
                return services.draft_invoice(tenant=tenant, period="2024-03", actor=None)
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as pool, own_database.connect() as watcher:
        with tenant_context(tenant), transaction.atomic():
            lock_facts_shared()
            drafting = pool.submit(draft)
            while not watcher.execute(
                "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
            ).fetchone()[0]:
                assert not drafting.done()
            a_fact(service, start="2024-03-12T00:00:00", end="2024-03-12T01:00:00")
        assert drafting.result(timeout=20).subtotal == 64000


def test_people_who_draft_and_issue_one_document_at_once_never_stop_each_other(own_database):
    tenant = own_database.tenant("acme")
    with tenant_context(tenant):
        a_price(4000, start="2024-01-01T00:00:00")
        document = a_draft_of_march_2024(tenant)

    def act(number):
        try:
            with tenant_context(tenant):
                if number % 3:
                    return issue(document).number
                return services.draft_invoice(tenant=tenant, period="2024-03", actor=None)
        except AlreadyInvoiced:
            return "invoiced"
        finally:
            connection.close()

    with ThreadPoolExecutor(12) as pool:
        results = list(pool.map(act, range(12)))

    assert {one for one in results if isinstance(one, str)} <= {"INV-2024-000001", "invoiced"}
    assert results.count("INV-2024-000001") == 8
