"""The OpenAPI 3.1 description of each side, read from the declarations of its operations."""

import functools
import inspect
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils import translation
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers

from apps.api.serializers.base import ProblemSerializer, Shown, Strict

if TYPE_CHECKING:
    from apps.api.operations import Operation

IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 200, "pattern": "^[ -~]+$"},
    OpenApiParameter.HEADER,
    description="The same key and request again give the same answer and no second effect.",
)
REFUSALS = {
    "400": "The request cannot be read.",
    "401": "Nobody is signed in, or the access key is not valid.",
    "403": "The role lacks the permission that the answer names.",
    "404": "There is no such thing, or it is somebody else's.",
    "406": "Only JSON is answered.",
    "409": "Not possible now, or the Idempotency-Key was used for another request.",
    "415": "Only JSON is read.",
    "422": "Fields or parameters break a rule; `errors` names each.",
    "429": "Too many requests; Retry-After says when to come back.",
    "503": "Something this needs does not answer now; Retry-After says when to come back.",
}


class OperationSchema(AutoSchema):
    """Describes an operation from its declaration (see apps.api.operations)."""

    @property
    def operation(self) -> "Operation":
        """The declaration of the method being described."""
        return getattr(self.view, self.method.lower()).operation  # type: ignore[no-any-return]

    def get_operation_id(self) -> str:
        """The declared name."""
        return self.operation.id

    def get_summary(self) -> str:
        """The first line of the method's docstring."""
        return self._told()[0]

    def get_description(self) -> str:  # type: ignore[override]
        """The docstring, and the permission that is needed."""
        first, _, rest = self._told()
        needs = self.operation.permission
        told = f"Needs the permission `{needs}`." if needs else "For everybody who is signed in."
        return "\n\n".join(part for part in (first, rest.strip(), told) if part)

    def _told(self) -> tuple[str, str, str]:
        return (inspect.getdoc(getattr(self.view, self.method.lower())) or "").partition("\n")

    def get_tags(self) -> list[str]:
        """The first noun of the path."""
        return [self.path.removeprefix("/api/v1/").split("/")[0]]

    def get_override_parameters(self) -> list[Any]:
        """Filters, place in the list, and the key of changes."""
        operation = self.operation
        found: list[Any] = [operation.query] if operation.query else []
        return [*found, IDEMPOTENCY_KEY] if operation.is_keyed else found

    def get_request_serializer(self) -> Any:
        """The shape of the body."""
        return self.operation.body

    def get_response_serializers(self) -> Any:
        """The shape of the answer under its status."""
        operation = self.operation
        if operation.media_type != "application/json":
            return {(operation.status, operation.media_type): {"type": "string"}}
        if operation.answer is None:
            return {operation.status: None}
        return {
            operation.status: page_of(operation.answer) if operation.is_list else operation.answer
        }

    def _is_list_view(self, serializer: Any = None) -> bool:
        return False  # lists are objects with `items` and `next`

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        bodies: dict[str, Any] = super()._get_response_bodies(direction)
        problem = self.resolve_serializer(ProblemSerializer, "response").ref
        for code, description in REFUSALS.items():
            if self._may_answer(code):
                content = {"application/problem+json": {"schema": problem}}
                bodies[code] = {"description": description, "content": content}
        return bodies

    def _may_answer(self, code: str) -> bool:
        changes = self.method != "GET"
        return {
            "400": changes,
            "404": "{" in self.path or changes,
            "409": changes,
            "415": changes,
        }.get(code, True)

    def _postprocess_serializer_schema(
        self, schema: dict[str, Any], serializer: Any, direction: Any
    ) -> dict[str, Any]:
        schema = super()._postprocess_serializer_schema(schema, serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, Strict):
            schema["additionalProperties"] = False
        return schema


@functools.cache
def page_of(shape: type[serializers.Serializer[Any]]) -> type[serializers.Serializer[Any]]:
    """The shape of one page of such things."""
    name = shape.__name__.removesuffix("Serializer") + "PageSerializer"
    fields = {
        "__doc__": "One page; `next` is the address of the following one, null at the end.",
        "items": shape(many=True),
        "next": serializers.CharField(allow_null=True),
    }
    return type(name, (Shown,), fields)


class AccessKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How access keys are described."""

    target_class = "apps.api.authentication.AccessKeyAuthentication"
    name = "accessKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """A bearer token."""
        return {"type": "http", "scheme": "bearer", "description": "An access key of a person."}


class CookieScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How sessions are described."""

    target_class = "apps.api.authentication.CookieAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:
        """The session cookie of the pages."""
        return {
            "type": "apiKey",
            "in": "cookie",
            "name": settings.SESSION_COOKIE_NAME,
            "description": "A session of the pages; changes send X-CSRFToken as well.",
        }


@functools.cache
def described(urlconf: str) -> dict[str, Any]:
    """The description of one side's API, in English, made once in a process."""
    with translation.override("en"):
        return SchemaGenerator(urlconf=urlconf).get_schema(request=None, public=True)  # type: ignore[no-any-return, no-untyped-call]


def openapi(request: HttpRequest) -> HttpResponse:
    """The description of the side the request came to; it holds no secret, so all may read it."""
    return JsonResponse(described(request.urlconf))
