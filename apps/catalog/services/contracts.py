"""Contracts: signed, changed from an instant on by a new version, ended; never edited."""

from dataclasses import dataclass, replace
from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Q
from django.utils.translation import gettext as _

from apps.audit import services as audit
from apps.catalog.errors import (
    BadValue,
    ContractExists,
    ContractNotFound,
    ContractOver,
    ContractOverlap,
    TermsInThePast,
)
from apps.catalog.models import CODE, Contract, PriceBook, PriceKind, PriceRule
from apps.core import clock, outbox
from apps.core.money import minor_places, parse_decimal
from apps.core.periods import billing_month, month_of
from apps.core.validation import check_fields
from apps.tenancy.models import Tenant

LONGEST_PAYMENT = 365


@dataclass(frozen=True, slots=True)
class Terms:
    """What a version of a contract says."""

    discount_percent: Decimal = Decimal(0)
    minimum_monthly_charge: Decimal | None = None
    payment_days: int = 30
    prepaid_credit: Decimal = Decimal(0)
    price_rule: str = PriceRule.IN_FORCE
    note: str = ""

    @classmethod
    def of(cls, contract: Contract) -> "Terms":
        """Those of a version."""
        return cls(**{name: getattr(contract, name) for name in cls.__slots__})


@transaction.atomic
def sign_contract(
    *,
    tenant: Tenant,
    code: str,
    effective_from: datetime,
    actor: Any,
    effective_to: datetime | None = None,
    terms: Terms | None = None,
) -> Contract:
    """Agree terms with a tenant in its currency, from a whole second on.

    They may begin in the tenant's running billing month, which is not invoiced yet, not before it.
    Raises BadValue, ContractExists, ContractOverlap or TermsInThePast.
    """
    Tenant.objects.select_for_update().get(pk=tenant.pk)
    if Contract.objects.filter(code=code).exists():
        raise ContractExists(field="code", contract=code)
    month = billing_month(month_of(clock.now(), tenant.billing_timezone), tenant.billing_timezone)
    if effective_from < month.start:
        raise TermsInThePast(field="effective_from", value=effective_from.isoformat())
    contract = _version(
        terms or Terms(),
        tenant=tenant.pk,
        code=code,
        currency=tenant.currency,
        effective_from=effective_from,
        effective_to=effective_to,
    )
    _refuse_overlap(contract)
    contract.save()
    _tell(actor, "contract.signed", contract, before=None)
    return contract


@transaction.atomic
def change_contract(*, code: str, at: datetime, actor: Any, terms: dict[str, Any]) -> Contract:
    """Let other terms hold from an instant on: the version in force then ends there.

    Raises ContractNotFound, ContractOver, BadValue or TermsInThePast.
    """
    running = _running(code, at)
    changed = replace(Terms.of(running), **terms)
    end = running.effective_to
    before = figures(running)
    _end(running, at)
    contract = _version(
        changed,
        tenant=running.tenant,
        code=code,
        version=Contract.objects.filter(code=code).count() + 1,
        currency=running.currency,
        effective_from=at,
        effective_to=end,
    )
    contract.save()
    _tell(actor, "contract.changed", contract, before=before)
    return contract


@transaction.atomic
def end_contract(*, code: str, at: datetime, actor: Any) -> Contract:
    """End a contract at an instant that is still to come.

    Raises ContractNotFound, ContractOver, BadValue or TermsInThePast.
    """
    running = _running(code, at)
    later = Contract.objects.filter(code=code, effective_from__gt=at).order_by("effective_from")
    if following := later.first():
        raise ContractOverlap(field="at", contract=str(following))
    before = figures(running)
    _end(running, at)
    _tell(actor, "contract.ended", running, before=before)
    return running


def figures(contract: Contract) -> dict[str, Any]:
    """A version as the audit trail tells it."""
    minimum = contract.minimum_monthly_charge
    return {
        "code": contract.code,
        "version": contract.version,
        "currency": contract.currency,
        "effective_from": contract.effective_from.isoformat(),
        "effective_to": contract.effective_to and contract.effective_to.isoformat(),
        "discount_percent": str(contract.discount_percent),
        "minimum_monthly_charge": None if minimum is None else str(minimum),
        "payment_days": contract.payment_days,
        "prepaid_credit": str(contract.prepaid_credit),
        "price_rule": str(contract.price_rule),
    }


def _version(terms: Terms, **columns: Any) -> Contract:
    """A version with checked terms, not yet kept."""
    currency = columns["currency"]
    places = minor_places(currency)
    minimum = terms.minimum_monthly_charge
    contract = Contract(
        **columns,
        book=_book(columns["tenant"], currency),
        discount_percent=parse_decimal(
            terms.discount_percent, field="discount_percent", places=4, maximum=Decimal(100)
        ),
        minimum_monthly_charge=None
        if minimum is None
        else parse_decimal(minimum, field="minimum_monthly_charge", places=places),
        payment_days=terms.payment_days,
        prepaid_credit=parse_decimal(terms.prepaid_credit, field="prepaid_credit", places=places),
        price_rule=terms.price_rule,
        note=terms.note,
    )
    _check(contract)
    return contract


def _check(contract: Contract) -> None:
    CODE(contract.code)
    for name in ("effective_from", "effective_to"):
        instant = getattr(contract, name)
        if instant is not None and (instant.tzinfo is None or instant.microsecond):
            raise BadValue(
                field=name,
                what=name,
                value=instant.isoformat(),
                rule=_("give a whole second with its offset, such as 2026-07-01T00:00:00+09:00"),
            )
    if contract.effective_to is not None and contract.effective_to <= contract.effective_from:
        raise BadValue(
            field="effective_to",
            what="effective_to",
            value=contract.effective_to.isoformat(),
            rule=_("it must lie after the start, {start}").format(
                start=contract.effective_from.isoformat()
            ),
        )
    if contract.payment_days > LONGEST_PAYMENT:
        raise BadValue(
            field="payment_days",
            what="payment_days",
            value=contract.payment_days,
            rule=_("at most {most}").format(most=LONGEST_PAYMENT),
        )
    check_fields(contract)


def _book(tenant: UUID, currency: str) -> PriceBook | None:
    return PriceBook.objects.filter(
        kind=PriceKind.CONTRACT, tenant=tenant, currency=currency
    ).first()


def _running(code: str, at: datetime) -> Contract:
    """The version in force at an instant from now on, locked."""
    if at.tzinfo is None or at.microsecond:
        raise BadValue(
            field="at",
            what="at",
            value=at.isoformat(),
            rule=_("give a whole second with its offset, such as 2026-07-01T00:00:00+09:00"),
        )
    versions = list(
        Contract.objects.select_for_update().filter(code=code).order_by("effective_from")
    )
    if not versions:
        raise ContractNotFound(field="code", contract=code)
    if at < clock.now():
        raise TermsInThePast(field="at", value=at.isoformat())
    for version in versions:
        if version.effective_from < at and (
            version.effective_to is None or version.effective_to > at
        ):
            return version
    raise ContractOver(field="at", contract=code, at=at.isoformat())


def _end(contract: Contract, at: datetime) -> None:
    contract.effective_to = at
    contract.save(update_fields=["effective_to"])


def _refuse_overlap(contract: Contract) -> None:
    others = Contract.objects.filter(
        Q(effective_to=None) | Q(effective_to__gt=contract.effective_from),
        tenant=contract.tenant,
        currency=contract.currency,
    )
    if contract.effective_to is not None:
        others = others.filter(effective_from__lt=contract.effective_to)
    if other := others.first():
        raise ContractOverlap(field="effective_from", contract=str(other))


def _tell(actor: Any, event: str, contract: Contract, *, before: Any) -> None:
    audit.record(actor, event, contract, before=before, after=figures(contract))
    outbox.publish(event, subject=contract.pk, tenant=str(contract.tenant), code=contract.code)
