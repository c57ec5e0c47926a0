"""Who may: the one gate of views and API operations."""

from collections.abc import Callable
from functools import wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.http import HttpRequest
from django.http.response import HttpResponseBase

from apps.accounts.errors import RoleForbids
from apps.accounts.models import User
from apps.accounts.roles import Role, holders
from apps.core.errors import SignInRequired

P = ParamSpec("P")
R = TypeVar("R", bound=HttpResponseBase)


def person(request: HttpRequest) -> User:
    """The person who is signed in. Raises SignInRequired, which leads to the sign-in page."""
    user: Any = request.user
    if not user.is_authenticated:
        raise SignInRequired()
    assert isinstance(user, User)  # noqa: S101 - tells the type checker
    return user


def require(user: User, permission: str) -> None:
    """Raise RoleForbids, naming the permission and who holds it, unless the person may."""
    if not user.may(permission):
        raise RoleForbids(
            permission=permission,
            role=Role(user.role).label,
            holders=", ".join(str(role.label) for role in holders(permission, like=user.role)),
        )


def needs(
    permission: str,
) -> Callable[[Callable[Concatenate[HttpRequest, P], R]], Callable[Concatenate[HttpRequest, P], R]]:
    """Let a view be used only by people whose role holds the permission."""

    def decorate(
        view: Callable[Concatenate[HttpRequest, P], R],
    ) -> Callable[Concatenate[HttpRequest, P], R]:
        @wraps(view)
        def guarded(request: HttpRequest, /, *args: P.args, **kwargs: P.kwargs) -> R:
            require(person(request), permission)
            return view(request, *args, **kwargs)

        guarded.permission = permission  # type: ignore[attr-defined]
        return guarded

    return decorate
