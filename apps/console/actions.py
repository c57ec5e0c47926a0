"""What staff do to a thing: a button, the dialog behind it, and the reason asked for."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from django import forms
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from apps.core.errors import Invalid

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

LONGEST_REASON = 300


class ReasonMissing(Invalid):
    """Staff act with a reason others can read later."""

    code = "reason_missing"
    message = _("Give a reason of 3 to {longest} characters; it is kept in the audit trail.")


@dataclass(frozen=True)
class Action:
    """A button and its dialog: what it is called, what follows, in which light."""

    id: str
    label: "StrOrPromise"
    url: str
    text: "StrOrPromise"
    tone: str = "primary"
    reason: str = "required"  # or optional, or nothing
    check: "StrOrPromise" = ""  # what is done too, unless the box is cleared: `also`
    form: forms.Form | None = None  # asks for more than a reason


def reason_of(request: HttpRequest) -> str:
    """The reason somebody gave. Raises ReasonMissing."""
    reason = request.POST.get("reason", "").replace("\x00", "").strip()
    if not 3 <= len(reason) <= LONGEST_REASON:
        raise ReasonMissing(field="reason", longest=LONGEST_REASON)
    return reason
