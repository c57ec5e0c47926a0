"""URLs of a tenant's side: portal and API."""

from django.urls import include, path

handler400 = "neocloud.errors.bad_request"
handler403 = "neocloud.errors.permission_denied"
handler404 = "neocloud.errors.not_found"
handler500 = "neocloud.errors.server_error"

urlpatterns = [
    path("", include("neocloud.preferences")),
    path("", include("apps.accounts.urls")),
    path("", include("apps.portal.urls")),
    path("api/", include("apps.api.urls_tenant")),
]
