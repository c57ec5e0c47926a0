"""How pages answer: whole or the part htmx asks for, after a change, with errors in place."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from apps.core.errors import AppError


def wants_part(request: HttpRequest) -> bool:
    """Whether htmx asks for a part of the page; a boosted link or a step back wants all of it."""
    headers = request.headers
    return (
        headers.get("HX-Request") == "true"
        and headers.get("HX-Boosted") != "true"
        and headers.get("HX-History-Restore-Request") != "true"
    )


def drawn(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any],
    *,
    part: str = "rows",
    status: int = 200,
) -> HttpResponse:
    """The page, or its partial `part` when htmx asks: one address answers both."""
    name = f"{template}#{part}" if wants_part(request) else template
    response = render(request, name, dict(context), status=status)
    patch_vary_headers(response, ("HX-Request",))
    return response


def pdf(content: bytes, *, name: str) -> HttpResponse:
    """A PDF to be kept as `name`.pdf."""
    response = HttpResponse(content, content_type="application/pdf")
    response["Content-Disposition"] = f'attachment; filename="{name}.pdf"'
    response["Cache-Control"] = "no-store"
    return response


def changed(request: HttpRequest, url: str, message: Any) -> HttpResponse:
    """After a change: say so and go to the page that shows it, with htmx or without."""
    messages.success(request, str(message))
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return HttpResponseRedirect(url)


def blame(form: forms.BaseForm, error: AppError) -> None:
    """Put what a service refused beside the field it names, or above the form."""
    for part in error.errors:
        form.add_error(part.field if part.field in form.fields else None, part.detail)
