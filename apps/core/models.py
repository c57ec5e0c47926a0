"""Tables every app leans on: the outbox, work left for later, idempotency keys, secrets."""

from django.db import models

from apps.core import realms
from apps.core.clock import CurrentTransaction, NeoNow
from apps.core.uuids import uuid7


class OutboxEvent(realms.Public, models.Model):
    """An event written with its change and delivered after it, at least once, in order
    per subject.
    """

    id = models.BigAutoField(primary_key=True)
    xid = models.BigIntegerField(db_default=CurrentTransaction(), editable=False)
    tenant = models.UUIDField(null=True)  # None: the platform's own event
    name = models.CharField(max_length=80)
    subject = models.UUIDField()
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(db_default=NeoNow())
    delivered_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(db_default=NeoNow())
    last_error = models.TextField(default="")

    class Meta:
        indexes = [
            models.Index(
                fields=["id"], name="outbox_waiting", condition=models.Q(delivered_at=None)
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} {self.subject}"


class WorkPending(realms.Public, models.Model):
    """A tenant has work of this kind: the dispatcher takes these, so nothing loops over all
    tenants.
    """

    kind = models.CharField(max_length=60)
    tenant = models.UUIDField()
    due_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "tenant"], name="work_pending_once"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} of {self.tenant}"


class IdempotencyKey(realms.Both, models.Model):
    """The answer once given to a request, kept for whoever repeats it with the same key."""

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    actor = models.CharField(max_length=80)
    key = models.CharField(max_length=200)
    request_hash = models.CharField(max_length=64)
    status = models.PositiveSmallIntegerField(null=True)  # None: the first request is under way
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField(db_default=NeoNow())

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["actor", "key"], name="idempotency_key_once"),
        ]

    def __str__(self) -> str:
        return self.key


class Secret(realms.Both, models.Model):
    """Something only the product may read: sealed with its owner, table and row as
    associated data.
    """

    id = models.UUIDField(primary_key=True, default=uuid7, editable=False)
    name = models.CharField(max_length=120)
    sealed = models.BinaryField()
    created_at = models.DateTimeField(db_default=NeoNow())
    rotated_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return self.name
