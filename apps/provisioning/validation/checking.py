"""Asking a site, component by component; nothing is changed there."""

import time
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.audit import services as audit
from apps.catalog.models import Image
from apps.core import clock
from apps.core.errors import OutsideError, Unknown
from apps.inventory import selectors
from apps.inventory import services as inventory
from apps.inventory.models import Node, Site
from apps.provisioning import adapters
from apps.provisioning.adapters import web
from apps.provisioning.models import SiteCheck
from apps.provisioning.ports import Compute, SiteReport
from apps.provisioning.validation.rows import asked, row
from apps.provisioning.validation.trial import HOLD

CLOCK_LIMIT = timedelta(seconds=5)
SHOWN = 20


def validate_site(*, site: Site, actor: User | None, with_trial: bool = False) -> SiteCheck:
    """Ask a site what it needs to sell, keep the answers, and begin a trial when asked to.

    A trial deploys and cleans one free node without a customer; it goes on by itself.
    """
    began = clock.now()
    rows, report = _ask(site)
    cleans = report is not None and not report.cleaning_disabled_on
    is_good = all(one["ok"] is not False for one in rows)
    with transaction.atomic():
        inventory.mark_site_cleaning(site=site, cleans_automatically=cleans)
        check = SiteCheck.objects.create(
            site=site,
            actor=str(actor or ""),
            started_at=began,
            ended_at=None if with_trial else clock.now(),
            rows=rows,
            is_good=None if with_trial else is_good,
            stage=HOLD if with_trial else "",
            next_try_at=clock.now() if with_trial else None,
        )
        audit.record(
            actor,
            "site.validated",
            site,
            after={"check": str(check.pk), "good": is_good, "trial": with_trial},
        )
    return check


def _ask(site: Site) -> tuple[list[dict[str, Any]], SiteReport | None]:
    began = time.monotonic()
    rows: list[dict[str, Any]] = []
    report = None
    try:
        compute = adapters.compute_of(site)
        report = compute.describe()
    except (OutsideError, LookupError) as error:
        detail = getattr(error, "detail", str(error))
        rows.append(row("reachable", False, detail, seconds=time.monotonic() - began))
    else:
        rows.append(row("reachable", True, report.version, seconds=time.monotonic() - began))
        rows += [*_service_rows(compute, report), *_cleaning_rows(site, report)]
        rows += _node_rows(site, compute)
    rows += [*_image_rows(site), *_network_rows(site)]
    return rows, report


def _service_rows(compute: Compute, report: SiteReport) -> Iterator[dict[str, Any]]:
    is_new = _number(report.microversion) >= _number(report.needed)
    said = f"{report.microversion} (≥ {report.needed})" if report.needed else report.version
    yield row("dialect", is_new, said)
    yield asked("clock", lambda: _clock(compute))
    yield asked("list_nodes", lambda: sum(1 for _node in compute.list_nodes()))
    yield asked("list_claims", lambda: sum(1 for _claim in compute.list_claims()))
    yield asked("list_ports", lambda: sum(len(node.nics) for node in compute.discover()))
    some = next(iter(compute.list_nodes()), None) if report.nodes else None
    if some is not None:
        since = clock.now() - timedelta(days=1)
        yield asked(
            "history", lambda: compute.cleaning_since(some.infra_id, since).result, about=some.name
        )
        yield asked("validate", lambda: compute.validate(some.infra_id), about=some.name)


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _clock(compute: Compute) -> str:
    theirs = compute.tell_time()
    if theirs is None:
        raise Unknown("it does not say what time it is")
    apart = theirs - clock.now()
    if abs(apart) > CLOCK_LIMIT:
        raise Unknown(f"{apart.total_seconds():+.0f} s")
    return f"{apart.total_seconds():+.1f} s"


def _cleaning_rows(site: Site, report: SiteReport) -> Iterator[dict[str, Any]]:
    off = report.cleaning_disabled_on
    yield row("cleaning_nodes", not off, ", ".join(off[:SHOWN]))
    proven = (
        Node.objects.filter(site=site, cleaned_at__isnull=False).order_by("-cleaned_at").first()
    )
    seen = f"{proven.name} {proven.cleaned_at:%Y-%m-%d %H:%M} UTC" if proven else ""
    yield row("cleaning_seen", True if proven else None, seen)


def _node_rows(site: Site, compute: Compute) -> Iterator[dict[str, Any]]:
    began = time.monotonic()
    try:
        report = inventory.import_nodes(
            site=site, observed=list(compute.discover()), actor=None, dry_run=True
        )
    except OutsideError as error:
        yield row("importable", False, error.detail, seconds=time.monotonic() - began)
        return
    refused = [one for one in report.rows if one.errors]
    told = ", ".join(f"{name} {number}" for name, number in report.counts.items() if number)
    yield row("importable", not refused, told, seconds=time.monotonic() - began)
    for one in refused[:SHOWN]:
        said = "; ".join(f"{error.field}: {error.message}" for error in one.errors)
        yield row("importable", False, said, about=one.name)


def _image_rows(site: Site) -> Iterator[dict[str, Any]]:
    """What cannot be fetched does not speak against simulated hardware, which fetches nothing."""
    for image in Image.objects.filter(is_retired=False).order_by("code"):
        if image.source.startswith(("http://", "https://")):
            ask = partial(web.check_image, image.source, image.checksum)
            found = asked("image", ask, about=image.code)
            yield found | {"ok": None if site.is_simulated and not found["ok"] else found["ok"]}
        else:
            yield row("image", None, image.source, about=image.code)


def _network_rows(site: Site) -> Iterator[dict[str, Any]]:
    yield asked("call_home", lambda: web.check_call_home(site.call_home_url))
    pools = selectors.free_addresses(site)
    if not pools:
        yield row("addresses", False, "0")
    for name, free, total in pools:
        yield row("addresses", free > 0, f"{free} / {total}", about=name)
