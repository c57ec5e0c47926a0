"""Contracts: versions that follow each other, never edited, never two at a time."""

from datetime import timedelta
from decimal import Decimal

import pytest
from django.db import DatabaseError, IntegrityError, transaction

from apps.audit.models import AuditEntry
from apps.catalog import services
from apps.catalog.errors import (
    BadValue,
    ContractExists,
    ContractOver,
    ContractOverlap,
    TermsInThePast,
)
from apps.catalog.models import Contract
from apps.core import clock
from apps.tenancy.models import Tenant
from tests.builders import a_contract, an_instant, move_clock

NOW, MONTH_START = "2026-03-20T09:00:00+09:00", "2026-03-01T00:00:00+09:00"


@pytest.fixture
def tenant(platform):
    move_clock(NOW)
    return Tenant.objects.get(slug="acme")


def signed(tenant, code="ct-1", at=MONTH_START, **terms):
    return services.sign_contract(
        tenant=tenant,
        code=code,
        effective_from=an_instant(at),
        terms=services.Terms(**terms),
        actor=None,
    )


def test_a_contract_may_begin_with_the_running_month_but_not_before(tenant):
    assert signed(tenant, discount_percent=Decimal(5)).version == 1
    with pytest.raises(TermsInThePast):
        signed(tenant, code="ct-2", at="2026-02-28T23:59:59+09:00")


def test_a_change_is_a_new_version_from_an_instant_on(tenant):
    first = signed(tenant, discount_percent=Decimal(5), payment_days=14)
    at = an_instant("2026-04-01T00:00:00+09:00")
    second = services.change_contract(
        code="ct-1", at=at, terms={"discount_percent": Decimal(7)}, actor=None
    )
    first.refresh_from_db()
    assert (first.effective_to, first.discount_percent) == (at, 5)
    assert (second.version, second.effective_from, second.effective_to) == (2, at, None)
    assert (second.discount_percent, second.payment_days) == (7, 14)
    entry = AuditEntry.objects.get(action="contract.changed")
    assert entry.before["discount_percent"] == "5.0000"
    assert entry.after["discount_percent"] == "7"


def test_terms_never_change_in_time_that_has_passed(tenant):
    signed(tenant)
    past = clock.now().replace(microsecond=0) - timedelta(hours=1)
    with pytest.raises(TermsInThePast):
        services.change_contract(code="ct-1", at=past, terms={}, actor=None)
    with pytest.raises(TermsInThePast):
        services.end_contract(code="ct-1", at=past, actor=None)
    with pytest.raises(DatabaseError, match="keeps its terms"), transaction.atomic():
        Contract.objects.filter(code="ct-1").update(effective_to=past)


def test_the_application_cannot_edit_or_delete_a_version(tenant):
    signed(tenant)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        Contract.objects.filter(code="ct-1").update(discount_percent=9)
    with pytest.raises(DatabaseError, match="permission denied"), transaction.atomic():
        Contract.objects.filter(code="ct-1").delete()


def test_a_tenant_has_one_contract_at_a_time(tenant):
    signed(tenant)
    with pytest.raises(ContractOverlap):
        signed(tenant, code="ct-2", at="2026-05-01T00:00:00+09:00")
    with pytest.raises(ContractExists):
        signed(tenant)
    with pytest.raises(IntegrityError, match="one_contract_at_a_time"), transaction.atomic():
        a_contract(start="2026-05-01T00:00:00", tenant=tenant.pk, code="ct-9")


def test_an_ended_contract_makes_room_for_the_next(tenant):
    signed(tenant)
    at = an_instant("2026-04-01T00:00:00+09:00")
    services.end_contract(code="ct-1", at=at, actor=None)
    assert signed(tenant, code="ct-2", at="2026-04-01T00:00:00+09:00").effective_to is None
    with pytest.raises(ContractOver):
        services.end_contract(code="ct-1", at=at + timedelta(days=1), actor=None)


def test_amounts_have_the_decimals_of_the_currency(tenant):
    with pytest.raises(Exception, match="decimals"):
        signed(tenant, minimum_monthly_charge=Decimal("0.5"))
    with pytest.raises(BadValue, match="at most"):
        signed(tenant, payment_days=366)
