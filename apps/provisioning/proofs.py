"""A cleaning as the infrastructure's history tells it, as the proof that inventory keeps."""

from typing import Any

from apps.inventory.models import Site
from apps.provisioning.ports import CleaningRecord


def proof_of(record: CleaningRecord, site: Site) -> dict[str, Any]:
    """Steps, start, end and result as JSON; simulated hardware is labelled."""
    return {
        "steps": list(record.steps),
        "started_at": record.started_at.isoformat() if record.started_at else None,
        "ended_at": record.ended_at.isoformat() if record.ended_at else None,
        "result": record.result,
        "detail": record.detail,
        "simulated": site.is_simulated,
    }
