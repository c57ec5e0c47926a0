"""Random histories: rating in SQL against the slow sum in Python, on many of them.

Run as `python -m benchmarks.histories [HOW_MANY [FIRST_SEED]]`. A disagreement is printed with its
seed and ends with code 1; the same seeds give the same histories again.
"""

import logging
import os
import sys
import time

import django


def main(how_many: int, first: int) -> int:
    """Play the histories one after another, each in a transaction that is rolled back."""
    django.setup()
    logging.disable(logging.INFO)
    from django.conf import settings
    from django.db import connections

    from tests import databases

    name = databases.copy(f"bench_histories_{os.getpid()}")
    entry = databases.entry(databases.url_of("neo_app", name))
    connections["default"].settings_dict.update(entry)
    settings.DATABASES["default"].update(entry)
    try:
        return compare(range(first, first + how_many))
    finally:
        connections["default"].close()
        databases.drop(name)


def compare(seeds: range) -> int:
    """How many histories agree, and how many invoices and lines that were."""
    from apps.tenancy.context import platform_context, tenant_context
    from apps.tenancy.models import Tenant

    begun = time.perf_counter()
    invoices = lines = wrong = 0
    for seed in seeds:
        with platform_context():
            tenant = Tenant.objects.get(slug="acme")
        with tenant_context(tenant):
            for findings, count in played(seed, tenant):
                invoices, lines = invoices + 1, lines + count
                for finding in findings:
                    wrong += 1
                    print(f"seed {seed}: {finding}", flush=True)
    print(
        f"{len(seeds):,} histories  {invoices:,} invoices  {lines:,} lines  "
        f"{wrong} differences  {time.perf_counter() - begun:.0f} s"
    )
    return 1 if wrong else 0


def played(seed: int, tenant: object) -> list[tuple[list[object], int]]:
    """What the slow sum finds in each invoice of a history, and the invoice's lines."""
    from django.db import transaction

    from apps.invoicing import services
    from apps.invoicing.verify import verify_invoice
    from tests.builders import move_clock
    from tests.histories import a_history

    found: list[tuple[list[object], int]] = []
    with transaction.atomic():
        for closing in a_history(seed, tenant):  # type: ignore[arg-type]
            move_clock(closing.at)
            draft = services.draft_invoice(
                tenant=tenant,  # type: ignore[arg-type]
                period=closing.period,
                actor=None,
            )
            if draft is not None:
                issued = services.issue_invoice(document_id=draft.pk, actor=None)
                found.append((list(verify_invoice(issued)), issued.lines.count()))
        transaction.set_rollback(True)
    return found


if __name__ == "__main__":
    asked = [int(argument) for argument in sys.argv[1:]]
    raise SystemExit(main(*(asked + [2000, 0][len(asked) :])))
