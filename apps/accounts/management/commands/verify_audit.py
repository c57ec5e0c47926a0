"""`manage.py verify_audit`: recompute the seals of every audit trail, platform and tenants."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from apps.audit.sealing import verify
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.selectors import tenants
from apps.tenancy.states import TenantStatus


class Command(BaseCommand):
    """Say how far each trail is sealed; fail where a chain is broken."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """The platform first, then each tenant."""
        with platform_context():
            broken = self._say("platform")
            everybody = list(tenants().exclude(status=TenantStatus.CREATING))
        for tenant in everybody:
            with tenant_context(tenant):
                broken += self._say(tenant.slug)
        if broken:
            raise CommandError("entries were changed or removed after they were sealed")

    def _say(self, side: str) -> int:
        verdict = verify()
        if verdict.broken_at is not None:
            self.stderr.write(f"{side}: broken at entry {verdict.broken_at}")
            return 1
        self.stdout.write(f"{side}: {verdict.sealed} sealed, {verdict.unsealed} unsealed")
        return 0
