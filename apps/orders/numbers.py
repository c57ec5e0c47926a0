"""Numbers of orders and reservations: sequences of each tenant's schema."""

from django.db import connection


def next_order_serial() -> int:
    """The next serial of this tenant; one used by an order that was rolled back stays unused."""
    return _next("order_number_seq")


def next_reservation_serial() -> int:
    """The same for reservations."""
    return _next("reservation_number_seq")


def _next(sequence: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval(%s)", [sequence])
        (serial,) = cursor.fetchone()
    return int(serial)
