"""Sending mail, as Celery runs it."""

from celery import shared_task

from apps.notices import mail


@shared_task(platform=True)
def send_notices() -> None:
    """Send the mail of notices that are due."""
    mail.send_waiting()
