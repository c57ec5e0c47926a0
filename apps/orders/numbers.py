"""Order numbers: one sequence per tenant schema."""

from django.db import connection


def next_order_serial() -> int:
    """The next serial of this tenant; one used by an order that was rolled back stays unused."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT nextval('order_number_seq')")
        (serial,) = cursor.fetchone()
    return int(serial)
