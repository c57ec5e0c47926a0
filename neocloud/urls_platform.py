"""URLs of the platform's side: console, finance, call-home, API, health."""

from django.urls import include, path

handler400 = "neocloud.errors.bad_request"
handler403 = "neocloud.errors.permission_denied"
handler404 = "neocloud.errors.not_found"
handler500 = "neocloud.errors.server_error"

urlpatterns = [
    path("", include("neocloud.health")),
    path("", include("neocloud.metrics")),
    path("", include("neocloud.preferences")),
    path("", include("apps.accounts.urls")),
    path("", include("apps.console.urls")),
    path("finance/", include("apps.finance.urls")),
    path("call-home/", include("apps.provisioning.urls")),
    path("api/", include("apps.api.urls_platform")),
]
