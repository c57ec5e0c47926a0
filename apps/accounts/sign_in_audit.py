"""The audit of sign-ins: the one module that listens to signals, as allauth offers no more."""

from typing import Any

from allauth.account.signals import password_changed, password_reset, password_set, user_logged_in
from django.contrib.auth.signals import user_logged_out
from django.db import transaction
from django.dispatch import receiver

from apps.accounts.models import User
from apps.accounts.selectors import person_by_email
from apps.audit import services as audit


@receiver(user_logged_in, dispatch_uid="audit-signed-in")
def _signed_in(user: User, **kwargs: Any) -> None:
    _record(user, "person.signed_in", user)


@receiver(user_logged_out, dispatch_uid="audit-signed-out")
def _signed_out(user: User | None, **kwargs: Any) -> None:
    if user is not None:
        _record(user, "person.signed_out", user)


@receiver((password_changed, password_reset, password_set), dispatch_uid="audit-password")
def _password_changed(user: User, **kwargs: Any) -> None:
    _record(user, "person.password_changed", user)


def record_failure(email: str) -> None:
    """Somebody gave a wrong password, or a mail address nobody has."""
    _record(None, "person.sign_in_failed", _subject(email), result="refused")


def record_lock_out(email: str) -> None:
    """Too many failures: the account must wait."""
    _record(None, "person.locked_out", _subject(email), result="refused")


def _subject(email: str) -> Any:
    return person_by_email(email) or ("user", "", email[:200])


def _record(actor: User | None, action: str, subject: Any, *, result: str = "done") -> None:
    with transaction.atomic():
        audit.record(actor, action, subject, result=result)
