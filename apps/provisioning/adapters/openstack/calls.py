"""Calls to Ironic through openstacksdk: a time limit on each, no silent retries, our kinds of
failure.
"""

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import openstack
from keystoneauth1 import exceptions as keystone
from openstack import exceptions as sdk
from openstack.connection import Connection

from apps.core.errors import OutsideError, Refused, SiteUnreachable, Transient, Unknown

CALL_SECONDS = 15
PAGE = 1000
MICROVERSION = "1.99"
UNREACHABLE = (
    keystone.ConnectionError,
    keystone.DiscoveryFailure,
    keystone.EndpointNotFound,
)


@lru_cache(maxsize=64)
def _connection(endpoint: str, username: str, password: str) -> Connection:
    return openstack.connect(
        load_yaml_config=False,
        load_envvars=False,
        auth_type="http_basic" if username else "none",
        auth={"endpoint": endpoint, "username": username, "password": password}
        if username
        else {"endpoint": endpoint},
        baremetal_endpoint_override=endpoint,
        baremetal_api_version="1",
        baremetal_status_code_retries=0,
        baremetal_connect_retries=0,
        api_timeout=CALL_SECONDS,
        region_name="site",
        app_name="neocloud",
    )


class Calls:
    """A site's API, standalone with HTTP basic authentication."""

    def __init__(self, *, endpoint: str, username: str, password: str) -> None:
        self._connect = (endpoint, username, password)

    def _pages(self, path: str, key: str, fields: str) -> Iterator[dict[str, Any]]:
        url = f"{path}?fields={fields}&limit={PAGE}"
        for _page in range(1000):
            answer = self._call("GET", url)
            yield from answer.get(key, [])
            following = answer.get("next")
            if not following:
                return
            url = path + "?" + str(following).split("?", 1)[1]

    def _maybe(self, method: str, path: str) -> dict[str, Any] | None:
        """A call whose 404 means "there is none"."""
        try:
            return self._call(method, path)
        except _Absent:
            return None

    def _call(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        answer = self._ask(method, path, body)
        try:
            return dict(answer.json()) if answer.content else {}
        except (ValueError, TypeError) as error:  # a proxy's page, or half an answer
            raise SiteUnreachable(f"{method} {path.split('?')[0]}: not Ironic's answer") from error

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer with its headers, where it is one of success."""
        try:
            client = _connection(*self._connect).baremetal
            answer = client.request(
                path.removeprefix("/v1") or "/",
                method,
                json=body,
                microversion=MICROVERSION,
                raise_exc=False,
                timeout=CALL_SECONDS,
            )
        except UNREACHABLE as error:
            raise SiteUnreachable(f"{type(error).__name__}: {error}") from error
        except (keystone.ClientException, sdk.SDKException) as error:
            raise Unknown(f"{type(error).__name__}: {error}") from error
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            detail = f"{type(error).__name__}: {error}"  # the SDK chokes while it asks for versions
            raise SiteUnreachable(f"not Ironic's answer: {detail}") from error
        if answer.status_code >= 400:
            raise _failure(method, path, answer.status_code, answer.text)
        return answer


class _Absent(Unknown):
    """404."""


def _failure(method: str, path: str, status: int, text: str) -> OutsideError:
    """Ironic's answer as one of our kinds."""
    detail = f"{method} {path.split('?')[0]}: HTTP {status}: {_fault(text)}"
    if status == 404:
        return _Absent(detail)
    if status == 401:
        return SiteUnreachable(f"the site refuses our credentials: {detail}")
    if status in (409, 429) or status >= 500:
        return SiteUnreachable(detail) if status in (502, 503, 504) else Transient(detail)
    return Refused(detail)


def _fault(text: str) -> str:
    """The sentence inside Ironic's doubly wrapped error."""
    try:
        message = json.loads(text).get("error_message", text)
        if isinstance(message, str) and message.startswith("{"):
            message = json.loads(message)
        if isinstance(message, Mapping):
            message = message.get("faultstring", text)
    except (ValueError, AttributeError):
        message = text
    return str(message)[:400]
