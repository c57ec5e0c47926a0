"""`manage.py compare_projections`: do the console's rows say what the tenants' own tables say?"""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.orders import projections
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.selectors import tenants


class Command(BaseCommand):
    """Compare every tenant's orders and services with their projections; mend them if asked."""

    help = __doc__

    def add_arguments(self, parser: Any) -> None:
        """One flag."""
        parser.add_argument("--rebuild", action="store_true", help="write every row again first")

    def handle(self, *args: Any, **options: Any) -> None:
        """Name each difference; exit 1 when there is one."""
        found = []
        with platform_context():
            everybody = list(tenants())
        for tenant in everybody:
            if not tenant.is_ready:
                found.append(f"{tenant.slug}: not ready")
                continue
            with tenant_context(tenant):
                if options["rebuild"]:
                    projections.rebuild()
                found += [f"{tenant.slug}: {one}" for one in projections.differences()]
        for one in found:
            self.stdout.write(one)
        if found:
            raise CommandError(f"{len(found)} differences; --rebuild mends them")
        self.stdout.write("projections agree")
