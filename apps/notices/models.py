"""Notices: what a person is told, once, in the app and by mail."""

from django.db import models

from apps.core import realms
from apps.core.clock import NeoNow
from apps.core.uuids import uuid7


class Notice(realms.Public, models.Model):
    """A message to one person, or to all operators when it names neither person nor tenant."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    tenant = models.UUIDField(null=True)
    recipient = models.UUIDField(null=True)
    email = models.EmailField(default="", blank=True)
    language = models.CharField(max_length=8, default="en")
    kind = models.CharField(max_length=60)
    subject = models.CharField(max_length=200)
    body = models.TextField()
    link = models.CharField(max_length=300, default="")
    dedup_key = models.CharField(max_length=200, unique=True)
    created_at = models.DateTimeField(db_default=NeoNow())
    read_at = models.DateTimeField(null=True)
    mailed_at = models.DateTimeField(null=True)
    mail_attempts = models.PositiveIntegerField(default=0)
    mail_error = models.TextField(default="")
    mail_next_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        indexes = [
            models.Index(
                fields=["created_at"],
                name="notice_to_mail",
                condition=models.Q(mailed_at=None) & ~models.Q(email=""),
            )
        ]

    def __str__(self) -> str:
        return self.subject
