"""Things tests need, with a default for everything but the point of the test. Run inside a
tenant.
"""

import itertools
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from django.db import connection

from apps.accounts.models import Project, User
from apps.accounts.roles import Role
from apps.catalog.models import Contract, Price, PriceBook
from apps.core import clock, realms
from apps.core.uuids import uuid7
from apps.orders import projections
from apps.orders.models import Approval, Fact, FactSource, Order, Quote, Reservation, Service
from apps.orders.numbers import next_order_serial, next_reservation_serial
from apps.orders.states import OrderStatus, ReservationStatus, ServiceState
from apps.tenancy.context import platform_context

SKU = "bm-8xh200"
_counter = itertools.count(1)


def an_instant(text: str) -> datetime:
    """`2026-03-01T00:00:00+09:00` as an instant; without an offset it is UTC."""
    instant = datetime.fromisoformat(text)
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)


def a_person(*, role: str = Role.OWNER, name: str = "", **columns: Any) -> User:
    """A person on the side the connection is on."""
    number = next(_counter)
    return User.objects.create(
        email=columns.pop("email", f"person{number}@example.test"),
        name=name or f"Person {number}",
        role=role,
        **columns,
    )


def a_project(name: str = "", **columns: Any) -> Project:
    """A project of the tenant."""
    return Project.objects.create(name=name or f"project-{next(_counter)}", **columns)


def an_order(
    *,
    project: Project | None = None,
    person: User | None = None,
    sku: str = SKU,
    quantity: int = 1,
    gpus_each: int = 8,
    currency: str = "KRW",
    unit_price: Decimal | int | str = 4000,
    status: str = OrderStatus.ACCEPTED,
    **columns: Any,
) -> Order:
    """An accepted order with its quote; it has no services yet."""
    person = person or User.objects.first() or a_person()
    terms: dict[str, Any] = {
        "offering_id": uuid7(),
        "sku": sku,
        "offering_name": sku,
        "site_id": uuid7(),
        "site_code": "site-1",
        "quantity": quantity,
        "gpus_each": gpus_each,
        "currency": currency,
        "plan": "on_demand",
        "billing_basis": "allocated",
        "price_rule": "in_force",
        "price_id": uuid7(),
        "unit_price": Decimal(unit_price),
        "contract_id": None,
    }
    terms |= {name: columns.pop(name) for name in list(columns) if name in terms}
    quote = Quote.objects.create(
        **terms,
        price_kind="list",
        vat_rate=Decimal("0.10"),
        created_by=person,
        valid_until=datetime(2100, 1, 1, tzinfo=UTC),
    )
    return Order.objects.create(
        **terms,
        serial=columns.pop("serial", None) or next_order_serial(),
        project=project or Project.objects.first() or a_project(),
        placed_by=person,
        quote=quote,
        status=status,
        name=columns.pop("name", "train"),
        image_code=columns.pop("image_code", "ubuntu-24.04"),
        if_unavailable=columns.pop("if_unavailable", "fail"),
        **columns,
    )


def an_approval(**columns: Any) -> Approval:
    """An open question about an order that waits for approval; other words go to the order."""
    order = an_order(status=OrderStatus.PLACED, placed_at=clock.now(), **columns)
    return Approval.objects.create(
        order=order,
        asked_by=order.placed_by,
        rule="gpus:8:8",
        expires_at=clock.now() + timedelta(days=3),
    )


def a_booked_term(
    *, person: User | None = None, project: Project | None = None, **columns: Any
) -> Reservation:
    """A booked reservation of a month that begins in ten days, with its row in the console; it
    holds no nodes.
    """
    begins = clock.now_seconds() + timedelta(days=10)
    reservation = Reservation.objects.create(
        **{
            "serial": next_reservation_serial(),
            "project": project or Project.objects.first() or a_project(),
            "placed_by": person or User.objects.first() or a_person(),
            "status": ReservationStatus.BOOKED,
            "name": "term",
            "offering_id": uuid7(),
            "sku": SKU,
            "offering_name": SKU,
            "site_id": uuid7(),
            "site_code": "site-1",
            "quantity": 2,
            "gpus_each": 8,
            "starts_at": begins,
            "ends_at": begins + timedelta(days=30),
            "currency": "KRW",
            "price_id": uuid7(),
            "unit_price": Decimal(3000),
        }
        | columns
    )
    projections.write_reservation(reservation)
    return reservation


def a_service(*, order: Order | None = None, **columns: Any) -> Service:
    """A service of an order (a new one unless given), without facts. Other words go to the
    order.
    """
    mine = {field.name for field in Service._meta.fields} - {"order", "project", "sku"}
    own = {name: columns.pop(name) for name in list(columns) if name in mine}
    order = order or an_order(**columns)
    ordinal = own.pop("ordinal", order.services.count() + 1)
    return Service.objects.create(
        order=order,
        project=order.project,
        ordinal=ordinal,
        **{
            "name": f"{order.name}-{order.serial}-{ordinal}",
            "state": ServiceState.ACTIVE,
            "sku": order.sku,
            "gpus": order.gpus_each,
            "site_id": order.site_id,
            "site_code": order.site_code,
        }
        | own,
    )


def a_fact(
    service: Service,
    state: str = ServiceState.ACTIVE,
    start: datetime | str = "2026-03-10T00:00:00",
    end: datetime | str | None = None,
    *,
    recorded: datetime | str | None = None,
    supersedes: Fact | None = None,
    **columns: Any,
) -> Fact:
    """A fact of a service: live without an end, imported with one; recorded when it began unless
    said.
    """
    start_at = an_instant(start) if isinstance(start, str) else start
    end_at = an_instant(end) if isinstance(end, str) else end
    recorded_at = an_instant(recorded) if isinstance(recorded, str) else recorded
    source = FactSource.LIVE if end_at is None else FactSource.IMPORTED
    if supersedes is not None:
        source = FactSource.CORRECTION
    return Fact.objects.create(
        service=service,
        state=state,
        start_at=start_at,
        end_at=end_at,
        recorded_at=recorded_at or start_at,
        supersedes=supersedes,
        **{
            "source": source,
            "source_key": f"test-{uuid7()}",
            "cause": "test",
            "version": service.version,
        }
        | columns,
    )


def a_used_service(
    start: datetime | str = "2026-03-10T00:00:00",
    end: datetime | str = "2026-03-10T01:00:00",
    **columns: Any,
) -> Service:
    """A service that was active from start to end (live facts) and is terminated."""
    columns.setdefault("state", ServiceState.TERMINATED)
    service = a_service(**columns)
    first = an_instant(start) if isinstance(start, str) else start
    last = an_instant(end) if isinstance(end, str) else end
    a_fact(service, ServiceState.PROVISIONING, first - timedelta(minutes=10))
    a_fact(service, ServiceState.ACTIVE, first)
    a_fact(service, ServiceState.DELETING, last)
    a_fact(service, ServiceState.TERMINATED, last + timedelta(minutes=5))
    return service


def a_price_book(
    *, kind: str = "list", currency: str = "KRW", tenant: UUID | None = None
) -> PriceBook:
    """The list of a currency, or a tenant's contract book; the one there is, if there is one."""
    if kind == "contract":
        tenant = tenant or realms.current_tenant_id()
    with platform_context():
        book, _made = PriceBook.objects.get_or_create(
            kind=kind,
            currency=currency,
            tenant=tenant,
            defaults={
                "code": f"{kind}-{currency.lower()}-{next(_counter)}",
                "name": f"{kind} {currency}",
            },
        )
    return book


def a_price(
    amount: Decimal | int | str = 4000,
    *,
    sku: str = SKU,
    start: datetime | str = "2026-01-01T00:00:00",
    end: datetime | str | None = None,
    code: str = "",
    book: PriceBook | None = None,
    kind: str = "list",
    currency: str = "KRW",
) -> Price:
    """A price of a GPU-hour."""
    book = book or a_price_book(kind=kind, currency=currency)
    with platform_context():
        return Price.objects.create(
            book=book,
            code=code or f"{sku}-{next(_counter)}",
            sku=sku,
            amount=Decimal(amount),
            effective_from=an_instant(start) if isinstance(start, str) else start,
            effective_to=an_instant(end) if isinstance(end, str) else end,
        )


def move_clock(instant: datetime | str) -> None:
    """From now on in this transaction it is `instant`, and time goes on from there."""
    at = an_instant(instant) if isinstance(instant, str) else instant
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('neo.clock_offset', (%s::timestamptz - "
            "clock_timestamp())::text, true)",
            [at],
        )


def a_contract(
    *,
    start: datetime | str = "2026-01-01T00:00:00",
    end: datetime | str | None = None,
    currency: str = "KRW",
    tenant: UUID | None = None,
    **terms: Any,
) -> Contract:
    """A version of a contract of the tenant, signed when it began."""
    effective_from = an_instant(start) if isinstance(start, str) else start
    columns: dict[str, Any] = {
        "tenant": tenant or realms.current_tenant_id(),
        "code": f"ct-{next(_counter)}",
        "currency": currency,
        "effective_from": effective_from,
        "effective_to": an_instant(end) if isinstance(end, str) else end,
        "created_at": effective_from,
    }
    with platform_context():
        return Contract.objects.create(**columns | terms)


def a_reservation(
    *,
    starts_at: datetime | str = "2026-03-01T00:00:00",
    ends_at: datetime | str = "2026-06-01T00:00:00",
    sku: str = SKU,
    gpus_each: int = 8,
    **columns: Any,
) -> Reservation:
    """A reservation in force, of one node, booked when it began."""
    start = an_instant(starts_at) if isinstance(starts_at, str) else starts_at
    end = an_instant(ends_at) if isinstance(ends_at, str) else ends_at
    given: dict[str, Any] = {
        "serial": Reservation.objects.count() + 1,
        "project": Project.objects.first() or a_project(),
        "placed_by": User.objects.first() or a_person(),
        "status": ReservationStatus.ACTIVE,
        "name": f"reserved-{next(_counter)}",
        "offering_id": uuid7(),
        "sku": sku,
        "offering_name": sku,
        "site_id": uuid7(),
        "site_code": "site-1",
        "quantity": 1,
        "gpus_each": gpus_each,
        "starts_at": start,
        "ends_at": end,
        "currency": "KRW",
        "price_id": uuid7(),
        "unit_price": Decimal(3100),
        "begun_at": start,
        "created_at": start,
    }
    return Reservation.objects.create(**given | columns)
