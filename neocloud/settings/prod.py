"""Settings of a real installation: TLS in front, a connection pool in the web processes."""

from django.core.exceptions import ImproperlyConfigured

from neocloud.settings.base import *  # noqa: F403
from neocloud.settings.base import (
    NEOCLOUD_BASE_DOMAIN,
    NEOCLOUD_KEYS,
    SECRET_KEY,
)

for _name, _value in {"SECRET_KEY": SECRET_KEY, "NEOCLOUD_KEYS": NEOCLOUD_KEYS}.items():
    if not _value:
        raise ImproperlyConfigured(f"{_name} is not set; see docs/operations.md")

SECURE_SSL_REDIRECT = True
# Servers call home before they know a certificate authority of ours; probes ask from inside.
SECURE_REDIRECT_EXEMPT = [r"^call-home/", r"^healthz$", r"^readyz$", r"^metrics$"]
SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31536000
SECURE_HSTS_INCLUDE_SUBDOMAINS = True
SECURE_HSTS_PRELOAD = True
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
CSRF_TRUSTED_ORIGINS = [f"https://*.{NEOCLOUD_BASE_DOMAIN}"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"},
}
EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
