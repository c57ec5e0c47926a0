"""What can go wrong: errors a person may read, and the kinds of failure outside."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.utils.translation import gettext_lazy as _

from apps.core import instants

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise


class _Facts(dict[str, object]):
    """Leaves the name of a fact nobody gave in place, so that an error can always be shown; an
    instant is told in the time zone of whoever is asking.
    """

    def __getitem__(self, key: str) -> object:
        value = super().__getitem__(key)
        return instants.in_words(value) if isinstance(value, datetime) else value

    def __missing__(self, key: str) -> str:
        return "{" + key + "}"


class AppError(Exception):
    """Something a customer may read about.

    A subclass gives `code` (stable, for programs), `message` (a template filled with the facts)
    and, through its family, `status`. Raise it with the facts as keyword arguments; give a
    message only when the class has no fitting one. `field` names the input that is to blame.
    """

    code: str = "error"
    message: StrOrPromise = _("The request could not be carried out.")
    title: ClassVar[StrOrPromise] = _("Request failed")
    status: ClassVar[int] = 400
    alternatives: Sequence[Mapping[str, object]] = ()  # what could be asked for instead

    def __init__(
        self,
        message: StrOrPromise | None = None,
        /,
        *,
        field: str | None = None,
        code: str | None = None,
        **facts: object,
    ) -> None:
        super().__init__()
        if message is not None:
            self.message = message
        if code is not None:
            self.code = code
        self.field = field
        self.facts: Mapping[str, object] = facts

    @property
    def detail(self) -> str:
        """The message with its facts, in the language active now."""
        return str(self.message).format_map(_Facts(self.facts))

    @property
    def errors(self) -> tuple[AppError, ...]:
        """The single errors this one is made of; itself when it is one."""
        return (self,)

    def __str__(self) -> str:
        return self.detail

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.code!r}, field={self.field!r}, facts={self.facts!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild, (type(self), self.__dict__.copy()))


def _rebuild(kind: type[AppError], state: dict[str, Any]) -> AppError:
    error = kind.__new__(kind)
    error.__dict__.update(state)
    return error


class Invalid(AppError):
    """What was sent breaks a rule; `field` says where."""

    code = "invalid"
    message: StrOrPromise = _("The value is not valid.")
    title = _("Not valid")
    status = 422

    _parts: tuple[AppError, ...] = ()

    @classmethod
    def many(cls, errors: Iterable[AppError]) -> Self:
        """One error out of several, so that a person can mend all fields at once.

        Raises ValueError when there is nothing to report.
        """
        parts = tuple(part for error in errors for part in error.errors)
        if not parts:
            raise ValueError("Invalid.many() needs at least one error")
        first = parts[0]
        merged = cls(first.message, field=first.field, code=first.code, **first.facts)
        if len(parts) > 1:
            merged._parts = parts
        return merged

    @property
    def errors(self) -> tuple[AppError, ...]:
        return self._parts or (self,)

    @property
    def detail(self) -> str:
        if not self._parts:
            return super().detail
        return " ".join(part.detail for part in self._parts)


class SignInRequired(AppError):
    """Nobody is signed in, or the session has ended."""

    code = "sign_in_required"
    message: StrOrPromise = _("Sign in to go on.")
    title = _("Sign-in needed")
    status = 401


class Forbidden(AppError):
    """The person is known but may not do this."""

    code = "forbidden"
    message: StrOrPromise = _(
        "Your role does not allow this. Ask an administrator of your organisation."
    )
    title = _("Not allowed")
    status = 403


class NotFound(AppError):
    """There is no such thing, or it belongs to somebody else: the answer is the same."""

    code = "not_found"
    message: StrOrPromise = _("There is nothing at this address, or it is not yours to see.")
    title = _("Not found")
    status = 404


class Conflict(AppError):
    """The request is fine, but what it is about does not allow it now."""

    code = "conflict"
    message: StrOrPromise = _("This is not possible in the present state.")
    title = _("Not possible now")
    status = 409


class TooMany(AppError):
    """More requests than allowed; `retry_after` seconds say when to come back."""

    code = "too_many_requests"
    message: StrOrPromise = _("Too many requests. Try again in {retry_after} seconds.")
    title = _("Too many requests")
    status = 429

    def __init__(
        self,
        message: StrOrPromise | None = None,
        /,
        *,
        retry_after: int = 60,
        field: str | None = None,
        code: str | None = None,
        **facts: object,
    ) -> None:
        super().__init__(message, field=field, code=code, retry_after=retry_after, **facts)
        self.retry_after = retry_after


class Unavailable(AppError):
    """We cannot answer at the moment; `retry_after` seconds say when to come back."""

    code = "unavailable"
    message: StrOrPromise = _(
        "This part of the service is not available now. Try again in a minute."
    )
    title = _("Not available")
    status = 503

    def __init__(
        self,
        message: StrOrPromise | None = None,
        /,
        *,
        retry_after: int = 60,
        field: str | None = None,
        code: str | None = None,
        **facts: object,
    ) -> None:
        super().__init__(message, field=field, code=code, retry_after=retry_after, **facts)
        self.retry_after = retry_after


class FailureKind(StrEnum):
    """The kinds of failure outside; the policy of what is done goes by them."""

    TRANSIENT = "transient"
    SITE_UNREACHABLE = "site_unreachable"
    NODE_FAULT = "node_fault"
    NO_CAPACITY = "no_capacity"
    REFUSED = "refused"
    UNKNOWN = "unknown"


class OutsideError(Exception):
    """An outside system did not do what was asked.

    `detail` is for operators and the log, never for customers; `facts` go to the log.
    """

    kind: ClassVar[FailureKind] = FailureKind.UNKNOWN

    def __init__(self, detail: str = "", /, **facts: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.facts: Mapping[str, object] = facts

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_outside, (type(self), self.detail, dict(self.facts)))


def _rebuild_outside(
    kind: type[OutsideError], detail: str, facts: dict[str, object]
) -> OutsideError:
    return kind(detail, **facts)


class Transient(OutsideError):
    """The same call may succeed later: time-out, locked node, 5xx."""

    kind = FailureKind.TRANSIENT


class SiteUnreachable(OutsideError):
    """Nobody answers at the site; its runs pause and use up no tries."""

    kind = FailureKind.SITE_UNREACHABLE


class NodeFault(OutsideError):
    """This node is to blame; another one may do."""

    kind = FailureKind.NODE_FAULT


class NoCapacity(OutsideError):
    """The site has nothing left that fits."""

    kind = FailureKind.NO_CAPACITY


class Refused(OutsideError):
    """The outside system understood and says no; asking again changes nothing."""

    kind = FailureKind.REFUSED


class Unknown(OutsideError):
    """An answer nobody foresaw; a person has to look."""

    kind = FailureKind.UNKNOWN
