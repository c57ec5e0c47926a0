"""Mail made from notices: claimed with a lease, sent outside any transaction, tried again."""

from datetime import timedelta
from uuid import UUID

import structlog
from django.conf import settings
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import QuerySet

from apps.core import clock
from apps.notices.models import Notice
from apps.notices.services import note_mail_failed, note_mailed

log = structlog.get_logger(__name__)
MOST_ATTEMPTS = 10
_FIRST_WAIT = timedelta(seconds=30)
_LONGEST_WAIT = timedelta(hours=1)


def send_waiting(*, limit: int = 50) -> int:
    """Send what is due; returns how many the server took.

    A process that dies between sending and noting it sends the same message again, under the same
    Message-ID.
    """
    sent = 0
    for notice_id in list(_due()[:limit]):
        notice = _claim(notice_id)
        if notice is not None and _send(notice):
            sent += 1
    return sent


def _due() -> QuerySet[Notice, UUID]:
    return (
        Notice.objects.filter(
            mailed_at=None, mail_attempts__lt=MOST_ATTEMPTS, mail_next_at__lte=clock.now()
        )
        .exclude(email="")
        .order_by("created_at")
        .values_list("id", flat=True)
    )


@transaction.atomic
def _claim(notice_id: UUID) -> Notice | None:
    """Take a notice for this try and set the next one now, in case nobody comes back."""
    notice = (
        Notice.objects.select_for_update(skip_locked=True)
        .filter(pk=notice_id, mailed_at=None, mail_next_at__lte=clock.now())
        .first()
    )
    if notice is None:
        return None
    notice.mail_next_at = clock.now() + min(_FIRST_WAIT * 2**notice.mail_attempts, _LONGEST_WAIT)
    notice.mail_attempts += 1
    notice.save(update_fields=["mail_next_at", "mail_attempts"])
    return notice


def _send(notice: Notice) -> bool:
    message = EmailMessage(
        subject=" ".join(notice.subject.split()),
        body="\n\n".join(filter(None, (notice.body, notice.link))) + "\n",
        to=[notice.email],
        headers={"Message-ID": f"<{notice.pk}@{settings.NEOCLOUD_BASE_DOMAIN}>"},
    )
    try:
        message.send()
    except Exception as error:
        log.warning("notice.mail_failed", notice=str(notice.pk), attempt=notice.mail_attempts)
        note_mail_failed(notice_id=notice.pk, error=f"{type(error).__name__}: {error}")
        return False
    note_mailed(notice_id=notice.pk, at=clock.now())
    return True
