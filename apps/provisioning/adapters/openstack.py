"""OpenStack Ironic through openstacksdk: time limits on every call, no silent retries, our kinds of
failure.

A provision request is not idempotent in Ironic: 400 means "not from this state" and 409 "busy".
After either the node is read again and decides.
"""

import json
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import openstack
from keystoneauth1 import exceptions as keystone
from openstack import exceptions as sdk
from openstack.connection import Connection

from apps.core.errors import NodeFault, OutsideError, Refused, SiteUnreachable, Transient, Unknown
from apps.inventory.observations import ObservedNIC, ObservedNode
from apps.provisioning.adapters.ironic_upkeep import IronicUpkeep
from apps.provisioning.ports import CleaningRecord, Deployment, SiteReport

CALL_SECONDS = 15
PAGE = 1000
MICROVERSION = "1.99"
WATCHED = (
    "uuid,name,resource_class,traits,provision_state,target_provision_state,power_state,maintenance,fault,"
    "reservation,instance_uuid,last_error,provision_updated_at,lessee"
)
DISCOVERED = WATCHED + ",properties,extra,driver_info,automated_clean"
STEP_NAMES = re.compile(r"'step': '([^']+)'.*?'interface': '([^']+)'")  # in a history event's text
TOUCHES = ("deploy", "manual_cleaning", "servic", "resc")  # history events that change a node
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


class Ironic(IronicUpkeep):
    """A site's Ironic, standalone with HTTP basic authentication."""

    def __init__(self, *, endpoint: str, username: str, password: str) -> None:
        self._connect = (endpoint, username, password)

    # ------------------------------------------------------------------ reading
    def describe(self) -> SiteReport:
        """Reach the service and say what it is."""
        root = self._call("GET", "/v1")
        off = []
        count = 0
        for node in self._pages("/v1/nodes", "nodes", "uuid,name,automated_clean"):
            count += 1
            if node.get("automated_clean") is False:
                off.append(str(node["name"]))
        version = root.get("version", {}).get("version", "") if isinstance(root, dict) else ""
        return SiteReport(
            version=str(version),
            nodes=count,
            cleaning_disabled_on=tuple(off),
            microversion=str(version),
            needed=MICROVERSION,
        )

    def list_nodes(self) -> Iterator[ObservedNode]:
        """Every node with the few fields we watch, in pages of a thousand."""
        for node in self._pages("/v1/nodes", "nodes", WATCHED):
            yield _observed(node)

    def discover(self) -> Iterator[ObservedNode]:
        """Every node with its hardware and ports, for import."""
        nics: dict[str, list[ObservedNIC]] = {}
        for port in self._pages(
            "/v1/ports", "ports", "node_uuid,address,name,local_link_connection"
        ):
            link = port.get("local_link_connection") or {}
            nics.setdefault(str(port["node_uuid"]), []).append(
                ObservedNIC(
                    mac=str(port["address"]),
                    name=str(port.get("name") or ""),
                    switch=str(link.get("switch_info") or link.get("switch_id") or ""),
                    switch_port=str(link.get("port_id") or ""),
                )
            )
        for node in self._pages("/v1/nodes", "nodes", DISCOVERED):
            yield _observed(node, tuple(nics.get(str(node["uuid"]), ())))

    def get_node(self, node: UUID) -> ObservedNode:
        """One node as it is now. Raises NodeFault when it is not there."""
        return _observed(self._node(node))

    def cleaning_since(self, node: UUID, since: datetime) -> CleaningRecord:
        """The last automated cleaning that the node's history records after an instant."""
        answer = self._call("GET", f"/v1/nodes/{node}/history?detail=true")
        entries = [
            entry
            for entry in answer.get("history", [])
            if (_instant(entry.get("created_at")) or since) >= since.replace(microsecond=0)
        ]
        entries.sort(key=_by_time)
        started = ended = None
        result, steps, detail = "none", [], ""
        for entry in entries:
            kind, at = str(entry.get("event_type")), _instant(entry.get("created_at"))
            if kind == "automated_cleaning_start":
                started, ended, result = at, None, "started"
                steps = _step_names(entry.get("event"))
            elif kind == "automated_cleaning_end":
                ended = at
                result = "failed" if entry.get("severity") == "ERROR" else "success"
            elif kind == "cleaning" and entry.get("severity") == "ERROR":
                ended, result, detail = at, "failed", str(entry.get("event"))
        kinds = [str(entry.get("event_type")) for entry in entries]
        touched = [
            _instant(entry.get("created_at"))
            for kind, entry in zip(kinds, entries, strict=True)
            if kind.startswith(TOUCHES)
        ]
        return CleaningRecord(
            started,
            ended,
            tuple(steps),
            result,
            detail,
            was_deployed=any(kind.startswith("deploy") for kind in kinds),
            touched_at=touched[-1] if touched else None,
        )

    # ------------------------------------------------------------------ changing
    def reserve(self, node: UUID, *, name: str, instance: UUID) -> bool:
        """Claim a node through Ironic's allocation API; the allocation's UUID becomes the
        instance's.
        """
        current = self._node(node)
        if current.get("instance_uuid") == str(instance):
            return True
        found = self._maybe("GET", f"/v1/allocations/{instance}")
        if found is None:
            self._call(
                "POST",
                "/v1/allocations",
                {
                    "uuid": str(instance),
                    "name": name,
                    "resource_class": current["resource_class"],
                    "candidate_nodes": [str(node)],
                },
            )
            found = self._call("GET", f"/v1/allocations/{instance}")
        if found.get("state") == "allocating":
            return False
        if found.get("state") == "error":
            self._maybe("DELETE", f"/v1/allocations/{instance}")
            raise NodeFault(f"Ironic cannot allocate the node: {found.get('last_error')}")
        if found.get("node_uuid") != str(node):
            raise Unknown(f"allocation {instance} holds node {found.get('node_uuid')}")
        return True

    def unreserve(self, node: UUID, *, name: str, instance: UUID) -> None:
        """Delete the allocation; undeploying has done so already when the node was deployed."""
        self._maybe("DELETE", f"/v1/allocations/{instance}")

    def validate(self, node: UUID) -> None:
        """Ask Ironic whether power and deploy could work. Raises NodeFault with the reason."""
        answer = self._call("GET", f"/v1/nodes/{node}/validate")
        for interface in ("power", "deploy"):
            verdict = answer.get(interface, {})
            if verdict.get("result") is False:
                raise NodeFault(f"{interface}: {verdict.get('reason')}")

    def deploy(self, node: UUID, deployment: Deployment) -> None:
        """Write what to deploy, then ask for it."""
        self._call(
            "PATCH",
            f"/v1/nodes/{node}",
            [
                {"op": "add", "path": f"/instance_info/{key}", "value": value}
                for key, value in {
                    "image_source": deployment.image_source,
                    "image_checksum": deployment.image_checksum,
                    "display_name": deployment.display_name,
                }.items()
            ],
        )
        self._call(
            "PUT",
            f"/v1/nodes/{node}/states/provision",
            {"target": "active", "configdrive": deployment.config_drive},
        )

    def undeploy(self, node: UUID) -> None:
        """Ask for the instance to be removed; Ironic cleans afterwards."""
        self._call("PUT", f"/v1/nodes/{node}/states/provision", {"target": "deleted"})

    def set_power(self, node: UUID, *, on: bool) -> None:
        """Ask for power on or off."""
        self._call(
            "PUT",
            f"/v1/nodes/{node}/states/power",
            {"target": "power on" if on else "power off"},
        )

    # ------------------------------------------------------------------ calls
    def _node(self, node: UUID) -> dict[str, Any]:
        found = self._maybe("GET", f"/v1/nodes/{node}?fields={WATCHED}")
        if found is None:
            raise NodeFault(f"node {node} is not known to Ironic any more")
        return found

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


def _observed(node: dict[str, Any], nics: tuple[ObservedNIC, ...] = ()) -> ObservedNode:
    extra = node.get("extra") or {}
    properties = node.get("properties") or {}
    driver = node.get("driver_info") or {}
    gpus = extra.get("gpus") or {}
    return ObservedNode(
        infra_id=UUID(node["uuid"]),
        name=str(node.get("name") or node["uuid"]),
        resource_class=str(node.get("resource_class") or ""),
        traits=tuple(sorted(node.get("traits") or ())),
        provision_state=str(node.get("provision_state") or "available"),
        target_provision_state=str(node.get("target_provision_state") or ""),
        power_state=str(node.get("power_state") or ""),
        maintenance=bool(node.get("maintenance")),
        fault=str(node.get("fault") or ""),
        is_reserved=bool(node.get("reservation")),
        instance_id=UUID(node["instance_uuid"]) if node.get("instance_uuid") else None,
        last_error=str(node.get("last_error") or ""),
        changed_at=_instant(node.get("provision_updated_at")),
        lessee=str(node.get("lessee") or ""),
        properties={
            "cpus": _whole(properties.get("cpus")),
            "memory_mib": _whole(properties.get("memory_mb")),
            "disk_gb": _whole(properties.get("local_gb")),
            "gpu": [{"reported_name": gpus["model"], "count": gpus["count"]}] if gpus else [],
        },
        rack=str(extra.get("rack") or ""),
        unit=_whole(extra.get("unit")) or None,
        serial=str(extra.get("serial") or ""),
        bmc_address=str(driver.get("redfish_address") or driver.get("ipmi_address") or ""),
        nics=nics,
    )


def _by_time(entry: dict[str, Any]) -> tuple[str, int]:
    """History has whole seconds: within one, a cleaning begins before it ends."""
    kind = str(entry.get("event_type"))
    rank = 0 if kind.endswith("_start") else 2 if kind.endswith("_end") else 1
    return str(entry.get("created_at")), rank


def _step_names(event: Any) -> list[str]:
    """`vendor.log_passthrough` out of the text of a history event."""
    return [f"{where}.{name}" for name, where in STEP_NAMES.findall(str(event or ""))]


def _whole(value: Any) -> int:
    try:
        return int(value)
    except (TypeError, ValueError):
        return 0


def _instant(text: Any) -> datetime | None:
    if not text:
        return None
    instant = datetime.fromisoformat(str(text))
    return instant if instant.tzinfo else instant.replace(tzinfo=UTC)
