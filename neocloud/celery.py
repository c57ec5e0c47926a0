"""Celery: queues, the static beat schedule, and how a worker treats its database connection."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neocloud.settings.dev")

app = Celery("neocloud", task_cls="apps.tenancy.tasks:TenantTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.CELERY_DB_REUSE_MAX = 100  # otherwise Celery opens a new connection for every task
app.conf.result_expires = None  # no results are kept, so beat has none to clean up
app.autodiscover_tasks()


def _every(seconds: float, task: str) -> dict[str, object]:
    """A schedule entry whose message is dropped when a worker would only see it too late."""
    return {"task": task, "schedule": seconds, "options": {"expires": max(seconds, 5.0)}}


# Countdown, eta and autoretry are never used: whatever waits is a row, and these wake it up.
app.conf.beat_schedule = {
    "relay-outbox": _every(2.0, "apps.tenancy.tasks.relay_outbox"),
    "dispatch-pending-work": _every(2.0, "apps.tenancy.tasks.dispatch_pending_work"),
    "watch-sites": _every(2.0, "apps.provisioning.tasks.watch_sites"),
    "sweep-runs": _every(2.0, "apps.provisioning.tasks.sweep_runs"),
    "reconcile-sites": _every(5.0, "apps.provisioning.tasks.reconcile_sites"),
    "sweep-leaks": _every(15.0, "apps.provisioning.tasks.sweep_leaks"),
    "serve-queues": _every(5.0, "apps.orders.tasks.serve_queues"),
    "keep-capacity": _every(30.0, "apps.orders.tasks.keep_capacity"),
    "serve-deadlines": _every(5.0, "apps.orders.tasks.serve_deadlines"),
    "work-invoice-runs": _every(2.0, "apps.invoicing.tasks.work_invoice_runs"),
    "send-notices": _every(5.0, "apps.notices.tasks.send_notices"),
    "forget-answers": _every(600.0, "apps.core.tasks.forget_answers_of_platform"),
    "seal-audit": _every(30.0, "apps.audit.tasks.seal_platform"),
}


@worker_init.connect(weak=False)  # type: ignore[untyped-decorator]
def _refuse_unsafe_database(**kwargs: Any) -> None:
    """A worker on a role that sees every tenant, or behind a mixing pooler, does not start."""
    from django.core.exceptions import ImproperlyConfigured
    from django.db import connection

    from apps.tenancy.checks import refuse_unsafe_database

    try:
        refuse_unsafe_database()
    except ImproperlyConfigured as error:
        # Celery only logs other exceptions of this hook and would start all the same.
        raise SystemExit(f"the worker does not start: {error}") from error
    finally:
        connection.close()
