"""Tasks carry their tenant: in groups, chords, retries and delays (case S02), on a worker."""

import pytest
from celery import chord, group, shared_task
from celery.contrib.testing.worker import start_worker
from celery.exceptions import Reject
from django.db import connection, connections
from kombu import pools

from apps.core.realms import speaker
from apps.tenancy.context import platform_context, tenant_context
from neocloud.celery import app


def _note(what: str) -> None:
    """Write the schema that is seen, where every side can."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO public.seen (what, schema, speaker)"
            " SELECT %s, current_schema(), current_setting('neo.tenant')",
            [what],
        )


@shared_task(name="tests.see", ignore_result=False)
def see(what: str) -> str:
    _note(what)
    return what


@shared_task(name="tests.gather", ignore_result=False)
def gather(parts: list[str]) -> None:
    _note("callback of " + "".join(sorted(parts)))


@shared_task(name="tests.fail_once", bind=True, max_retries=2)
def fail_once(self) -> None:
    _note(f"try {self.request.retries}")
    if not self.request.retries:
        raise self.retry(countdown=0)


@shared_task(name="tests.of_the_platform", platform=True)
def of_the_platform() -> None:
    _note("platform")


def _forget_broker() -> None:
    """Let the application open its connections anew, to the broker it is told of now."""
    app._pool = None
    app.amqp._producer_pool = None
    app._backend_cache = None
    vars(app._local).pop("backend", None)
    pools.reset()


@pytest.fixture
def worker(own_database, settings):
    """A worker on an in-memory broker, and a table where tasks say what they saw."""
    with own_database.connect("neo_owner") as owner:
        owner.execute(
            "CREATE TABLE public.seen (id bigserial, what text, schema text, speaker text)"
        )
        owner.execute("GRANT ALL ON public.seen, public.seen_id_seq TO neo_app")
    names = ("broker_url", "broker_read_url", "broker_write_url", "result_backend")
    before = {name: app.conf[name] for name in (*names, "task_ignore_result")}
    app.conf.update(dict.fromkeys(names[:3], "memory://"))
    app.conf.update(result_backend="cache+memory://", task_ignore_result=False)
    app.set_current()
    _forget_broker()
    with start_worker(
        app, pool="threads", concurrency=2, perform_ping_check=False, loglevel="ERROR"
    ):
        yield
    app.conf.update(before)
    _forget_broker()
    connections.close_all()


def _seen(own_database, count: int) -> list[tuple[str, str, str]]:
    """The records, once there are as many; the database tells when one is added."""
    with own_database.connect("neo_owner") as owner:
        for _wait in range(300):
            rows = owner.execute(
                "SELECT what, schema, speaker FROM public.seen ORDER BY id"
            ).fetchall()
            if len(rows) >= count:
                return rows
            owner.execute("SELECT pg_sleep(0.05)")
        return rows


def test_a_group_its_callback_a_retry_and_a_delay_keep_their_tenant(own_database, worker):
    acme = own_database.tenant("acme")
    with tenant_context(acme):
        chord(group(see.s(part) for part in "abc"), gather.s()).apply_async()
        fail_once.delay()
        see.apply_async(("late",), countdown=1)
    rows = _seen(own_database, 7)
    assert sorted(what for what, *_where in rows) == [
        "a", "b", "c", "callback of abc", "late", "try 0", "try 1",
    ]  # fmt: skip
    assert {where for _what, *where in map(list, rows) for where in [tuple(where)]} == {
        ("t_acme", str(acme.pk))
    }


def test_tasks_of_two_tenants_and_the_platform_on_one_worker_stay_apart(own_database, worker):
    acme, globex = own_database.tenant("acme"), own_database.tenant("globex")
    for number in range(10):
        tenant = (acme, globex)[number % 2]
        with tenant_context(tenant):
            see.delay(tenant.slug)
    of_the_platform.delay()
    rows = _seen(own_database, 11)
    assert {(what, schema) for what, schema, _speaker in rows} == {
        ("acme", "t_acme"),
        ("globex", "t_globex"),
        ("platform", "public"),
    }


def test_a_task_without_a_tenant_is_not_sent(db):
    with pytest.raises(RuntimeError, match="belongs to a tenant and was sent without one"):
        see.delay("x")
    with platform_context(), pytest.raises(RuntimeError, match="without one"):
        see.delay("x")


def test_a_task_that_arrives_without_a_tenant_is_refused_and_logged(db, caplog):
    with pytest.raises(Reject):
        see("x")
    assert ["task.refused" in record.getMessage() for record in caplog.records] == [True]


def test_a_task_leaves_the_connection_speaking_for_nobody(acme):
    with pytest.raises(Reject):
        see("x")
    assert speaker() == ""


def test_every_task_of_ours_has_the_base_that_carries_the_tenant(db):
    from apps.tenancy.tasks import TenantTask

    app.loader.import_default_modules()
    app.finalize()
    ours = [task for name, task in app.tasks.items() if name.startswith("apps.")]
    assert ours
    assert all(isinstance(task, TenantTask) for task in ours)
