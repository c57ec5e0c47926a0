"""What every operation does the same way: who may, what is asked, once only, what is answered.

    class OrderCollection(Endpoint):
        @lists("listOrders", "order.view", OrderSerializer, query=OrderFilters)
        def get(self, asked: Asked) -> QuerySet[Order]:
            return selectors.order_list().filter(**asked.query)

The decorator parses, checks the permission, keeps one effect for one Idempotency-Key and renders;
the method calls one function. The OpenAPI description is read from the same declaration.
"""

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode

from django.core.exceptions import ObjectDoesNotExist
from django.db.models import QuerySet
from django.http import HttpResponseBase, StreamingHttpResponse
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from apps.accounts.access import person, require
from apps.accounts.models import User
from apps.api.authentication import AccessKeyAuthentication, CookieAuthentication
from apps.api.errors import BodyNotObject, ParameterRepeated
from apps.api.openapi import OperationSchema
from apps.api.serializers.base import PageQuery, Strict
from apps.api.throttling import ChangeThrottle, PersonThrottle
from apps.core import csvsafe, idempotency
from apps.core.answers import pdf
from apps.core.errors import NotFound
from apps.core.paging import paginate

NEWEST = ("-created_at", "-id")
PLACE = ("cursor", "limit")
CSV, PDF = "text/csv", "application/pdf"
Shape = type[serializers.Serializer[Any]]
Method = Callable[..., Any]


@dataclass(frozen=True)
class Operation:
    """One method of one address as declared: for the wrapper and for the OpenAPI description."""

    id: str
    permission: str | None  # None: everybody who is signed in
    answer: Shape | None
    status: int = 200
    body: Shape | None = None
    query: Shape | None = None
    order: tuple[str, ...] | None = None  # of a list in pages
    is_list: bool = False
    is_keyed: bool = False  # takes an Idempotency-Key
    withheld: str = ""  # a field of the answer that is given once and never kept
    media_type: str = "application/json"


@dataclass(frozen=True)
class Asked:
    """A request after parsing: who asks, the body's and the query's fields."""

    user: User
    request: Request
    body: dict[str, Any] = field(default_factory=dict)
    query: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class PDFFile:
    """A file to be sent whole."""

    name: str
    content: bytes


@dataclass(frozen=True)
class CSVFile:
    """A file to be sent in pieces, while they are made."""

    name: str
    pieces: Iterator[bytes]


class HasPermission(BasePermission):
    """The person's role holds what the operation of this method names."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether somebody is signed in at all; raises RoleForbids naming what is missing."""
        if not request.user.is_authenticated:
            return False
        operation = operation_of(view, str(request.method))
        if operation is not None and operation.permission is not None:
            require(request.user, operation.permission)
        return True


class Endpoint(APIView):
    """One address; its methods are declared by the decorators below."""

    http_method_names = ["get", "post", "patch", "put", "delete", "head"]
    authentication_classes = [AccessKeyAuthentication, CookieAuthentication]
    permission_classes = [HasPermission]
    throttle_classes = [PersonThrottle, ChangeThrottle]
    schema = OperationSchema()

    def handle_exception(self, exc: Exception) -> Response:
        """A row a service looked for and did not find is the caller's mistake."""
        return super().handle_exception(NotFound() if isinstance(exc, ObjectDoesNotExist) else exc)

    def finalize_response(
        self, request: Request, response: Any, *args: Any, **kwargs: Any
    ) -> Response:
        """Answers are one person's and one moment's: nobody keeps them."""
        response.headers.setdefault("Cache-Control", "no-store")
        return super().finalize_response(request, response, *args, **kwargs)


def operation_of(view: APIView, method: str) -> Operation | None:
    """What a method of a view was declared as; None for one that does not exist."""
    name = "get" if method == "HEAD" else method.lower()
    return getattr(getattr(view, name, None), "operation", None)


def shows(
    name: str, permission: str | None, answer: Shape, *, query: Shape | None = None
) -> Callable[[Method], Method]:
    """One thing: the method returns it."""
    return _declared(Operation(name, permission, answer, query=query))


def lists(
    name: str,
    permission: str | None,
    answer: Shape,
    *,
    query: Shape | None = None,
    order: tuple[str, ...] = NEWEST,
) -> Callable[[Method], Method]:
    """Many things in pages: the method returns a QuerySet, narrowed by `asked.query`."""
    operation = Operation(
        name, permission, answer, query=query or PageQuery, order=order, is_list=True
    )
    return _declared(operation)


def gathers(
    name: str, permission: str | None, answer: Shape, *, query: Shape | None = None
) -> Callable[[Method], Method]:
    """A few things, always all of them: the method returns any iterable, in its own order."""
    return _declared(Operation(name, permission, answer, query=query, is_list=True))


def acts(
    name: str,
    permission: str | None,
    answer: Shape | None,
    *,
    body: Shape | None = None,
    status: int = 200,
    withheld: str = "",
    is_keyed: bool = True,
) -> Callable[[Method], Method]:
    """A change: the method returns what to show of it, None for 204.

    `is_keyed=False` is for changes that talk to a site, or commit by themselves: a key would keep
    a transaction open around them. They are safe to repeat.
    """
    operation = Operation(
        name,
        permission,
        answer,
        status=status if answer else 204,
        body=body,
        is_keyed=is_keyed,
        withheld=withheld,
    )
    return _declared(operation)


def streams(
    name: str, permission: str | None, *, query: Shape | None = None
) -> Callable[[Method], Method]:
    """A CSV file: the method returns a CSVFile."""
    return _declared(Operation(name, permission, None, query=query, media_type=CSV))


def prints(name: str, permission: str | None) -> Callable[[Method], Method]:
    """A PDF file: the method returns a PDFFile."""
    return _declared(Operation(name, permission, None, media_type=PDF))


def _declared(operation: Operation) -> Callable[[Method], Method]:
    def wrap(method: Method) -> Method:
        @functools.wraps(method)
        def answer(view: Endpoint, request: Request, **path: Any) -> HttpResponseBase:
            asked = Asked(
                user=person(request),
                request=request,
                body=_body(operation, request),
                query=_query(operation, request),
            )
            if operation.media_type in (CSV, PDF):
                return _file(method(view, asked, **path))
            if request.method == "GET" or request.method == "HEAD":
                return Response(_render(operation, asked, method(view, asked, **path)))
            return _change(operation, asked, lambda: method(view, asked, **path))

        answer.operation = operation  # type: ignore[attr-defined]
        return answer

    return wrap


def _file(file: CSVFile | PDFFile) -> HttpResponseBase:
    if isinstance(file, PDFFile):
        return pdf(file.content, name=file.name)
    response = StreamingHttpResponse(file.pieces, content_type=csvsafe.CONTENT_TYPE)
    response["Content-Disposition"] = f'attachment; filename="{file.name}.csv"'
    return response


def _query(operation: Operation, request: Request) -> dict[str, Any]:
    given = request.query_params
    for name, values in given.lists():
        if len(values) > 1:
            raise ParameterRepeated(field=name, name=name, times=len(values))
    shape = (operation.query or Strict)(data=given.dict(), context={"request": request})
    shape.is_valid(raise_exception=True)
    return dict(shape.validated_data)


def _body(operation: Operation, request: Request) -> dict[str, Any]:
    if request.method in {"GET", "HEAD"}:
        return {}
    data = request.data
    if not isinstance(data, dict):
        raise BodyNotObject()
    shape = (operation.body or Strict)(data=data, context={"request": request})
    shape.is_valid(raise_exception=True)
    return dict(shape.validated_data)


def _change(operation: Operation, asked: Asked, act: Callable[[], Any]) -> Response:
    """Do it; with an Idempotency-Key once only, and a repetition gets the same answer again."""
    request = asked.request
    key = request.headers.get("Idempotency-Key")
    if key is None or not operation.is_keyed:
        return Response(_render(operation, asked, act()), status=operation.status)
    fresh: dict[str, Any] = {}

    def once() -> tuple[int, Any]:
        body = _render(operation, asked, act())
        if operation.withheld:
            fresh[operation.withheld] = body[operation.withheld]
            body = body | {operation.withheld: None}
        return operation.status, body

    kept = idempotency.once(
        actor=str(asked.user.pk),
        key=key,
        asked=idempotency.request_hash(request.method, request.path, request.data),
        act=once,
    )
    response = Response((kept.body | fresh) if fresh else kept.body, status=kept.status)
    if kept.is_repeat:
        response["Idempotency-Replayed"] = "true"
    return response


def _render(operation: Operation, asked: Asked, result: Any) -> Any:
    if operation.answer is None:
        return None
    context = {"request": asked.request}
    if not operation.is_list:
        return operation.answer(result, context=context).data
    rows, following = result, None
    if operation.order is not None:
        rows, following = _page(operation.order, asked.request, result)
    shown = operation.answer(rows, many=True, context=context).data
    return {"items": shown, "next": following}


def _page(
    order: tuple[str, ...], request: Request, rows: QuerySet[Any]
) -> tuple[list[Any], str | None]:
    """The rows of the page that was asked for, and the address of the next one."""
    given = request.query_params.dict()
    place = PageQuery(data={name: given[name] for name in PLACE if name in given})
    place.is_valid(raise_exception=True)
    wanted = place.validated_data
    found = paginate(rows, keys=order, cursor=wanted.get("cursor", ""), size=wanted["limit"])
    if not found.next:
        return found.items, None
    query = urlencode(given | {"cursor": found.next})
    return found.items, request.build_absolute_uri(f"{request.path}?{query}")
