"""Invoicing, as Celery runs it."""

from celery import shared_task

from apps.invoicing import services


@shared_task(platform=True)
def close_month(period: str, currency: str) -> None:
    """Draft the month of every tenant of a currency."""
    services.close_month(period=period, currency=currency, actor=None)
