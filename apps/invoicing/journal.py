"""Double-entry journal of issued documents, with ledger accounts of the operator's choice.

An invoice debits the receivable with its total and credits revenue, per project, with its lines
and the tax payable with its tax; a credit note is the exact mirror. Debits equal credits in each
document, by the database's own sum.
"""

import re
from collections.abc import Iterator
from typing import Any
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.audit import services as audit
from apps.core.csvsafe import sql_text_cell as text
from apps.core.errors import Invalid
from apps.invoicing import exports
from apps.invoicing.models import Document, JournalAccount, JournalRole
from apps.tenancy.models import Tenant

ACCOUNT = re.compile(r"[0-9A-Za-z][0-9A-Za-z.\-]{0,29}")
USUAL = {  # until somebody chooses: numbers of the Korean standard chart of accounts
    JournalRole.RECEIVABLE: ("108", _("Accounts receivable")),
    JournalRole.REVENUE: ("401", _("Service revenue")),
    JournalRole.DISCOUNT: ("402", _("Sales discounts")),
    JournalRole.TAX: ("255", _("VAT payable")),
}


class WrongAccount(Invalid):
    """No ledger has such an account number."""

    code = "wrong_account"
    message = _("“{number}” is no account number: letters, digits, dots and hyphens, 30 at most.")


COLUMNS = {
    "entry_date": "to_char(d.issued_at AT TIME ZONE d.billing_timezone, 'YYYY-MM-DD')",
    "document": text("d.number"),
    "document_kind": "d.kind",
    "entry": "e.entry::text",
    "account": text("e.account"),
    "account_name": text("e.account_name"),
    "debit": exports.amount("CASE WHEN e.amount > 0 THEN e.amount END"),
    "credit": exports.amount("CASE WHEN e.amount < 0 THEN -e.amount END"),
    "currency": "d.currency",
    "tenant": text("%(slug)s"),
    "customer": text("d.customer ->> 'name'"),
    "registration_number": text("d.customer ->> 'registration_number'"),
    "project": text("e.project"),
    "description": text("d.period || ' ' || d.number"),
    "corrects_number": text("c.number"),
    "document_id": "d.id::text",
}
_ENTRIES = """
LATERAL (
    SELECT row_number() OVER (ORDER BY part, project) AS entry, account, account_name, project,
           amount
    FROM (
        SELECT 1 AS part, %(receivable)s AS account, %(receivable_name)s AS account_name,
               '' AS project, d.total AS amount
        UNION ALL
        SELECT CASE WHEN l.kind = 'discount' THEN 3 ELSE 2 END,
               CASE WHEN l.kind = 'discount' THEN %(discount)s ELSE %(revenue)s END,
               CASE WHEN l.kind = 'discount' THEN %(discount_name)s ELSE %(revenue_name)s END,
               l.project_name, -sum(l.amount)
        FROM invoicing_documentline l WHERE l.document_id = d.id
        GROUP BY 1, 2, 3, 4
        UNION ALL
        SELECT 4, %(tax)s, %(tax_name)s, '', -d.tax
    ) parts
    WHERE amount <> 0
) e
"""
_SELECT = exports.select(
    COLUMNS,
    "invoicing_document d LEFT JOIN invoicing_document c ON c.id = d.corrects_id"
    f" CROSS JOIN {_ENTRIES}"
    " WHERE d.id = ANY (%(documents)s::uuid[]) ORDER BY d.issued_at, d.number, e.entry",
)


def accounts() -> dict[str, tuple[str, str]]:
    """Number and name of the account of each role, as chosen or as usual."""
    chosen = {row.role: (row.number, row.name) for row in JournalAccount.objects.all()}
    return {
        str(role): chosen.get(role, (number, str(name))) for role, (number, name) in USUAL.items()
    }


@transaction.atomic
def choose_account(*, role: str, number: str, name: str, actor: Any) -> JournalAccount:
    """Set the ledger account of a role. For the platform's side. Raises WrongAccount."""
    number = number.strip()
    if not ACCOUNT.fullmatch(number):
        raise WrongAccount(number=number[:40], field=role)
    before = accounts()[role]
    row, _made = JournalAccount.objects.update_or_create(
        role=role, defaults={"number": number, "name": name.strip()[:100]}
    )
    if before != (row.number, row.name):
        audit.record(
            actor, "journal.account_changed", row, before={role: before}, after={role: row.number}
        )
    return row


def journal_csv(
    *, period: str = "", currency: str = "", document_id: UUID | None = None
) -> Iterator[bytes]:
    """The entries of issued invoices and credit notes; docs/exports.md says the columns."""
    chosen = accounts()
    named = {role: number for role, (number, _name) in chosen.items()} | {
        f"{role}_name": name for role, (_number, name) in chosen.items()
    }

    def rows(tenant: Tenant, documents: list[Document]) -> Iterator[bytes]:
        asked = {"slug": tenant.slug, "documents": [one.pk for one in documents]}
        yield from exports.copy(_SELECT, asked | named)

    return exports.file(list(COLUMNS), rows, period, currency, document_id)
