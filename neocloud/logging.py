"""Structured logs: events and facts, bound to request and tenant at the edge, secrets hidden."""

import re
import sys
import time
from collections.abc import Callable
from typing import Any

import structlog
from django.http import HttpRequest, HttpResponse
from structlog.typing import EventDict, Processor

from apps.core.secrets import redact
from apps.core.uuids import uuid7

REQUEST_ID_HEADER = "X-Request-ID"

_REQUEST_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{7,63}", re.ASCII)
_QUIET_PATHS = ("/healthz", "/readyz", "/static/")

log = structlog.get_logger(__name__)


def hide_secrets(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Processor: hide values under secret names, however deep, and credentials inside text."""
    hidden = redact({key: value for key, value in event.items() if not key.startswith("_")})
    event.update(hidden)  # type: ignore[call-overload]
    return event


def configure(*, as_json: bool, level: str = "INFO") -> dict[str, Any]:
    """Set structlog up and return Django's LOGGING, so that both write the same lines.

    JSON for machines, else coloured text for a console. Tracebacks never show local variables.
    """
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
        structlog.processors.format_exc_info,
        hide_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.stdlib.PositionalArgumentsFormatter(),
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    renderer: Processor = (
        structlog.processors.JSONRenderer(ensure_ascii=False, default=str)
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "formatters": {
            "structured": {
                "()": structlog.stdlib.ProcessorFormatter,
                "foreign_pre_chain": shared,
                "processors": [
                    structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                    renderer,
                ],
            }
        },
        "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "structured"}},
        "root": {"handlers": ["stderr"], "level": level},
        "loggers": {
            "django": {"handlers": [], "level": level, "propagate": True},
            # request.failed and request.done say the same with more facts
            "django.request": {"handlers": [], "level": "CRITICAL", "propagate": True},
            "django.server": {"handlers": [], "level": "WARNING", "propagate": True},
            "keystoneauth": {"handlers": [], "level": "WARNING", "propagate": True},
            "urllib3": {"handlers": [], "level": "WARNING", "propagate": True},
        },
    }


def request_id_of(request: HttpRequest) -> str:
    """The id of a request: the one it came with when well-formed, else a new one, kept."""
    known = getattr(request, "request_id", None)
    if isinstance(known, str):
        return known
    given = request.headers.get(REQUEST_ID_HEADER, "")
    request_id = given if _REQUEST_ID.fullmatch(given) else str(uuid7())
    request.request_id = request_id  # type: ignore[attr-defined]
    return request_id


class RequestContextMiddleware:
    """Bind the request id to every log line and give it back in the answer."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request with its id bound, and log one line about it."""
        structlog.contextvars.clear_contextvars()
        request_id = request_id_of(request)
        structlog.contextvars.bind_contextvars(request_id=request_id)
        started = time.perf_counter()
        try:
            response = self.get_response(request)
            response[REQUEST_ID_HEADER] = request_id
            if not request.path.startswith(_QUIET_PATHS):
                log.info(
                    "request.done",
                    **request_facts(request),
                    status=response.status_code,
                    milliseconds=round((time.perf_counter() - started) * 1000, 1),
                )
            return response
        finally:
            structlog.contextvars.clear_contextvars()


def request_facts(request: HttpRequest) -> dict[str, Any]:
    """What a log line says of a request: the route, never the path, which may hold a token."""
    match = request.resolver_match
    tenant = getattr(getattr(request, "tenant", None), "slug", None)
    facts = {"method": request.method, "route": match.route if match else None}
    return facts | ({"tenant": tenant} if tenant else {})
