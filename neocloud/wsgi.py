"""The WSGI entry point that granian serves."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "neocloud.settings.prod")
os.environ.setdefault("NEOCLOUD_DB_POOL", "1")
application = get_wsgi_application()
