"""Settings shared by every environment. The environment is read here, once, and nowhere else."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from django.utils.translation import gettext_lazy as _

from neocloud.logging import configure
from neocloud.pool import forget_tenant

BASE_DIR = Path(__file__).resolve().parents[2]


def _database(url: str) -> dict[str, Any]:
    """A Django database entry from postgresql://user:password@host:port/name."""
    parts = urlsplit(url)
    return {
        "ENGINE": "apps.tenancy.backend",
        "NAME": parts.path.lstrip("/"),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": str(parts.port or 5432),
    }


SECRET_KEY = os.environ.get("SECRET_KEY", "")
NEOCLOUD_KEYS = os.environ.get("NEOCLOUD_KEYS", "")
NEOCLOUD_BASE_DOMAIN = os.environ.get("NEOCLOUD_BASE_DOMAIN", "localhost")
NEOCLOUD_PORT = os.environ.get("NEOCLOUD_PORT", "8000")
NEOCLOUD_CALL_HOME_URL = os.environ.get(
    "NEOCLOUD_CALL_HOME_URL", f"http://127.0.0.1:{NEOCLOUD_PORT}/call-home"
)
NEOCLOUD_PG_BIN = os.environ.get("NEOCLOUD_PG_BIN", "")
NEOCLOUD_TIMEZONE = os.environ.get("NEOCLOUD_TIMEZONE", "Asia/Seoul")  # of staff pages
NEOCLOUD_PAYMENT_DAYS = int(os.environ.get("NEOCLOUD_PAYMENT_DAYS", "30"))  # without a contract
NEOCLOUD_RESERVATION_DAYS = (  # the shortest and the longest term
    int(os.environ.get("NEOCLOUD_RESERVATION_SHORTEST_DAYS", "7")),
    int(os.environ.get("NEOCLOUD_RESERVATION_LONGEST_DAYS", "1096")),
)
NEOCLOUD_RESERVATION_AHEAD = int(os.environ.get("NEOCLOUD_RESERVATION_AHEAD_DAYS", "366"))
NEOCLOUD_WATCH_SECONDS = float(os.environ.get("NEOCLOUD_WATCH_SECONDS", "5"))
NEOCLOUD_RECONCILE_SECONDS = float(os.environ.get("NEOCLOUD_RECONCILE_SECONDS", "300"))
NEOCLOUD_GRACE_SECONDS = float(os.environ.get("NEOCLOUD_GRACE_SECONDS", "45"))  # of a difference
NEOCLOUD_PRICE_NOTICE_DAYS = int(os.environ.get("NEOCLOUD_PRICE_NOTICE_DAYS", "30"))
NEOCLOUD_METRICS_TOKEN = os.environ.get("NEOCLOUD_METRICS_TOKEN", "")
LAB_IRONIC_URL = os.environ.get("LAB_IRONIC_URL", "")
LAB_IRONIC_USER = os.environ.get("LAB_IRONIC_USER", "")
LAB_IRONIC_PASSWORD = os.environ.get("LAB_IRONIC_PASSWORD", "")
DEMO_PASSWORD = os.environ.get("DEMO_PASSWORD", "")

DEBUG = False
ALLOWED_HOSTS = [f".{NEOCLOUD_BASE_DOMAIN}", "127.0.0.1"]
ROOT_URLCONF = "neocloud.urls_tenant"
PUBLIC_SCHEMA_URLCONF = "neocloud.urls_platform"
WSGI_APPLICATION = "neocloud.wsgi.application"

# Every app stands in both lists: the realm of each model decides where its table is made (ADR
# 0002).
_APPS = [
    "django_tenants",
    "pgtrigger",
    "apps.tenancy",
    "apps.core",
    "apps.audit",
    "apps.notices",
    "apps.accounts",
    "apps.catalog",
    "apps.inventory",
    "apps.orders",
    "apps.provisioning",
    "apps.metering",
    "apps.invoicing",
    "apps.console",
    "apps.portal",
    "apps.finance",
    "apps.api",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "django.contrib.postgres",
    "allauth",
    "allauth.account",
    "django_htmx",
    "template_partials",
    "rest_framework",
    "drf_spectacular",
    "django_filters",
]
SHARED_APPS = _APPS
TENANT_APPS = _APPS
INSTALLED_APPS = _APPS

TENANT_MODEL = "tenancy.Tenant"
TENANT_DOMAIN_MODEL = "tenancy.Domain"
TENANT_SYNC_ROUTER = "apps.tenancy.router.RealmRouter"
DATABASE_ROUTERS = [TENANT_SYNC_ROUTER]
TENANT_LIMIT_SET_CALLS = True
PG_EXTRA_SEARCH_PATHS = ["extensions"]
SKIP_PG_EXTRA_VALIDATION = (
    True  # it would query at start; schema names begin with t_ and cannot clash
)

DATABASES = {
    "default": _database(
        os.environ.get("DATABASE_URL", "postgresql://neo_app@127.0.0.1:5432/neocloud")
    )
    | {"CONN_MAX_AGE": 600, "OPTIONS": {"application_name": "neocloud"}}
}
if os.environ.get("NEOCLOUD_DB_POOL"):  # web processes; Celery closes a pool after every task
    DATABASES["default"]["CONN_MAX_AGE"] = 0
    DATABASES["default"]["OPTIONS"]["pool"] = {
        "min_size": 1,
        "max_size": 8,
        "timeout": 10,
        "max_lifetime": 900,
        "reset": forget_tenant,
    }
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
PGTRIGGER_INSTALL_ON_MIGRATE = False
PGTRIGGER_MIGRATIONS = True

_CACHE_URL = os.environ.get("CACHE_URL", "")
CACHES: dict[str, Any] = {
    "default": {
        "BACKEND": "django.core.cache.backends.redis.RedisCache",
        "LOCATION": _CACHE_URL,
        "KEY_FUNCTION": "apps.tenancy.cache.make_key",
    }
    if _CACHE_URL
    else {
        "BACKEND": "django.core.cache.backends.locmem.LocMemCache",
        "KEY_FUNCTION": "apps.tenancy.cache.make_key",
    }
}

MIDDLEWARE = [
    "neocloud.logging.RequestContextMiddleware",
    "apps.tenancy.middleware.TenantMiddleware",
    "neocloud.errors.ErrorMiddleware",
    "neocloud.csp.ContentSecurityPolicyMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "apps.accounts.middleware.LanguageMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "apps.accounts.middleware.PersonMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": False,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
                "neocloud.context.shell",
            ],
            "loaders": [
                (
                    "template_partials.loader.Loader",
                    [
                        (
                            "django.template.loaders.cached.Loader",
                            [
                                "django.template.loaders.filesystem.Loader",
                                "django.template.loaders.app_directories.Loader",
                            ],
                        )
                    ],
                )
            ],
            "builtins": ["template_partials.templatetags.partials"],
        },
    }
]
FORM_RENDERER = "django.forms.renderers.DjangoTemplates"

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = ["allauth.account.auth_backends.AuthenticationBackend"]
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "django.contrib.auth.password_validation.MinimumLengthValidator",
        "OPTIONS": {"min_length": 12},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {
        "NAME": "django.contrib.auth.password_validation.UserAttributeSimilarityValidator",
        "OPTIONS": {"user_attributes": ("email", "name")},
    },
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/"
SILENCED_SYSTEM_CHECKS = [
    "auth.W004"
]  # unique ignoring case, by a constraint the check does not see
ACCOUNT_ADAPTER = "apps.accounts.adapter.AccountAdapter"
ACCOUNT_USER_MODEL_USERNAME_FIELD = None
ACCOUNT_LOGIN_METHODS = {"email"}
ACCOUNT_SIGNUP_FIELDS = ["email*", "password1*"]
ACCOUNT_EMAIL_VERIFICATION = "none"
ACCOUNT_PREVENT_ENUMERATION = True
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
# Lock-out: after five failures within five minutes an account, and after thirty an address, must
# wait.
ACCOUNT_RATE_LIMITS = {"login_failed": "30/5m/ip,5/5m/key", "login": "60/m/ip"}
CSRF_FAILURE_VIEW = "neocloud.errors.csrf_failure"

SESSION_COOKIE_NAME = "neo_session"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = 12 * 3600
CSRF_COOKIE_NAME = "neo_csrf"
CSRF_COOKIE_SAMESITE = "Lax"
X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", _("English")), ("ko", _("Korean"))]
LOCALE_PATHS = [BASE_DIR / "locale"]
LANGUAGE_COOKIE_NAME = "neo_language"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"
USE_THOUSAND_SEPARATOR = False

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = BASE_DIR / "build" / "static"
NEOCLOUD_FAKE_DRIVER = False  # sites without machines, for tests
NEOCLOUD_FONTS = Path(os.environ.get("NEOCLOUD_FONTS", BASE_DIR / "build" / "fonts"))  # of PDFs

EMAIL_BACKEND = os.environ.get("EMAIL_BACKEND", "django.core.mail.backends.console.EmailBackend")
DEFAULT_FROM_EMAIL = os.environ.get("NEOCLOUD_MAIL_FROM", f"cloud@{NEOCLOUD_BASE_DOMAIN}")

CELERY_BROKER_URL = os.environ.get("BROKER_URL", "")
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {"socket_connect_timeout": 2, "visibility_timeout": 600}
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_SERIALIZER = "json"
CELERY_ACCEPT_CONTENT = ["json"]
CELERY_TASK_DEFAULT_QUEUE = "default"
CELERY_TASK_ROUTES = {"apps.provisioning.*": {"queue": "engine"}}
CELERY_TASK_TIME_LIMIT = 120
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_TIMEZONE = "UTC"

LOGGING = configure(as_json=os.environ.get("NEOCLOUD_LOG", "console") == "json")

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "apps.api.authentication.AccessKeyAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["apps.api.parsing.ShallowJSONParser"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "neocloud.errors.api_exception_handler",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
    "COERCE_DECIMAL_TO_STRING": True,
}
SPECTACULAR_SETTINGS = {
    "TITLE": "NeoCloud OS API",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "COMPONENT_SPLIT_PATCH": False,
    "POSTPROCESSING_HOOKS": [],  # enumerations stay where they are used, and need no names
}
