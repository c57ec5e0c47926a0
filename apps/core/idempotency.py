"""One key, one effect: the answer to a request is kept in the transaction that did the work.

Whoever repeats the request with the same key gets the same answer; with another body, a Conflict. A
request that failed left nothing behind, so its key may be used again.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from apps.core import clock, outbox
from apps.core.errors import Conflict, Invalid
from apps.core.models import IdempotencyKey
from apps.core.realms import current_tenant_id

LONGEST = 200
KEPT = timedelta(days=7)  # after that a key may stand for another request
BATCH = 500


class KeyReused(Conflict):
    """The same key came with another request."""

    code = "idempotency_key_reused"
    message = _(
        "Idempotency-Key {key} was used for another request. Use a new key for a new request."
    )


class KeyMalformed(Invalid):
    """The key is empty, too long or not printable ASCII."""

    code = "idempotency_key_malformed"
    message = _("Idempotency-Key must be 1 to 200 printable ASCII characters.")


@dataclass(frozen=True)
class Answer:
    """What was answered: HTTP status and JSON body; `is_repeat` when it was kept from before."""

    status: int
    body: Any
    is_repeat: bool = False


def request_hash(*parts: Any) -> str:
    """A hash of what was asked: method, path and body in one canonical form."""
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def once(*, actor: str, key: str, asked: str, act: Callable[[], tuple[int, Any]]) -> Answer:
    """Run `act` once for (actor, key) and keep its answer; a second caller waits for the first.

    `asked` is a `request_hash`; `act` returns (status, JSON body) and does all its work in the
    database.
    """
    if not key or len(key) > LONGEST or not key.isascii() or not key.isprintable():
        raise KeyMalformed()
    with transaction.atomic():
        IdempotencyKey.objects.bulk_create(
            [IdempotencyKey(actor=actor, key=key, request_hash=asked)], ignore_conflicts=True
        )
        row = IdempotencyKey.objects.select_for_update().get(actor=actor, key=key)
        _forget_later()
        if row.request_hash != asked:
            raise KeyReused(key=key)
        if row.status is not None:
            return Answer(row.status, row.answer, is_repeat=True)
        status, body = act()
        row.status, row.answer = status, json.loads(json.dumps(body, default=str))
        row.save(update_fields=["status", "answer"])
        return Answer(status, row.answer)


def forget_old(*, limit: int = BATCH) -> datetime | None:
    """Remove answers kept long enough, at most `limit`; when the next one is due, None without any.

    Keys are made in the order of time, so the oldest are found without an index of their own.
    """
    oldest = IdempotencyKey.objects.order_by("id").values_list("pk", "created_at")
    past = clock.now() - KEPT
    old = [pk for pk, created_at in oldest[:limit] if created_at <= past]
    IdempotencyKey.objects.filter(pk__in=old).delete()
    following = oldest.first()
    return following[1] + KEPT if following else None


def _forget_later() -> None:
    """Leave the work of forgetting for the day it is due; the platform's own has a schedule."""
    tenant = current_tenant_id()
    if tenant is not None:
        outbox.hint_work("forget_answers", tenant=tenant, due_at=clock.now() + KEPT)
