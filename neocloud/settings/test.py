"""Settings of the test suite: fast hashing, mail kept in memory, tasks called by the tests."""

from neocloud.settings.base import *  # noqa: F403
from neocloud.settings.base import CACHES, DATABASES

SECRET_KEY = "tests only: guards nothing"  # noqa: S105
NEOCLOUD_KEYS = "test:" + "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
DATABASES["default"]["CONN_MAX_AGE"] = 0
CACHES["default"] = {
    "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
    "KEY_FUNCTION": "apps.tenancy.cache.make_key",
}
WHITENOISE_USE_FINDERS = True
STATIC_ROOT = None  # type: ignore[assignment]  # served from where they lie
NEOCLOUD_FAKE_DRIVER = True
