"""Fills the template database, as the app role: the tenants every test finds. Run as a module."""

import django

django.setup()

from apps.tenancy.context import platform_context  # noqa: E402
from apps.tenancy.services import create_tenant  # noqa: E402
from tests.databases import TENANTS  # noqa: E402

with platform_context():
    for slug, name, currency in TENANTS:
        create_tenant(slug=slug, name=name, currency=currency)
