"""Invoices and credit notes, their lines and numbers; finance's projection of them."""

import pgtrigger
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7
from apps.invoicing.states import RunStatus, RunTenantStatus


class DocumentKind(models.TextChoices):
    """What a document is."""

    INVOICE = "invoice", "invoice"
    CREDIT_NOTE = "credit_note", "credit_note"


class DocumentStatus(models.TextChoices):
    """A draft may be rated again; an issued document never changes."""

    DRAFT = "draft", "draft"
    ISSUED = "issued", "issued"


class LineKind(models.TextChoices):
    """What a line charges or gives back."""

    USAGE = "usage", "usage"
    DISCOUNT = "discount", "discount"
    RESERVATION = "reservation", "reservation"
    MINIMUM = "minimum", "minimum"
    LATE_USAGE = "late_usage", "late_usage"
    CORRECTION = "correction", "correction"


class Seller(realms.Public, models.Model):
    """Who sells: the operator's legal data, frozen into each document; at most one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1, editable=False)
    legal_name = models.CharField(max_length=200)
    registration_number = models.CharField(max_length=40, default="", blank=True)
    representative = models.CharField(max_length=100, default="", blank=True)
    address = models.CharField(max_length=400, default="", blank=True)
    business_type = models.CharField(max_length=100, default="", blank=True)
    business_item = models.CharField(max_length=100, default="", blank=True)
    email = models.EmailField(default="", blank=True)
    phone = models.CharField(max_length=40, default="", blank=True)
    bank_account = models.CharField(max_length=200, default="", blank=True)

    class Meta:
        constraints = [models.CheckConstraint(name="one_seller", condition=Q(id=1))]

    def __str__(self) -> str:
        return self.legal_name


class JournalRole(models.TextChoices):
    """What an account is for in the journal of documents."""

    RECEIVABLE = "receivable", _("Receivable")
    REVENUE = "revenue", _("Revenue")
    DISCOUNT = "discount", _("Discounts")
    TAX = "tax", _("VAT payable")


class JournalAccount(realms.Public, models.Model):
    """The operator's ledger account of a role; without a row the usual number is taken."""

    role = models.CharField(max_length=20, primary_key=True, choices=JournalRole.choices)
    number = models.CharField(max_length=30)
    name = models.CharField(max_length=100, default="", blank=True)

    def __str__(self) -> str:
        return self.number


class NumberSeries(realms.Public, models.Model):
    """The next number of a series, taken under the row's lock in the transaction that
    issues: no gaps.
    """

    code = models.CharField(max_length=40, primary_key=True)  # INV-2026
    next_number = models.PositiveIntegerField(default=1)

    def __str__(self) -> str:
        return self.code


class Document(realms.Tenant, models.Model):
    """An invoice or a credit note of one tenant, period and currency."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    kind = models.CharField(max_length=12, choices=DocumentKind.choices)
    status = models.CharField(
        max_length=10, choices=DocumentStatus.choices, default=DocumentStatus.DRAFT
    )
    number = models.CharField(max_length=40, null=True, unique=True)  # noqa: DJ001 - a draft has none
    period = models.CharField(max_length=7)  # 2026-03, a month in the billing time zone
    period_start = models.DateTimeField()
    period_end = models.DateTimeField()
    supply_end = (
        models.DateTimeField()
    )  # the period's end, or the instant of an early final invoice
    billing_timezone = models.CharField(max_length=60)
    currency = models.CharField(max_length=3)
    vat_rate = models.DecimalField(max_digits=6, decimal_places=4)
    subtotal = models.DecimalField(max_digits=20, decimal_places=4)
    tax = models.DecimalField(max_digits=20, decimal_places=4)
    total = models.DecimalField(max_digits=20, decimal_places=4)
    as_of = models.DateTimeField()  # facts recorded up to here were read
    corrects = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="credit_notes"
    )
    reason = models.CharField(max_length=300, default="", blank=True)
    customer = models.JSONField(default=dict)  # name and legal data as printed
    seller = models.JSONField(default=dict)  # the operator's, as printed
    created_at = models.DateTimeField(db_default=NeoNow())
    issued_at = models.DateTimeField(null=True)
    issued_by = models.CharField(max_length=200, default="", blank=True)
    due_on = models.DateField(null=True)  # the last day to pay an invoice

    class Meta:
        indexes = [models.Index(fields=["-period", "-created_at"], name="document_newest")]
        constraints = [
            models.UniqueConstraint(
                fields=["period", "currency"],
                condition=Q(kind="invoice", status="draft"),
                name="one_draft_per_period",
            ),
            models.UniqueConstraint(
                fields=["period", "currency"],
                condition=Q(kind="invoice", status="issued"),
                name="one_invoice_per_period",
            ),
            models.CheckConstraint(
                name="issued_has_a_number",
                condition=Q(status="draft", number=None)
                | Q(status="issued", number__isnull=False, issued_at__isnull=False),
            ),
        ]
        triggers = [
            pgtrigger.Protect(
                name="issued_never_changes",
                operation=pgtrigger.Update | pgtrigger.Delete,
                condition=pgtrigger.Q(old__status="issued"),
            )
        ]

    def __str__(self) -> str:
        return self.number or f"draft {self.period}"


class DocumentLine(realms.Tenant, models.Model):
    """One amount and all it follows from; rounded once, to the minor unit."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    document = models.ForeignKey(Document, on_delete=models.CASCADE, related_name="lines")
    position = models.PositiveIntegerField()
    kind = models.CharField(max_length=12, choices=LineKind.choices)
    ref = models.CharField(max_length=60)  # the service's id, or what else is charged
    description = models.CharField(max_length=300)
    service_id = models.UUIDField(null=True)
    service_name = models.CharField(max_length=80, default="", blank=True)
    version = models.PositiveIntegerField(default=1)
    order_id = models.UUIDField(null=True)
    order_number = models.CharField(max_length=20, default="", blank=True)
    project_id = models.UUIDField(null=True)
    project_name = models.CharField(max_length=80, default="", blank=True)
    contract_id = models.UUIDField(null=True)
    node_names = models.JSONField(default=list)
    sku = models.CharField(max_length=60, default="", blank=True)
    quantity = models.PositiveIntegerField(default=0)  # GPUs
    first_at = models.DateTimeField(null=True)
    last_at = models.DateTimeField(null=True)
    gpu_seconds = models.BigIntegerField(default=0)
    gpu_hours = models.DecimalField(max_digits=20, decimal_places=6, default=0)  # display only
    price_id = models.UUIDField(null=True)
    price_code = models.CharField(max_length=60, default="", blank=True)
    price_kind = models.CharField(max_length=10, default="", blank=True)
    unit_price = models.DecimalField(max_digits=18, decimal_places=6, null=True)
    amount = models.DecimalField(max_digits=20, decimal_places=4)
    terms = models.JSONField(null=True)  # what a discount or a minimum was reckoned from
    corrects = models.ForeignKey(
        "self", null=True, on_delete=models.PROTECT, related_name="corrections"
    )

    class Meta:
        ordering = ["position"]
        constraints = [
            models.UniqueConstraint(fields=["document", "position"], name="line_position_once"),
            models.UniqueConstraint(
                fields=["document", "kind", "service_id", "version", "price_code", "unit_price"],
                condition=Q(kind="usage"),
                name="usage_line_once",
            ),
        ]
        triggers = [
            pgtrigger.Trigger(
                name="issued_lines_never_change",
                operation=pgtrigger.Update | pgtrigger.Delete | pgtrigger.Insert,
                when=pgtrigger.Before,
                declare=[("held", "text")],
                func=(
                    "SELECT status INTO held FROM invoicing_document"
                    " WHERE id = CASE WHEN TG_OP = 'INSERT' THEN NEW.document_id"
                    " ELSE OLD.document_id END;"
                    " IF held = 'issued' THEN RAISE EXCEPTION"
                    " 'lines of an issued document never change'"
                    " USING ERRCODE = 'restrict_violation'; END IF;"
                    " IF TG_OP = 'DELETE' THEN RETURN OLD; END IF; RETURN NEW;"
                ),
            ),
            pgtrigger.Trigger(  # whatever the program thinks: never more back than was charged
                name="credited_at_most_once",
                operation=pgtrigger.Insert,
                when=pgtrigger.Before,
                condition=pgtrigger.Q(new__kind="correction"),
                declare=[("charged", "numeric"), ("left_over", "numeric")],
                func=(
                    "SELECT amount INTO STRICT charged FROM invoicing_documentline"
                    " WHERE id = NEW.corrects_id FOR UPDATE;"
                    " SELECT charged + NEW.amount + coalesce(sum(amount), 0) INTO left_over"
                    " FROM invoicing_documentline"
                    " WHERE corrects_id = NEW.corrects_id AND kind = 'correction';"
                    " IF left_over < least(charged, 0) OR left_over > greatest(charged, 0) THEN"
                    " RAISE EXCEPTION 'a line is never credited beyond its amount'"
                    " USING ERRCODE = 'restrict_violation'; END IF; RETURN NEW;"
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.description


class InvoiceProjection(realms.Public, models.Model):
    """What finance's lists show of documents; written in the transaction of the change."""

    document = models.UUIDField(primary_key=True)
    tenant = models.UUIDField()
    kind = models.CharField(max_length=12, choices=DocumentKind.choices)
    status = models.CharField(max_length=10, choices=DocumentStatus.choices)
    number = models.CharField(max_length=40, null=True)  # noqa: DJ001 - a draft has none
    period = models.CharField(max_length=7)
    currency = models.CharField(max_length=3)
    subtotal = models.DecimalField(max_digits=20, decimal_places=4)
    tax = models.DecimalField(max_digits=20, decimal_places=4)
    total = models.DecimalField(max_digits=20, decimal_places=4)
    issued_at = models.DateTimeField(null=True)
    due_on = models.DateField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        indexes = [
            models.Index(fields=["-created_at", "-document"], name="invoice_projection_new"),
            models.Index(fields=["tenant", "period"], name="invoice_projection_month"),
        ]

    def __str__(self) -> str:
        return self.number or f"draft {self.period}"


class InvoiceRun(realms.Public, models.Model):
    """The closing of one month in one currency: every tenant is drafted, reviewed, issued."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    period = models.CharField(max_length=7)
    currency = models.CharField(max_length=3)
    status = models.CharField(max_length=12, choices=RunStatus.choices, default=RunStatus.DRAFTING)
    started_by = models.CharField(max_length=200)
    started_at = models.DateTimeField(db_default=NeoNow())
    ended_at = models.DateTimeField(null=True)

    class Meta:
        indexes = [models.Index(fields=["-started_at", "-id"], name="invoice_run_newest")]
        constraints = [
            models.UniqueConstraint(
                fields=["period", "currency"],
                condition=~Q(status__in=["finished", "cancelled"]),
                name="one_open_run_per_month",
            )
        ]

    def __str__(self) -> str:
        return f"{self.period} {self.currency}"


class InvoiceRunTenant(realms.Public, models.Model):
    """One tenant in a run: the row is the work, its lock the claim of whoever does it."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(InvoiceRun, on_delete=models.PROTECT, related_name="tenants")
    tenant = models.UUIDField()
    status = models.CharField(
        max_length=12, choices=RunTenantStatus.choices, default=RunTenantStatus.WAITING
    )
    document = models.UUIDField(null=True)
    number = models.CharField(max_length=40, default="", blank=True)
    subtotal = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    total = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    previous_total = models.DecimalField(max_digits=20, decimal_places=4, null=True)
    warnings = models.JSONField(default=list)  # codes with their figures: see runs.warnings_of
    error_code = models.CharField(max_length=60, default="", blank=True)
    error = models.CharField(max_length=600, default="", blank=True)
    attempts = models.PositiveIntegerField(default=0)
    changed_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["run", "tenant"], name="tenant_once_in_a_run")
        ]
        indexes = [
            models.Index(
                fields=["run", "id"],
                name="run_tenant_to_do",
                condition=Q(status__in=["waiting", "approved"]),
            )
        ]

    def __str__(self) -> str:
        return f"{self.tenant} {self.status}"
