"""Invoice runs: a month of one currency over all tenants, drafted, reviewed, issued.

Each tenant is a row. Whoever works locks one row, does its work in the same transaction and goes
on: a worker that dies leaves its row as it was, two runs at once take different rows, and doing all
of it again changes nothing. Stages end when no row of theirs is left.
"""

import time
from collections.abc import Iterable
from decimal import Decimal
from typing import Any
from uuid import UUID

import structlog
from django.db import IntegrityError, InterfaceError, OperationalError, transaction
from django.db.models import F, Q, QuerySet

from apps.accounts.models import User
from apps.audit import services as audit
from apps.core import clock, outbox
from apps.core.errors import AppError
from apps.core.money import Money, parse_currency
from apps.core.periods import billing_month, previous_month
from apps.invoicing import selectors, services
from apps.invoicing.errors import AlreadyInvoiced, DraftIsStale, NothingToInvoice, RunNotFound
from apps.invoicing.models import (
    Document,
    DocumentKind,
    DocumentStatus,
    InvoiceProjection,
    InvoiceRun,
    InvoiceRunTenant,
    LineKind,
)
from apps.invoicing.states import INVOICE_RUN, RUN_TENANT, RunStatus, RunTenantStatus
from apps.tenancy.context import tenant_context
from apps.tenancy.models import Tenant
from apps.tenancy.states import TenantStatus

log = structlog.get_logger(__name__)
A_TURN = 4.0  # seconds one worker gives to runs before it looks after other things
MOST_ATTEMPTS = 5  # of a row whose worker died each time
MUCH = Decimal("0.5")  # a total that differs by more of last month's is worth a look
TO_DO = Q(run__status=RunStatus.DRAFTING, status=RunTenantStatus.WAITING) | Q(
    run__status=RunStatus.ISSUING, status=RunTenantStatus.APPROVED
)


@transaction.atomic
def start_run(*, period: str, currency: str, actor: User | None) -> InvoiceRun:
    """The open run of a month and currency, or a new one over every tenant of the currency.

    Raises NotAMonth or UnknownCurrency.
    """
    billing_month(period, "UTC")
    parse_currency(currency)
    open_runs = InvoiceRun.objects.filter(period=period, currency=currency).exclude(
        status__in=(RunStatus.FINISHED, RunStatus.CANCELLED)
    )
    try:
        with transaction.atomic():
            if run := open_runs.first():
                return run
            run = InvoiceRun.objects.create(
                period=period, currency=currency, started_by=str(actor or "NeoCloud OS")
            )
    except IntegrityError:  # somebody started it in the same moment
        return open_runs.get()
    tenants = Tenant.objects.filter(currency=currency).exclude(status=TenantStatus.CREATING)
    before = _totals_before(period, currency)
    InvoiceRunTenant.objects.bulk_create(
        InvoiceRunTenant(run=run, tenant=tenant, previous_total=before.get(tenant))
        for tenant in tenants.order_by("slug").values_list("pk", flat=True)
    )
    _tell(actor, "invoice_run.started", run, tenants=run.tenants.count())
    return run


@transaction.atomic
def approve(*, run_id: UUID, actor: User | None, tenants: Iterable[UUID] | None = None) -> int:
    """Let the reviewed drafts of a run be issued, all or those of some tenants; how many.

    Raises RunNotFound or WrongStatus.
    """
    run = _locked(run_id)
    rows = _chosen(run, tenants, RunTenantStatus.DRAFTED)
    if rows:
        INVOICE_RUN.move(run, "issue")
        run.save(update_fields=["status"])
        _move_all(rows, "approve")
        _tell(actor, "invoice_run.approved", run, tenants=len(rows))
    return len(rows)


@transaction.atomic
def redraft(*, run_id: UUID, actor: User | None, tenants: Iterable[UUID] | None = None) -> int:
    """Rate again what is drafted, refused or had nothing, all or those of some tenants; how many.

    Raises RunNotFound or WrongStatus.
    """
    run = _locked(run_id)
    statuses = (RunTenantStatus.DRAFTED, RunTenantStatus.REFUSED, RunTenantStatus.NOTHING)
    rows = _chosen(run, tenants, *statuses)
    if rows:
        INVOICE_RUN.move(run, "redraft")
        run.save(update_fields=["status"])
        for row in rows:
            row.attempts = 0
        _move_all(rows, "redraft")
        _tell(actor, "invoice_run.redrafted", run, tenants=len(rows))
    return len(rows)


@transaction.atomic
def end_run(*, run_id: UUID, actor: User | None, cancel: bool = False) -> InvoiceRun:
    """Finish a run, or cancel it; drafts stay drafts and a new run takes them up.

    Raises RunNotFound or WrongStatus.
    """
    run = _locked(run_id)
    INVOICE_RUN.move(run, "cancel" if cancel else "finish")
    run.ended_at = clock.now()
    run.save(update_fields=["status", "ended_at"])
    _tell(actor, "invoice_run.cancelled" if cancel else "invoice_run.finished", run)
    return run


def work(*, seconds: float = A_TURN) -> int:
    """Do what runs wait for, one tenant after another, for about that long; how many were done."""
    until = time.monotonic() + seconds
    for run in InvoiceRun.objects.filter(status__in=(RunStatus.DRAFTING, RunStatus.ISSUING)):
        _settle(run.pk)  # a worker may have died between its last row and this
    done = 0
    while time.monotonic() < until:
        claimed = _claim()
        if claimed is None:
            break
        run_id = _do(claimed)
        if run_id is not None:
            _settle(run_id)
            done += 1
    return done


@transaction.atomic
def _claim() -> int | None:
    """A row to do, those that killed fewest workers first; the attempt is kept before the work."""
    row = (
        InvoiceRunTenant.objects.select_for_update(skip_locked=True, of=("self",))
        .filter(TO_DO)
        .order_by("attempts", "run_id", "id")
        .first()
    )
    if row is None:
        return None
    row.attempts = F("attempts") + 1
    row.save(update_fields=["attempts"])
    return row.pk


@transaction.atomic
def _do(row_id: int) -> UUID | None:
    """Draft or issue one tenant's month; None when another worker has it."""
    row = (
        InvoiceRunTenant.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("run")
        .filter(TO_DO, pk=row_id)
        .first()
    )
    if row is None:
        return None
    tenant = Tenant.objects.get(pk=row.tenant)
    row.error_code = row.error = ""
    act = _issue if row.status == RunTenantStatus.APPROVED else _draft
    try:
        if row.attempts > MOST_ATTEMPTS:
            raise RuntimeError(f"{MOST_ATTEMPTS} workers died of it")
        with transaction.atomic():
            act(row, tenant)
    except AppError as error:
        _refuse(row, error.code, error.detail)
    except (OperationalError, InterfaceError):
        raise  # the database's trouble, not this tenant's
    except Exception as error:
        log.exception("invoice_run.failed", tenant=tenant.slug, period=row.run.period)
        _refuse(row, "unexpected", f"{type(error).__name__}: {error}")
    row.changed_at = clock.now()
    row.save()
    return row.run_id


def _draft(row: InvoiceRunTenant, tenant: Tenant) -> None:
    run = row.run
    with tenant_context(tenant):
        try:
            draft = services.draft_invoice(
                tenant=tenant, period=run.period, currency=run.currency, actor=None
            )
        except AlreadyInvoiced as error:
            _show(row, Document.objects.get(pk=error.document_id))
            RUN_TENANT.move(row, "meet")
            return
        if draft is None:
            row.document = row.subtotal = row.total = None
            row.warnings = _nothing_warnings(row)
            RUN_TENANT.move(row, "skip")
            return
        _show(row, draft)
        row.warnings = warnings_of(row, tenant, draft)
    RUN_TENANT.move(row, "draft")


def _issue(row: InvoiceRunTenant, tenant: Tenant) -> None:
    with tenant_context(tenant):
        try:
            issued = services.issue_invoice(document_id=UUID(str(row.document)), actor=None)
        except DraftIsStale as error:
            draft = Document.objects.get(pk=UUID(str(row.document)))
            _show(row, draft)
            row.warnings = [_warning("stale"), *warnings_of(row, tenant, draft)]
            row.error_code, row.error = error.code, error.detail
            RUN_TENANT.move(row, "return")
            return
        except NothingToInvoice:
            row.document = row.subtotal = row.total = None
            RUN_TENANT.move(row, "skip")
            return
        _show(row, issued)
    RUN_TENANT.move(row, "issue")


def warnings_of(row: InvoiceRunTenant, tenant: Tenant, draft: Document) -> list[dict[str, Any]]:
    """What a reviewer should look at before the draft is issued: codes with their figures."""
    found = []
    if not (tenant.legal_name and tenant.registration_number and tenant.billing_email):
        found.append(_warning("no_legal_data"))
    if not draft.total:
        found.append(_warning("zero"))
    before = row.previous_total
    if before is None:
        found.append(_warning("first_invoice"))
    elif before and abs(draft.total - before) > before * MUCH:
        found.append(_warning("differs_much", before=_text(before, draft.currency)))
    late_sum = sum(
        (line.amount for line in draft.lines.all() if line.kind == LineKind.LATE_USAGE),
        Decimal(0),
    )
    if late_sum:
        found.append(_warning("late_usage", amount=_text(late_sum, draft.currency)))
    reduced = sum(
        (
            one.usage.amount
            for one in selectors.reductions(currency=draft.currency, as_of=draft.as_of)
            if not one.is_credited
        ),
        Decimal(0),
    )
    if reduced:
        found.append(_warning("to_be_credited", amount=_text(reduced, draft.currency)))
    return found


def _nothing_warnings(row: InvoiceRunTenant) -> list[dict[str, Any]]:
    if not row.previous_total:
        return []
    before = _text(row.previous_total, row.run.currency)
    return [_warning("nothing_now", before=before)]


def _warning(code: str, **figures: str) -> dict[str, Any]:
    return {"code": code, "figures": figures}


def _text(amount: Decimal, currency: str) -> str:
    return str(Money(Decimal(amount), currency))


def _show(row: InvoiceRunTenant, document: Document) -> None:
    row.document, row.number = document.pk, document.number or ""
    row.subtotal, row.total = document.subtotal, document.total


def _refuse(row: InvoiceRunTenant, code: str, text: str) -> None:
    row.error_code, row.error = code, text[:600]
    RUN_TENANT.move(row, "refuse")


@transaction.atomic
def _settle(run_id: UUID) -> None:
    """End the stage of a run when none of its rows is left to do."""
    run = InvoiceRun.objects.select_for_update().get(pk=run_id)
    statuses = set(run.tenants.values_list("status", flat=True).distinct())
    if run.status == RunStatus.DRAFTING and RunTenantStatus.WAITING not in statuses:
        INVOICE_RUN.move(run, "present")
        outbox.publish("invoice_run.ready", subject=run.pk, period=run.period)
    elif run.status == RunStatus.ISSUING and RunTenantStatus.APPROVED not in statuses:
        is_open = statuses & {RunTenantStatus.DRAFTED, RunTenantStatus.REFUSED}
        INVOICE_RUN.move(run, "return" if is_open else "finish")
        run.ended_at = None if is_open else clock.now()
    else:
        return
    run.save(update_fields=["status", "ended_at"])
    log.info("invoice_run.moved", run=str(run), status=run.status)


def _locked(run_id: UUID) -> InvoiceRun:
    run = InvoiceRun.objects.select_for_update().filter(pk=run_id).first()
    if run is None:
        raise RunNotFound()
    return run


def _chosen(
    run: InvoiceRun, tenants: Iterable[UUID] | None, *statuses: str
) -> list[InvoiceRunTenant]:
    rows: QuerySet[InvoiceRunTenant] = run.tenants.select_for_update().filter(status__in=statuses)
    if tenants is not None:
        rows = rows.filter(tenant__in=list(tenants))
    return list(rows)


def _move_all(rows: list[InvoiceRunTenant], verb: str) -> None:
    for row in rows:
        RUN_TENANT.move(row, verb)
    InvoiceRunTenant.objects.bulk_update(rows, ["status", "attempts"])


def _totals_before(period: str, currency: str) -> dict[UUID, Decimal]:
    """What each tenant was invoiced for the month before."""
    return dict(
        InvoiceProjection.objects.filter(
            period=previous_month(period),
            currency=currency,
            kind=DocumentKind.INVOICE,
            status=DocumentStatus.ISSUED,
        ).values_list("tenant", "total")
    )


def _tell(actor: User | None, event: str, run: InvoiceRun, **after: Any) -> None:
    told = {"period": run.period, "currency": run.currency, "status": str(run.status), **after}
    audit.record(actor, event, run, after=told)
    outbox.publish(event, subject=run.pk, period=run.period, currency=run.currency)
