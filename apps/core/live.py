"""Parts of a page that renew themselves: the pace, the answer when nothing changed, the end."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string
from django.utils.html import format_html

IN_FLIGHT = 2
IDLE = 15
STOP_POLLING = 286


@dataclass(frozen=True)
class Live:
    """How a live part asks again: `seconds` between polls, 0 for never; drawn by `{% live %}`."""

    id: str
    url: str
    seconds: int


def live(request: HttpRequest, *, id: str = "live", busy: bool, ended: bool = False) -> Live:
    """The live part of this page: every 2 s while something is in flight, 15 s idle, never once
    ended.
    """
    seconds = 0 if ended else IN_FLIGHT if busy else IDLE
    return Live(id=id, url=request.get_full_path(), seconds=seconds)


def live_answer(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    part: Live,
    *,
    has_actions: bool = False,
) -> HttpResponse:
    """The fragment; 304 when the browser has it already; 286 when there is nothing more to come.

    `has_actions`: the page's partial `actions`, the buttons of its head, goes along, so that no
    button outlives what it does.

    A live part holds no `{% csrf_token %}`: it changes with every drawing. Use hx-post, whose
    header the page gives.
    """
    body = render_to_string(template, {**context, "part": part}, request=request)
    if has_actions:
        buttons = f"{template.partition('#')[0]}#actions"
        body += format_html(
            '<div class="btn-list" id="page-actions" hx-swap-oob="true">{}</div>',
            render_to_string(buttons, {**context, "part": part}, request=request),
        )
    tag = '"' + hashlib.sha256(body.encode()).hexdigest()[:24] + '"'
    if part.seconds and request.headers.get("If-None-Match") == tag:
        response = HttpResponse(status=304)
    else:
        response = HttpResponse(body, status=200 if part.seconds else STOP_POLLING)
    response["ETag"] = tag
    response["Cache-Control"] = "private, no-cache"
    response["Vary"] = "HX-Request, Cookie, Accept-Language"
    return response


def is_live(request: HttpRequest) -> bool:
    """Whether a live part of the page is asking, not a person."""
    return request.headers.get("Neo-Live") == "1"
