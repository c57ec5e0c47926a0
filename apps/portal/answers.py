"""What the portal's forms answer: to the next page, as a whole page or for htmx."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import ValidationError
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect


def go(request: HttpRequest, url: str, told: Any = "") -> HttpResponse:
    """Lead the browser to a page of ours, where `told` is said."""
    if told:
        messages.success(request, str(told))
    if request.headers.get("HX-Request") == "true":
        return HttpResponse(status=204, headers={"HX-Redirect": url})
    return HttpResponseRedirect(url)


def cleaned(form: Form) -> dict[str, Any]:
    """What the form holds. Raises ValidationError with every field's complaint."""
    if not form.is_valid():
        raise ValidationError(dict(form.errors.as_data()))
    return form.cleaned_data
