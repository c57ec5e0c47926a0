"""CSV of documents, lines and usage, streamed by COPY; docs/exports.md says what each column means.

Called in a tenant: its own issued documents. Called on the platform's side: those of all tenants,
one tenant after another. The iterators switch to the side they were made on by themselves, so they
may be read after the request.
"""

import tempfile
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

from django.db import connection

from apps.core import csvsafe
from apps.core.csvsafe import sql_text_cell as text
from apps.core.money import MINOR_UNITS
from apps.core.realms import PLATFORM, current_tenant_id, speaker
from apps.invoicing import late, selectors
from apps.invoicing.models import Document, DocumentStatus, InvoiceProjection
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.models import Tenant
from apps.tenancy.selectors import current_tenant

_MEMORY = 1 << 20  # bytes of a tenant's rows kept in memory before they go to a file
_PLACES = " ".join(f"WHEN '{code}' THEN {places}" for code, places in MINOR_UNITS.items())


def amount(column: str) -> str:
    """Plain digits in the currency's minor unit: 38025, 14803.05."""
    return f"round({column}, CASE d.currency {_PLACES} END)::text"


def _price(column: str) -> str:
    """A unit price with the decimals it has, at least those of its currency."""
    places = f"greatest(CASE d.currency {_PLACES} END, scale(trim_scale({column})))"
    return f"round({column}, {places})::text"


def _at(column: str) -> str:
    return f"to_char({column} AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"


def select(columns: dict[str, str], source: str) -> str:
    """The statement that gives these columns, by name, of a source."""
    expressions = ", ".join(f'{sql} AS "{name}"' for name, sql in columns.items())
    return f"SELECT {expressions} FROM {source}"  # noqa: S608 - our own columns


_TENANT = {"tenant": text("%(slug)s"), "customer": text("d.customer ->> 'name'")}
_DOCUMENT = {
    "document_kind": "d.kind",
    "number": text("d.number"),
    "period": "d.period",
}
DOCUMENT_COLUMNS = (
    _TENANT
    | _DOCUMENT
    | {
        "corrects_number": text("c.number"),
        "period_start": _at("d.period_start"),
        "period_end": _at("d.period_end"),
        "supply_end": _at("d.supply_end"),
        "issued_at": _at("d.issued_at"),
        "currency": "d.currency",
        "vat_rate": "trim_scale(d.vat_rate)::text",
        "subtotal": amount("d.subtotal"),
        "tax": amount("d.tax"),
        "total": amount("d.total"),
        "reason": text("d.reason"),
        "legal_name": text("d.customer ->> 'legal_name'"),
        "registration_number": text("d.customer ->> 'registration_number'"),
        "document_id": "d.id::text",
    }
)
LINE_COLUMNS = (
    _TENANT
    | _DOCUMENT
    | {
        "position": "l.position::text",
        "line_kind": "l.kind",
        "description": text("l.description"),
        "order_number": text("l.order_number"),
        "project": text("l.project_name"),
        "service": text("l.service_name"),
        "nodes": text("(SELECT string_agg(n, ' ') FROM jsonb_array_elements_text(l.node_names) n)"),
        "sku": text("l.sku"),
        "gpus": "l.quantity::text",
        "first_at": _at("l.first_at"),
        "last_at": _at("l.last_at"),
        "gpu_seconds": "l.gpu_seconds::text",
        "gpu_hours": "l.gpu_hours::text",
        "price_code": text("l.price_code"),
        "price_kind": "l.price_kind",
        "unit_price": _price("l.unit_price"),
        "currency": "d.currency",
        "amount": amount("l.amount"),
        "document_id": "d.id::text",
        "line_id": "l.id::text",
        "service_id": "l.service_id::text",
    }
)
USAGE_COLUMNS = (
    _TENANT
    | _DOCUMENT
    | {
        "line_kind": "%(line_kind)s::text",
        "order_number": text(
            "'ORD-' || lpad(o.serial::text, greatest(6, length(o.serial::text)), '0')"
        ),
        "project": text("j.name"),
        "service": text("s.name"),
        "node": text("n.name"),
        "sku": text("z.sku"),
        "gpus": "coalesce(p.gpus, z.gpus)::text",
        "state": "f.state",
        "start_at": _at("p.start_at"),
        "end_at": _at("p.end_at"),
        "seconds": "date_part('epoch', p.end_at - p.start_at)::bigint::text",
        "gpu_seconds": "(date_part('epoch', p.end_at - p.start_at)::bigint"
        " * coalesce(p.gpus, z.gpus))::text",
        "price_code": text("CASE WHEN p.key IS NULL THEN x.code ELSE k.code END"),
        "unit_price": _price("CASE WHEN p.key IS NULL THEN x.unit_price ELSE k.amount END"),
        "currency": "d.currency",
        "cause": text("f.cause"),
        "source": "f.source",
        "recorded_at": _at("f.recorded_at"),
        "fact_id": "f.id::text",
        "run_id": "f.run_id::text",
        "service_id": "s.id::text",
        "document_id": "d.id::text",
    }
)
_DOCUMENTS = select(
    DOCUMENT_COLUMNS,
    "invoicing_document d LEFT JOIN invoicing_document c ON c.id = d.corrects_id"
    " WHERE d.id = ANY (%(documents)s::uuid[]) ORDER BY d.period, d.number",
)
_LINES = select(
    LINE_COLUMNS,
    "invoicing_documentline l JOIN invoicing_document d ON d.id = l.document_id"
    " WHERE d.id = ANY (%(documents)s::uuid[]) ORDER BY d.period, d.number, l.position",
)
_USAGE = select(
    USAGE_COLUMNS,
    "priced p JOIN invoicing_document d ON d.id = %(document)s"
    " JOIN orders_fact f ON f.id = p.fact_id"
    " JOIN orders_service s ON s.id = p.service_id"
    " JOIN sizes z ON z.service_id = p.service_id AND (z.version IS NULL OR z.version = p.version)"
    " JOIN orders_order o ON o.id = s.order_id"
    " JOIN accounts_project j ON j.id = o.project_id"
    " LEFT JOIN public.inventory_node n ON n.id = p.node_id"
    " LEFT JOIN named k ON k.key = p.key"
    " LEFT JOIN fixed x ON x.service_id = p.service_id AND p.key IS NULL"
    " ORDER BY o.serial, s.ordinal, p.version, p.start_at, f.id",
)
Rows = Callable[[Tenant, list[Document]], Iterator[bytes]]


def invoices_csv(
    *, period: str = "", currency: str = "", document_id: UUID | None = None
) -> Iterator[bytes]:
    """Issued invoices and credit notes, one row each, narrowed by what is given."""
    return file(list(DOCUMENT_COLUMNS), _document_rows, period, currency, document_id)


def lines_csv(
    *, period: str = "", currency: str = "", document_id: UUID | None = None
) -> Iterator[bytes]:
    """Every line of issued invoices and credit notes."""
    return file(list(LINE_COLUMNS), _line_rows, period, currency, document_id)


def usage_csv(
    *, period: str = "", currency: str = "", document_id: UUID | None = None
) -> Iterator[bytes]:
    """The charged intervals behind the lines of issued invoices, a row for each fact and price."""
    return file(list(USAGE_COLUMNS), _usage_rows, period, currency, document_id)


def _document_rows(tenant: Tenant, documents: list[Document]) -> Iterator[bytes]:
    yield from copy(_DOCUMENTS, {"slug": tenant.slug, "documents": [one.pk for one in documents]})


def _line_rows(tenant: Tenant, documents: list[Document]) -> Iterator[bytes]:
    yield from copy(_LINES, {"slug": tenant.slug, "documents": [one.pk for one in documents]})


def _usage_rows(tenant: Tenant, documents: list[Document]) -> Iterator[bytes]:
    for document in documents:
        if document.kind != "invoice":
            continue
        asked = {"slug": tenant.slug, "document": document.pk}
        window = selectors.window_of(document)
        yield from copy(window.sql + _USAGE, window.parameters | asked | {"line_kind": "usage"})
        for change in late.late_usage(currency=document.currency, as_of=document.as_of):
            window = selectors.late_window(change, document.as_of)
            yield from copy(
                window.sql + _USAGE, window.parameters | asked | {"line_kind": "late_usage"}
            )


def file(
    header: list[str], rows: Rows, period: str, currency: str, document_id: UUID | None
) -> Iterator[bytes]:
    """The whole file; decided now whose it is, read later."""
    asked = {"period": period, "currency": currency, "id": document_id}
    wanted = {name: value for name, value in asked.items() if value}
    if current_tenant_id() is not None:
        tenants = iter([current_tenant()])
    elif speaker() == PLATFORM:
        tenants = _tenants(wanted)
    else:
        raise LookupError("nobody has documents to export")
    return csvsafe.copied(_chunks(header, rows, tenants, wanted))


def _chunks(
    header: list[str], rows: Rows, tenants: Iterator[Tenant], wanted: dict[str, Any]
) -> Iterator[bytes]:
    yield (",".join(header) + "\n").encode()
    for tenant in tenants:
        with tempfile.SpooledTemporaryFile(max_size=_MEMORY) as spool:
            with tenant_context(tenant):
                documents = list(
                    Document.objects.filter(status=DocumentStatus.ISSUED, **wanted).order_by(
                        "period", "number"
                    )
                )
                for chunk in rows(tenant, documents) if documents else ():
                    spool.write(chunk)
            spool.seek(0)
            while chunk := spool.read(1 << 16):
                yield chunk


def _tenants(wanted: dict[str, Any]) -> Iterator[Tenant]:
    """Tenants with such documents, in the order of their slugs."""
    with platform_context():
        narrowed = {("document" if name == "id" else name): value for name, value in wanted.items()}
        having = InvoiceProjection.objects.filter(status=DocumentStatus.ISSUED, **narrowed)
        found = list(
            Tenant.objects.filter(id__in=having.values("tenant").distinct()).order_by("slug")
        )
    yield from found


def copy(statement: str, parameters: dict[str, Any]) -> Iterator[bytes]:
    """The rows of a statement as CSV, in the tenant at hand."""
    copying = f"COPY ({statement}) TO STDOUT WITH (FORMAT csv)"
    with connection.cursor() as cursor, cursor.copy(copying, parameters) as chunks:
        for chunk in chunks:
            yield bytes(chunk)
