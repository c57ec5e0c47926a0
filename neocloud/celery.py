"""Celery: queues, the static beat schedule, and how a worker treats its database connection."""

import os
from typing import Any

from celery import Celery
from celery.signals import worker_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neocloud.settings.dev")

app = Celery("neocloud", task_cls="apps.tenancy.tasks:TenantTask")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.conf.CELERY_DB_REUSE_MAX = 100  # otherwise Celery opens a new connection for every task
app.autodiscover_tasks()

# Countdown, eta and autoretry are never used: whatever waits is a row, and these wake it up.
app.conf.beat_schedule = {
    "relay-outbox": {"task": "apps.tenancy.tasks.relay_outbox", "schedule": 2.0},
    "dispatch-pending-work": {"task": "apps.tenancy.tasks.dispatch_pending_work", "schedule": 2.0},
    "watch-sites": {"task": "apps.provisioning.tasks.watch_sites", "schedule": 2.0},
    "sweep-runs": {"task": "apps.provisioning.tasks.sweep_runs", "schedule": 2.0},
    "serve-queues": {"task": "apps.orders.tasks.serve_queues", "schedule": 5.0},
    "send-notices": {"task": "apps.notices.tasks.send_notices", "schedule": 5.0},
    "seal-audit": {"task": "apps.audit.tasks.seal_platform", "schedule": 30.0},
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
