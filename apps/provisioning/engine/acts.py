"""Acts upon runs stand in the platform's audit trail, whoever's service the work is for."""

from typing import Any

from apps.audit import services as audit
from apps.tenancy.context import platform_context


def record(actor: Any, action: str, subject: Any, **facts: Any) -> None:
    """Record an act inside its transaction."""
    with platform_context():
        audit.record(actor, action, subject, **facts)
