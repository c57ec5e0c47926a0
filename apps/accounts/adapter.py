"""How allauth behaves here: nobody signs up, and a lock-out says when to try again."""

import math
import time
from typing import Any

from allauth.account.adapter import DefaultAccountAdapter
from allauth.core.internal import ratelimit
from django.core.cache import cache
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import ngettext

from apps.accounts.roles import Role
from apps.accounts.sign_in_audit import record_failure, record_lock_out

_RULE = {"app": "allauth.account", "action": "login_failed"}


class AccountAdapter(DefaultAccountAdapter):  # type: ignore[misc]
    """Sign-up is closed on both sides; failures and lock-outs stand in the audit trail."""

    def is_open_for_signup(self, request: HttpRequest) -> bool:
        """Never."""
        return False

    def get_login_redirect_url(self, request: HttpRequest) -> str:
        """Where a person begins who did not ask for a page: finance at its desk."""
        if getattr(request.user, "role", "") == Role.FINANCE:
            return "/finance/"
        return str(super().get_login_redirect_url(request))

    def pre_authenticate(self, request: HttpRequest, **credentials: Any) -> None:
        """Refuse an account or an address with too many failures behind it."""
        try:
            super().pre_authenticate(request, **credentials)
        except ValidationError:
            email = str(credentials.get("email", ""))
            seconds = self._seconds_to_wait(request, **credentials)
            if cache.add(f"locked-out:{email.lower()}", value=True, timeout=seconds):
                record_lock_out(email)  # once a lock-out, so nobody can flood the trail
            minutes = math.ceil(seconds / 60)
            text = ngettext(
                "Too many failed sign-ins. Try again in %(minutes)d minute.",
                "Too many failed sign-ins. Try again in %(minutes)d minutes.",
                minutes,
            )
            raise ValidationError(
                text % {"minutes": minutes}, code="too_many_login_attempts"
            ) from None

    def authentication_failed(self, request: HttpRequest, **credentials: Any) -> None:
        """Keep what was tried, never with which password."""
        record_failure(str(credentials.get("email", "")))

    def _seconds_to_wait(self, request: HttpRequest, **credentials: Any) -> int:
        """Until the oldest failure of every full limit is forgotten."""
        key = self._get_login_attempts_cache_key(request, **credentials)
        longest = 1.0
        for rate in ratelimit.get_rates(**_RULE):
            name = ratelimit.get_cache_key(request, rate=rate, key=key, **_RULE)
            history = cache.get(name, [])
            if len(history) >= rate.amount:
                longest = max(longest, history[-1] + rate.duration - time.time())
        return math.ceil(longest)
