"""Audit entries and the seals that chain them."""

from django.db import models

from apps.core import realms
from apps.core.clock import CurrentTransaction, NeoNow


class AuditEntry(realms.Both, realms.InsertOnly, models.Model):
    """One act: who, what, when, from where, on what, with which result; never a secret."""

    id = models.BigAutoField(primary_key=True)
    xid = models.BigIntegerField(db_default=CurrentTransaction(), editable=False)
    at = models.DateTimeField(db_default=NeoNow())
    actor_id = models.UUIDField(null=True)  # None: the platform itself
    actor_name = models.CharField(max_length=200)
    actor_side = models.CharField(max_length=10)  # tenant, platform or system
    action = models.CharField(max_length=80)
    subject_type = models.CharField(max_length=40)
    subject_id = models.CharField(max_length=60)
    subject_label = models.CharField(max_length=200, default="")
    result = models.CharField(max_length=20, default="done")
    reason = models.TextField(default="")
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)
    ip = models.GenericIPAddressField(null=True)
    request_id = models.CharField(max_length=64, default="")

    class Meta:
        indexes = [models.Index(fields=["subject_type", "subject_id"], name="audit_subject")]

    def __str__(self) -> str:
        return f"{self.action} {self.subject_label}"


class AuditSeal(realms.Both, realms.InsertOnly, models.Model):
    """A hash over entries and the seal before: a changed or missing entry breaks the chain."""

    id = models.BigAutoField(primary_key=True)
    first_entry = models.BigIntegerField()
    last_entry = models.BigIntegerField(unique=True)
    entries = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    sealed_at = models.DateTimeField(db_default=NeoNow())

    def __str__(self) -> str:
        return f"{self.first_entry}-{self.last_entry}"
