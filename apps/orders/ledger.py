"""The lock between those who write facts and those who make invoices of them.

Writers of facts hold the shared lock to the end of their transaction, a draft takes the exclusive
one before it reads its `as_of`: so a fact is either visible to the draft or recorded after its
`as_of`, never lost between.
"""

from django.db import connection, transaction

from apps.core.realms import current_tenant_id

FACTS = 0x6E656F02  # the class of our advisory locks on facts; the object is the tenant


def lock_facts_shared() -> None:
    """Take part in writing facts of this tenant until the transaction ends."""
    _lock("SELECT pg_advisory_xact_lock_shared(%s, hashtext(%s))")


def lock_facts_exclusive() -> None:
    """Wait until nobody writes facts of this tenant, and keep writers out until we have ended."""
    _lock("SELECT pg_advisory_xact_lock(%s, hashtext(%s))")


def _lock(statement: str) -> None:
    tenant = current_tenant_id()
    if tenant is None:
        raise LookupError("facts belong to a tenant, and this connection is in none")
    if not transaction.get_connection().in_atomic_block:
        raise RuntimeError("the lock on facts lasts as long as a transaction, and there is none")
    with connection.cursor() as cursor:
        cursor.execute(statement, [FACTS, str(tenant)])
