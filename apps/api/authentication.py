"""Who is asking: an access key's person, or the person of a session."""

from typing import Any

from rest_framework import exceptions
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.request import Request

from apps.accounts import services as accounts
from apps.accounts.models import User
from apps.api.errors import CsrfRefused, TokenRefused

SCHEME = "bearer"


class AccessKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer <access key>`; the request acts as the key's person."""

    def authenticate(self, request: Request) -> tuple[User, str] | None:
        """The person of the token, None when the request brings none. Raises TokenRefused."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        if scheme.lower() != SCHEME:
            return None
        user = accounts.person_of_token(token.strip())
        if user is None:
            raise TokenRefused()
        return user, SCHEME

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return "Bearer"


class CookieAuthentication(SessionAuthentication):
    """The session of somebody signed in on the pages; changes need the CSRF token."""

    def enforce_csrf(self, request: Request) -> None:
        """Refuse a change that another site could have made the browser send."""
        try:
            super().enforce_csrf(request)
        except exceptions.PermissionDenied as error:
            raise CsrfRefused() from error

    def authenticate(self, request: Request) -> tuple[Any, Any] | None:
        """The person of the session, or None."""
        return super().authenticate(request)
