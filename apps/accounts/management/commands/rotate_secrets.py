"""`manage.py rotate_secrets`: seal every stored secret with the current key of NEOCLOUD_KEYS."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import transaction

from apps.core import clock
from apps.core.models import Secret
from apps.core.realms import speaker
from apps.core.secrets import SecretError, needs_rotation, rotated
from apps.tenancy.context import platform_context, tenant_context
from apps.tenancy.selectors import tenants
from apps.tenancy.states import TenantStatus


class Command(BaseCommand):
    """Once it says 0 left, older keys may be taken out of NEOCLOUD_KEYS."""

    help = __doc__

    def handle(self, *args: Any, **options: Any) -> None:
        """The platform first, then each tenant; a secret that cannot be read is named and left."""
        with platform_context():
            left = self._rotate("platform")
            everybody = list(tenants().exclude(status=TenantStatus.CREATING))
        for tenant in everybody:
            with tenant_context(tenant):
                left += self._rotate(tenant.slug)
        if left:
            raise CommandError(f"{left} secrets could not be read; keep the older keys")

    def _rotate(self, side: str) -> int:
        done = left = 0
        for secret_id in list(Secret.objects.order_by("id").values_list("id", flat=True)):
            try:
                done += _rotate_one(secret_id)
            except SecretError as error:
                left += 1
                self.stderr.write(f"{side}: {error}")
        self.stdout.write(f"{side}: {done} rotated, {left} left")
        return left


@transaction.atomic
def _rotate_one(secret_id: Any) -> int:
    secret = Secret.objects.select_for_update().filter(pk=secret_id).first()
    if secret is None or not needs_rotation(secret.sealed):
        return 0
    place = {"owner": speaker(), "table": Secret._meta.db_table, "row": str(secret.pk)}
    secret.sealed = rotated(secret.sealed, **place)
    secret.rotated_at = clock.now()
    secret.save(update_fields=["sealed", "rotated_at"])
    return 1
