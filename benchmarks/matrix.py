"""The fault matrix: every step of every blueprint against every fault, on the fake site.

Run by `./dev bench matrix`; NEOCLOUD_MATRIX="deploy killed" chooses the cases that contain these
words. Prints a table of cases tried and right; the code is 1 if any is wrong.
"""

import logging
import os
import sys
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import django

django.setup()
logging.disable(logging.CRITICAL)

from django.conf import settings  # noqa: E402
from django.db import connections  # noqa: E402

from apps.tenancy.context import platform_context  # noqa: E402
from apps.tenancy.models import Tenant  # noqa: E402
from tests import databases  # noqa: E402
from tests.integration.provisioning import matrix  # noqa: E402
from tests.integration.provisioning.strikes import FAULTS  # noqa: E402


def main(words: list[str]) -> int:
    """Make a database, try every case, drop it."""
    name = databases.copy(f"matrix_{os.getpid()}")
    settings.DATABASES["default"].update(databases.entry(databases.url_of("neo_app", name)))
    connections["default"].settings_dict.update(settings.DATABASES["default"])
    try:
        with platform_context():
            return try_all(Tenant.objects.get(slug="acme"), words)
    finally:
        connections["default"].close()
        databases.drop(name)


def try_all(tenant: Tenant, words: list[str]) -> int:
    """Try the cases; 1 if any went wrong."""
    began = time.monotonic()
    chosen = [one for one in matrix.cases(tenant) if all(word in str(one) for word in words)]
    tried: Counter[tuple[str, str]] = Counter()
    right: Counter[tuple[str, str]] = Counter()
    for case in chosen:
        where = (case.place.blueprint + (" undone" if case.place.undoing else ""), case.fault.name)
        found = matrix.problems(case, tenant)
        tried[where] += 1
        right[where] += not found
        for text in found:
            print(f"WRONG {case}: {text}", flush=True)
    _table(tried, right)
    total, good = sum(tried.values()), sum(right.values())
    print(f"{total} cases tried, {good} right, in {time.monotonic() - began:.0f} s")
    return int(good != total or not total)


def _table(tried: Counter[tuple[str, str]], right: Counter[tuple[str, str]]) -> None:
    columns = list(dict.fromkeys(where for where, _fault in tried))
    print(f"{'right / tried':<28}" + "".join(f"{name:>24}" for name in columns))
    for fault in FAULTS:
        cells = [f"{right[name, fault.name]} / {tried[name, fault.name]}" for name in columns]
        print(f"{fault.name:<28}" + "".join(f"{cell:>24}" for cell in cells))


if __name__ == "__main__":
    raise SystemExit(main(os.environ.get("NEOCLOUD_MATRIX", "").split()))
