"""What can go wrong between a program and the API, before any service is asked."""

from django.utils.translation import gettext_lazy as _

from apps.core.errors import Forbidden, Invalid, SignInRequired


class TokenRefused(SignInRequired):
    """The bearer token is unknown, expired or revoked; which of them is nobody's business."""

    code = "token_refused"
    message = _("The access key is not valid: unknown, expired or revoked. Make a new one.")


class CsrfRefused(Forbidden):
    """A change with a session cookie came without the CSRF token of that session."""

    code = "csrf_failed"
    message = _(
        "A change with a session cookie needs its X-CSRFToken header. Programs use access keys."
    )


class ParameterRepeated(Invalid):
    """A query parameter stands twice."""

    code = "parameter_repeated"
    message = _("{name} is given {times} times; give it once.")


class BodyNotObject(Invalid):
    """The body is JSON, but no object."""

    code = "body_not_object"
    message = _("The body must be a JSON object.")
