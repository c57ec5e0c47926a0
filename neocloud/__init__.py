"""Wiring of NeoCloud OS: settings, URLs, Celery, errors, logging. No domain words here."""

from neocloud.celery import app as celery_app

__all__ = ["celery_app"]
