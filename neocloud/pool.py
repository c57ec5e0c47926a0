"""What happens to a database connection when a web request gives it back to the pool."""

from typing import Any


def forget_tenant(connection: Any) -> None:
    """Leave a connection that finds no table and is nobody: a stray raw use fails instead of
    reading a tenant.
    """
    if connection.info.transaction_status:
        connection.rollback()
    connection.execute("SET search_path = ''; SET neo.tenant = ''")
    if not connection.autocommit:
        connection.commit()
