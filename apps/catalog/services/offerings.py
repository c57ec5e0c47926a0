"""Offerings: made, changed, retired; never deleted."""

from typing import Any

from django.db import transaction

from apps.audit import services as audit
from apps.catalog.errors import UnknownSku
from apps.catalog.models import Offering
from apps.catalog.services.rows import save_offering_row
from apps.core import clock


@transaction.atomic
def save_offering(*, actor: Any, sku: str, **values: Any) -> Offering:
    """Make or change an offering; references by code: gpu_model, images, audience (tenants' slugs).

    Orders already placed keep what they agreed on. Raises Invalid naming each field that is wrong.
    """
    offering, result, changes = save_offering_row({"sku": sku, **values})
    audit.record(
        actor,
        f"offering.{result}",
        offering,
        before={name: old for name, (old, _new) in changes.items()},
        after={name: new for name, (_old, new) in changes.items()},
    )
    return offering


@transaction.atomic
def retire_offering(*, sku: str, actor: Any, reason: str = "") -> Offering:
    """Sell it no more; what was sold runs on. Repeated, it changes nothing. Raises UnknownSku."""
    offering = Offering.objects.select_for_update(of=("self",)).filter(sku=sku).first()
    if offering is None:
        raise UnknownSku(field="sku", sku=sku)
    if offering.retired_at is None:
        offering.retired_at = clock.now()
        offering.save(update_fields=["retired_at"])
        audit.record(actor, "offering.retired", offering, reason=reason)
    return offering
