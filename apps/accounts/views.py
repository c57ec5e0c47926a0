"""What the sign-in library names and we do not offer."""

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect


def closed(request: HttpRequest) -> HttpResponse:
    """Back to the start: mail addresses are not managed by the people themselves."""
    return HttpResponseRedirect("/")
