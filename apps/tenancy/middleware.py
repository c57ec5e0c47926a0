"""Host to tenant: the first thing that happens to a request."""

import time
from collections.abc import Callable

import structlog
from django.conf import settings
from django.core.exceptions import DisallowedHost
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import set_urlconf

from apps.tenancy.context import NOBODY_SIDE, PLATFORM_SIDE, platform_context, switch_to
from apps.tenancy.errors import TenantNotReady
from apps.tenancy.models import Tenant
from apps.tenancy.states import TenantStatus

REMEMBER_SECONDS = 30.0
ANY_HOST_PATHS = ("/call-home/", "/healthz", "/readyz")
_known: dict[str, tuple[float, Tenant | None]] = {}


class TenantMiddleware:
    """Point the connection, the URL table and the logs at the tenant or the platform of
    the host.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Serve the request on its side, then leave the connection speaking for nobody."""
        switch_to(NOBODY_SIDE)
        try:
            refusal = self.enter(request)
            return refusal or self.get_response(request)
        finally:
            switch_to(NOBODY_SIDE)
            structlog.contextvars.unbind_contextvars("tenant")

    def enter(self, request: HttpRequest) -> HttpResponse | None:
        """Switch sides; an answer is returned only when there is no side to be on."""
        from neocloud import errors  # the one place that renders errors

        set_urlconf(settings.PUBLIC_SCHEMA_URLCONF)
        request.urlconf = settings.PUBLIC_SCHEMA_URLCONF
        request.tenant = NOBODY_SIDE  # type: ignore[attr-defined]
        console = f"console.{settings.NEOCLOUD_BASE_DOMAIN}"
        if request.path.startswith(ANY_HOST_PATHS):  # whatever name or address was asked for
            request.META["HTTP_HOST"] = console
            request.META.pop("HTTP_X_FORWARDED_HOST", None)
        try:
            host = request.get_host().split(":")[0].lower()
        except DisallowedHost:
            return errors.answer(request, Http404())
        if host == console:
            request.tenant = PLATFORM_SIDE  # type: ignore[attr-defined]
            switch_to(PLATFORM_SIDE)
            return None
        tenant = tenant_of_host(host)
        if tenant is None:
            return errors.answer(request, Http404())
        if not tenant.is_ready:
            return errors.answer(request, TenantNotReady(tenant=tenant.name))
        request.tenant = tenant  # type: ignore[attr-defined]
        request.urlconf = settings.ROOT_URLCONF
        set_urlconf(settings.ROOT_URLCONF)
        structlog.contextvars.bind_contextvars(tenant=tenant.slug)
        switch_to(tenant)
        return None


def tenant_of_host(host: str) -> Tenant | None:
    """The open tenant behind a host name, remembered for half a minute in this process."""
    seen = _known.get(host)
    if seen is not None and seen[0] > time.monotonic():
        return seen[1]
    with platform_context():
        tenant: Tenant | None = (
            Tenant.objects.filter(domains__domain=host).exclude(status=TenantStatus.CLOSED).first()
        )
    if len(_known) > 10_000:
        _known.clear()
    if tenant is None or tenant.is_ready:
        _known[host] = (time.monotonic() + REMEMBER_SECONDS, tenant)
    return tenant


def forget_hosts() -> None:
    """Drop what this process remembers: after a tenant changed here, and between tests."""
    _known.clear()
