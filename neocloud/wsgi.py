"""The WSGI entry point that granian serves."""

import os

from django.core.wsgi import get_wsgi_application
from django.db import connection

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neocloud.settings.prod")
os.environ.setdefault("NEOCLOUD_DB_POOL", "1")
application = get_wsgi_application()

from apps.tenancy.checks import refuse_unsafe_database  # noqa: E402 - after the set-up of Django

refuse_unsafe_database()
connection.close()
