"""Where deployed servers call home."""

import json
from typing import Any
from uuid import UUID

from django.http import HttpRequest, JsonResponse
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST

from apps.provisioning import services, tasks
from apps.provisioning.errors import CallHomeMalformed, CallHomeRefused


@csrf_exempt
@require_POST
def call_home(request: HttpRequest, run_id: UUID) -> JsonResponse:
    """Take a server's report: `Authorization: Bearer <one-time token>`, a JSON object of at most 64
    KiB.
    """
    scheme, _space, token = request.headers.get("Authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not token:
        raise CallHomeRefused()
    report = _report(request)
    is_new = services.receive_call_home(
        run_id=run_id,
        token=token.strip(),
        report=report,
        remote=request.META.get("REMOTE_ADDR", ""),
    )
    if is_new:
        tasks.wake_after_commit(run_id)
    return JsonResponse({"received": True}, status=202 if is_new else 200)


def _report(request: HttpRequest) -> dict[str, Any]:
    """The body, read no further than the limit whatever the header promises."""
    promised = request.headers.get("Content-Length") or "0"
    if promised.isascii() and promised.isdigit():
        services.check_report_size(int(promised[:20]))
    body = request.read(services.LARGEST_REPORT + 1)
    services.check_report_size(len(body))
    try:
        report = json.loads(body, parse_constant=_no_such_number)
        json.dumps(report, allow_nan=False)  # 1e999 is read as infinity, which no JSON can say
    except (ValueError, RecursionError):
        raise CallHomeMalformed() from None
    if not isinstance(report, dict):
        raise CallHomeMalformed()
    return report


def _no_such_number(name: str) -> None:
    raise ValueError(f"{name} is no JSON")
