"""`/healthz`: the process answers. `/readyz`: it can serve, with one line per thing it needs."""

from typing import Any

from django.conf import settings
from django.db import connection
from django.http import HttpRequest, JsonResponse
from django.urls import path
from kombu.connection import Connection

from apps.tenancy.checks import unsafe_database


def healthz(request: HttpRequest) -> JsonResponse:
    """Alive; asks nothing of anybody."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """Ready when the database answers as the app role, its schema is ours, and the
    broker answers.
    """
    parts = {"database": _database(), "broker": _broker()}
    ready = all(state == "ok" for state in parts.values())
    return JsonResponse(
        {"status": "ok" if ready else "failing", **parts}, status=200 if ready else 503
    )


def _database() -> str:
    try:
        if unsafe_database():
            return "unsafe role"
        with connection.cursor() as cursor:
            cursor.execute("SELECT public.neo_now()")
    except Exception as error:
        return type(error).__name__
    return "ok"


def _broker() -> str:
    try:
        broker: Any = Connection(settings.CELERY_BROKER_URL, connect_timeout=2)  # type: ignore[no-untyped-call]
        with broker:
            broker.ensure_connection(max_retries=1, timeout=2)
    except Exception as error:
        return type(error).__name__
    return "ok"


urlpatterns = [path("healthz", healthz, name="healthz"), path("readyz", readyz, name="readyz")]
