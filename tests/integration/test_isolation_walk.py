"""The isolation walk: every URL, operation, task × own tenant, other tenant, platform, nobody."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
from celery.exceptions import Reject
from django.core.cache import cache
from django.db import connection, transaction
from django.urls import URLPattern, get_resolver, reverse

from apps.accounts.models import User
from apps.accounts.roles import PLATFORM_ROLES, TENANT_ROLES, Role, allows
from apps.accounts.selectors import recipient_of
from apps.accounts.services import create_access_key
from apps.core import clock
from apps.core.uuids import uuid7
from apps.inventory.models import Ticket
from apps.inventory.services import plan_maintenance
from apps.invoicing import services as invoicing
from apps.invoicing.models import DocumentLine, InvoiceRun
from apps.notices.models import Notice
from apps.notices.services import tell, tell_operators
from apps.orders.models import Order, Quote, Service
from apps.orders.services import quote_reservation
from apps.provisioning.models import FailurePolicy, Finding, Leak, Run, SiteCheck
from apps.tenancy import rules
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.tasks import HEADER
from neocloud.celery import app
from tests import isolation_table
from tests.builders import (
    a_booked_term,
    a_contract,
    a_used_service,
    an_approval,
    an_instant,
    move_clock,
)
from tests.integration.console.operator import a_world, fill
from tests.isolation_table import SIGNED_IN, Route
from tests.people import Browser, a_browser, a_person, an_operator

MARK = "zebra"  # stands in every name that belongs to acme
SIGN_IN = "/account/login/"
URLCONF = {"tenant": "neocloud.urls_tenant", "platform": "neocloud.urls_platform"}
TABLE = {"tenant": isolation_table.TENANT, "platform": isolation_table.PLATFORM}
HOST = {"tenant": "acme", "platform": "console"}
# Parts of a URL, the thing they name, and whether a tenant owns it.
OWNED = {
    name: name.removesuffix("_id")
    for name in (
        "approval_id", "approval", "order_id", "order", "reservation_id",
        "reservation", "service_id", "service", "quote_id",
        "quote", "person_id", "person",
        "project_id", "project", "notice_id", "notice", "line_id", "line", "document_id",
    )
} | {"document_id": "invoice", "invoice": "invoice"}  # fmt: skip
SHARED = {
    name: name.removesuffix("_id")
    for name in ("run_id", "run", "leak_id", "leak", "policy_id", "policy", "override",
                 "node_id", "node", "ticket_id", "ticket", "site_id", "site",
                 "tenant_id", "tenant", "book_id", "book", "sku", "name", "form", "verb",
                 "uidb36", "key")
} | {"code": "code", "invoice_run": "invoice_run"}  # fmt: skip


@dataclass
class Walker:
    """Somebody who tries every door: a session for pages, an access key for programs."""

    name: str
    browser: Browser
    token: str = ""


def _patterns(resolver: Any, spaces: tuple[str, ...] = ()) -> Iterator[tuple[str, URLPattern]]:
    for one in resolver.url_patterns:
        if isinstance(one, URLPattern):
            yield ":".join((*spaces, one.name or f"unnamed {one.pattern}")), one
        else:
            yield from _patterns(one, spaces + ((one.namespace,) if one.namespace else ()))


def _routes(side: str) -> dict[str, URLPattern]:
    return dict(_patterns(get_resolver(URLCONF[side])))


@pytest.fixture
def world(acme: Any) -> dict[str, str]:
    """One of everything, of acme and of the platform; the values that URLs are made of."""
    made = a_world(acme)
    fill(made)
    owner = made.shop.owner
    owner.name = f"{MARK} owner"
    owner.save()
    made.shop.project.name = f"{MARK} project"
    made.shop.project.save()
    Order.objects.update(name=f"{MARK}-train")
    for number, service in enumerate(Service.objects.all()):
        Service.objects.filter(pk=service.pk).update(name=f"{MARK}-{number}")
    ready = Service.objects.filter(state="active").first()
    a_used_service(person=owner, project=made.shop.project, name=f"{MARK}-used")
    asked = an_approval(
        person=owner,
        name=f"{MARK}-asked",
        project=made.shop.project,
        offering_id=made.shop.offering.pk,
        site_id=made.shop.site.pk,
    )
    booked = a_booked_term(
        person=owner,
        name=f"{MARK}-term",
        project=made.shop.project,
        offering_id=made.shop.offering.pk,
        sku=made.shop.offering.sku,
        site_id=made.shop.site.pk,
        site_code=made.shop.site.code,
    )
    booking = quote_reservation(
        actor=owner,
        offering_sku=made.shop.offering.sku,
        site_code=made.shop.site.code,
        quantity=1,
        starts_at=clock.now() + timedelta(days=30),
        ends_at=clock.now() + timedelta(days=60),
    )
    key, _token = create_access_key(name=f"{MARK} key", actor=owner)
    tell(to=recipient_of(owner), kind="test", dedup_key="t", subject=f"{MARK} told", body="x")
    with platform_context():
        staff = an_operator(Role.PLATFORM_ADMIN)
        staffs_key, _token = create_access_key(name="staff", actor=staff)
        tell_operators(kind="test", dedup_key="t", subject="told", body="x")
        operators = Notice.objects.filter(recipient=None).first()
        ticket, run = Ticket.objects.first(), Run.objects.first()
        leak = Leak.objects.first()
        policy = FailurePolicy.objects.create(sku="of-nothing")
        finding = Finding.objects.create(
            site=made.shop.site, kind="lessee", subject="n1", fix="clear_lessee", looks=2
        )
        check = SiteCheck.objects.create(site=made.shop.site)
        planned = plan_maintenance(
            site=made.shop.site,
            nodes=[made.nodes[0]],
            title="fans",
            starts_at=an_instant("2027-01-01T00:00:00"),
            ends_at=an_instant("2027-01-01T02:00:00"),
            actor=staff,
        )
    move_clock("2026-12-01T03:00:00")
    draft = invoicing.draft_invoice(tenant=acme, period="2026-03", actor=None)
    invoice = invoicing.issue_invoice(document_id=draft.pk, actor=None)
    return {
        "order": str(ready.order_id),
        "service": str(ready.pk),
        "approval": str(asked.pk),
        "reservation": str(booked.pk),
        "booking": str(booking.pk),
        "quote": str(Quote.objects.first().pk),
        "person": str(a_person(Role.MEMBER, name=f"{MARK} member").pk),
        "project": str(made.shop.project.pk),
        "ssh_key": str(made.shop.key.pk),
        "access_key": str(key.pk),
        "operators_access_key": str(staffs_key.pk),
        "notice": str(Notice.objects.filter(recipient=owner.pk).first().pk),
        "operators_notice": str(operators.pk),
        "invoice": str(invoice.pk),
        "line": str(DocumentLine.objects.filter(document=invoice).first().pk),
        "run": str(run.pk),
        "node": str(made.nodes[0].pk),
        "ticket": str(ticket.pk),
        "site": str(made.shop.site.pk),
        "pool": str(made.shop.site.address_pools.get().pk),
        "site_code": made.shop.site.code,
        "tenant": str(acme.pk),
        "book": str(made.shop.book.pk),
        "code": a_contract(start="2026-05-01T00:00:00").code,
        "invoice_run": str(InvoiceRun.objects.create(period="2026-02", currency="KRW").pk),
        "sku": made.shop.offering.sku,
        "name": "invoices",
        "form": "csv",
        "verb": "pause",
        "kind": "power",
        "finding": str(finding.pk),
        "leak": str(leak.pk),
        "override": str(uuid7()),
        "policy": str(policy.pk),
        "fix_verb": "accept",
        "check": str(check.pk),
        "maintenance": str(planned.pk),
        "announce": "announce",
        "uidb36": "1",
        "key": "no-such-key",
    }


def _walker(name: str, host: str, user: Any = None) -> Walker:
    if user is None:
        return Walker(name, a_browser(host))
    token = create_access_key(name="walk", actor=user)[1] if user.may("access_key.manage") else ""
    return Walker(name, a_browser(host, user=user), token)


@dataclass
class Door:
    """One method of one route, its URL to acme's things and one to things nobody has."""

    side: str
    name: str
    method: str
    permission: str | None
    url: str
    data: dict[str, Any]
    elsewhere: tuple[str, dict[str, Any]] | None  # None when nothing in it belongs to a tenant

    @property
    def is_api(self) -> bool:
        """Is it for programs?"""
        return self.name.startswith("api:")

    def __str__(self) -> str:
        return f"{self.side} {self.method.upper()} {self.name}"


def _doors(side: str, world: dict[str, str]) -> Iterator[Door]:
    for name, pattern in _routes(side).items():
        route = TABLE[side].get(name)
        if route is None:
            continue  # the first test names it
        parts = _parts(side, pattern, route, world)
        named = [part for part in route.things if part != "verb"]
        owned = {part: str(uuid7()) for part in parts if part in OWNED or part in named}
        nowhere = {thing: str(uuid7()) for thing in OWNED.values()}
        for method, permission in route.methods.items():
            sent = route.query if method == "get" else route.data
            data, data_nowhere = _filled(sent, world), _filled(sent, world | nowhere)
            elsewhere = None
            if side == "tenant" and (owned or data != data_nowhere):
                url = reverse(name, urlconf=URLCONF[side], kwargs=parts | owned)
                elsewhere = (url, data_nowhere)
            url = reverse(name, urlconf=URLCONF[side], kwargs=parts)
            yield Door(side, name, method, permission, url, data, elsewhere)


def _filled(data: Any, world: dict[str, str]) -> Any:
    """The data of a line with the ids of things in the place of their names in braces."""
    if isinstance(data, dict):
        return {name: _filled(value, world) for name, value in data.items()}
    if isinstance(data, list):
        return [_filled(value, world) for value in data]
    return data.format(**world) if isinstance(data, str) else data


def _parts(side: str, pattern: URLPattern, route: Route, world: dict[str, str]) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in pattern.pattern.regex.groupindex:
        thing = route.things.get(part) or OWNED.get(part) or SHARED.get(part)
        assert thing, f"the walk does not know what {part} of {pattern} names"
        if thing == "notice" and side == "platform":
            thing = "operators_notice"
        if thing == "access_key" and side == "platform":
            thing = "operators_access_key"
        if part == "site" and "str:site" in str(pattern.pattern):
            thing = "site_code"
        parts[part] = world.get(thing, thing)
    return parts


@contextmanager
def _undone() -> Iterator[None]:
    """What happens inside is rolled back, and no limit is used up."""
    cache.clear()
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _ask(walker: Walker, door: Door, url: str, data: dict[str, Any]) -> tuple[int, str, str]:
    """Status, Location and text of the answer."""
    headers = {"authorization": f"Bearer {walker.token}"} if door.is_api and walker.token else {}
    browser = walker.browser
    options: dict[str, Any] = {"headers": headers, "data": data}
    if door.method != "get" and door.is_api:
        options["content_type"] = "application/json"
    cookies = deepcopy(browser.cookies)
    try:
        answer = getattr(browser, door.method)(url, **options)
        body = b"".join(answer) if answer.streaming else answer.content
    except Exception as error:
        return 500, "", f"{type(error).__name__}: {error}"
    finally:
        browser.cookies = cookies  # signing out is undone with the rest
    return answer.status_code, answer.headers.get("Location", ""), body.decode(errors="replace")


def _is_sent_to_sign_in(status: int, location: str, door: Door) -> bool:
    return status == 401 if door.is_api else status == 302 and location.startswith(SIGN_IN)


def _plain(answer: tuple[int, str, str]) -> tuple[int, str, str]:
    """Without what differs each time: ids and form tokens."""
    status, location, text = answer
    hide = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\b[A-Za-z0-9]{64}\b")
    return status, hide.sub("·", location), hide.sub("·", text)


def _contents(schema: str) -> str:
    """A hash of all a tenant has but who looked at it."""
    tables = [
        model._meta.db_table
        for model in rules.tables(rules.Tenant, rules.Both)
        if model._meta.app_label not in ("sessions", "audit")
    ]
    parts = " || ".join(
        "coalesce((SELECT md5(string_agg(t::text, '' ORDER BY t::text))"
        f" FROM {schema}.{table} t), '')"
        for table in tables
    )
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT md5({parts})")
        return cursor.fetchone()[0]


@pytest.mark.parametrize("side", URLCONF)
def test_every_route_has_a_line_in_the_table_and_every_line_a_route(side):
    routes, table = set(_routes(side)), set(TABLE[side])
    assert not routes - table, "routes without a line in tests/isolation_table.py"
    assert not table - routes, "lines of tests/isolation_table.py without a route"


@pytest.mark.parametrize("side", URLCONF)
def test_every_view_asks_for_the_permission_in_the_table(side):
    wrong = []
    for name, pattern in _routes(side).items():
        view = pattern.callback
        for method, permission in TABLE[side][name].methods.items():
            endpoint = getattr(view, "cls", None)
            if endpoint is not None:
                operation = getattr(getattr(endpoint, method, None), "operation", None)
                asked = (operation.permission or SIGNED_IN) if operation else "no such method"
            else:
                asked = getattr(view, "permission", None)
            if asked != permission and not (name.startswith("account_") and asked is None):
                wrong.append(f"{name} {method}: asks {asked}, table says {permission}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("side", URLCONF)
def test_every_method_of_the_api_has_a_word_in_the_table(side):
    wrong = []
    for name, pattern in _routes(side).items():
        endpoint = getattr(pattern.callback, "cls", None)
        if endpoint is not None:
            verbs = ("get", "post", "put", "patch", "delete")
            have = {verb for verb in verbs if hasattr(endpoint, verb)}
            if have != set(TABLE[side][name].methods):
                wrong.append(f"{name}: {sorted(have)}")
    assert not wrong, "\n".join(wrong)


def test_nobody_and_the_other_side_pass_only_doors_open_to_all(acme, globex, world):
    """Nobody, staff on a tenant's host, a tenant on the console: all are asked to sign in."""
    with platform_context():
        staff = _walker("staff on acme's host", "acme", an_operator(Role.PLATFORM_ADMIN))
    with tenant_context(globex):
        globex_owner = a_person(Role.OWNER)
        stranger = _walker("globex on acme's host", "acme", globex_owner)
    mine = _walker("acme on the console", "console", a_person(Role.OWNER))
    who = {
        "tenant": [staff, stranger, _walker("nobody", "acme")],
        "platform": [mine, _walker("nobody", "console")],
    }
    wrong = []
    for side, walkers in who.items():
        for door in _doors(side, world):
            for walker in walkers:
                with _undone():
                    status, location, text = _ask(walker, door, door.url, door.data)
                asked = _is_sent_to_sign_in(status, location, door)
                if MARK in text.lower():
                    wrong.append(f"{door}: {walker.name} reads what is acme's")
                if door.permission is not None and not asked:
                    wrong.append(f"{door}: {walker.name} gets {status} {location}")
                if status == 500:
                    wrong.append(f"{door}: {walker.name}: {text[:200]}")
    assert not wrong, "\n".join(wrong)


def test_another_tenant_finds_acmes_things_as_little_as_things_that_are_not_there(
    acme, globex, world
):
    with tenant_context(globex):
        other = _walker("globex", "globex", a_person(Role.OWNER))
    before, wrong = _contents("t_acme"), []
    for door in _doors("tenant", world):
        with _undone(), tenant_context(globex):
            answer = _ask(other, door, door.url, door.data)
            if door.method != "get" and _contents("t_acme") != before:
                wrong.append(f"{door}: changes what is acme's")
        if MARK in answer[2].lower():
            wrong.append(f"{door}: shows what is acme's")
        if answer[0] >= 500:
            wrong.append(f"{door}: {answer[0]} {answer[2][:200]}")
        if door.elsewhere is None:
            continue
        with _undone(), tenant_context(globex):
            nothing = _ask(other, door, *door.elsewhere)
        if _plain(answer) != _plain(nothing):
            wrong.append(f"{door}: {answer[0]}, but {nothing[0]} for an id that is not there")
        if door.method == "get" and answer[0] != 404:
            wrong.append(f"{door}: {answer[0]} instead of 404")
    assert not wrong, "\n".join(wrong)


def _people(side: str, acme: Any) -> dict[str, Walker]:
    """One walker of each role of a side, on its own host."""
    with platform_context() if side == "platform" else tenant_context(acme):
        return {
            role: _walker(
                role, HOST[side], User.objects.filter(role=role).first() or a_person(role)
            )
            for role in (PLATFORM_ROLES if side == "platform" else TENANT_ROLES)
        }


@pytest.mark.parametrize("side", URLCONF)
def test_who_may_do_everything_is_let_in_everywhere(side, acme, world):
    first = Role.PLATFORM_ADMIN if side == "platform" else Role.OWNER
    walker, wrong = _people(side, acme)[first], []
    for door in _doors(side, world):
        with _undone():
            status, location, text = _ask(walker, door, door.url, door.data)
        refused = status in (401, 403, 404, 405) or (
            door.permission is not None and location.startswith(SIGN_IN)
        )
        broken = status >= 500 and status != 503  # 503: the site behind it does not answer here
        if (refused or broken) and not _proves_itself(door):
            wrong.append(f"{door}: {walker.name} gets {status} {text[:160]}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("side", URLCONF)
def test_a_role_that_does_not_hold_the_permission_is_refused(side, acme, world):
    walkers, wrong = _people(side, acme), []
    for door in _doors(side, world):
        if door.permission in (None, SIGNED_IN):
            continue
        for role, walker in walkers.items():
            if not allows(role, str(door.permission)):
                with _undone():
                    status, _location, _text = _ask(walker, door, door.url, door.data)
                if status != 403:
                    wrong.append(f"{door}: {role} gets {status}")
    assert not wrong, "\n".join(wrong)


def _proves_itself(door: Door) -> bool:
    """Doors whose caller is known by a key in the request, which the walk does not have."""
    return door.name in ("provisioning:call_home", "account_reset_password_from_key", "metrics")


def _our_tasks() -> dict[str, Any]:
    app.loader.import_default_modules()
    app.finalize()
    return {name: task for name, task in app.tasks.items() if name.startswith("apps.")}


def test_every_task_has_a_line_in_the_table_that_says_its_side():
    tasks = _our_tasks()
    assert {name: "platform" if task.platform else "tenant" for name, task in tasks.items()} == (
        isolation_table.TASKS
    )


def test_a_tenants_task_never_runs_without_a_tenant_and_never_touches_another(acme, globex, world):
    before = _contents("t_acme")
    for name, task in _our_tasks().items():
        if isolation_table.TASKS[name] != "tenant":
            continue
        with pytest.raises(Reject):
            task()
        task.push_request(**{HEADER: str(globex.pk)})
        try:
            task()
        finally:
            task.pop_request()
    assert _contents("t_acme") == before
