"""The journal of a run: what happened, when, why, and who decided."""

from datetime import datetime

from apps.provisioning.models import Run, RunEvent


def write(run: Run, kind: str, *, step: str = "", detail: str = "", actor: str = "") -> None:
    """Add a line, in the transaction of what it tells."""
    RunEvent.objects.create(
        run_id=run.pk, tenant=run.tenant, step=step, kind=kind, detail=detail[:1000], actor=actor
    )


def last(run: Run, kind: str) -> datetime | None:
    """When something of this kind last happened."""
    event = RunEvent.objects.filter(run=run, kind=kind).order_by("-id").first()
    return event.at if event else None
