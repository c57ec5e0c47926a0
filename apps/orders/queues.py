"""What a tenant may know of a queue it shares: its length, and nothing of anybody else."""

from uuid import UUID

from django.db import connection


def queue_length(*, site_id: UUID, resource_class: str) -> int:
    """How many orders of all tenants wait for this kind of node."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT public.orders_queue_length(%s, %s)", [site_id, resource_class])
        return int(cursor.fetchone()[0])
