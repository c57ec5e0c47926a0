"""Invoicing, as Celery runs it."""

from celery import shared_task

from apps.invoicing import runs


@shared_task(platform=True)
def work_invoice_runs() -> None:
    """Draft and issue what invoice runs wait for, for a few seconds."""
    runs.work()
