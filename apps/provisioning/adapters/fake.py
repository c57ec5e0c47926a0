"""A site without machines, for unit and load tests: Ironic's rules in memory, moved on by the test.

Nothing happens by itself: `settle` finishes what is under way. Calls can be made to fail before or
after they have had their effect, as real ones do.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import ClassVar
from uuid import UUID

from apps.core import clock
from apps.core.errors import NodeFault, OutsideError, Refused, Transient
from apps.inventory.models import Site
from apps.inventory.observations import ObservedNode
from apps.provisioning.adapters.calls import Call
from apps.provisioning.ports import (
    Carried,
    CleaningRecord,
    Console,
    Deployment,
    ObservedClaim,
    SiteReport,
)

IN_MOTION = ("deploying", "deleting", "cleaning", "rescuing", "unrescuing")
CRASHED = {"deploying": "deploy failed", "cleaning": "clean failed", "deleting": "error"}
CONDUCTOR_DIED = "The {state} state can't be resumed by conductor fake. Moving to fail state."
AT_LAST = {"rescuing": "rescue", "unrescuing": "active"}
Hook = Callable[[str, UUID | None], None]


def nothing(_call: str, _node: UUID | None) -> None:
    """What happens at a call unless a test wants more."""


@dataclass
class FakeNode:
    """A node's state and what a test wants of it."""

    seen: ObservedNode
    deployment: Deployment | None = None
    deploys: int = 0
    deploy_error: str = ""
    clean_error: str = ""
    power_is_stuck: bool = False  # power requests are accepted and nothing happens
    console_url: str = ""
    hardware: dict[str, str] = field(default_factory=dict)
    cleanings: list[CleaningRecord] = field(default_factory=list)
    touched_at: datetime | None = None  # last deployed, or cleaned by hand
    cleans: bool = True  # automated cleaning
    went_at: datetime | None = None


class FakeCompute:
    """Ironic as the port sees it."""

    _sites: ClassVar[dict[str, "FakeCompute"]] = {}

    def __init__(self) -> None:
        self.nodes: dict[UUID, FakeNode] = {}
        self.claims: dict[UUID, ObservedClaim] = {}
        self.clock_is_off_by = timedelta(0)
        self.calls: list[tuple[str, UUID | None]] = []
        self.on_call: Hook = nothing  # may raise: the call has no effect
        self.on_return: Hook = nothing  # may raise: the call has had its effect
        self._before: dict[str, list[OutsideError]] = {}
        self._after: dict[str, list[OutsideError]] = {}

    @classmethod
    def of(cls, code: str) -> "FakeCompute":
        """The one site of a code in this process."""
        return cls._sites.setdefault(code, cls())

    @classmethod
    def forget_all(cls) -> None:
        """Drop every site: between tests."""
        cls._sites.clear()

    # ------------------------------------------------------------------ the test's hands
    def add(self, seen: ObservedNode) -> FakeNode:
        """Rack a node."""
        node = FakeNode(replace(seen, provision_state="available", power_state="power off"))
        self.nodes[seen.infra_id] = node
        return node

    def fail(self, call: str, *errors: OutsideError, after_effect: bool = False) -> None:
        """The next calls of this name fail, one error each, before or after their effect."""
        (self._after if after_effect else self._before).setdefault(call, []).extend(errors)

    def forget_faults(self) -> None:
        """No call fails any more."""
        self._before.clear()
        self._after.clear()

    def settle(self) -> None:
        """Finish everything that is under way, one stage each."""
        for node in self.nodes.values():
            state = node.seen.provision_state
            if state == "deploying":
                failed = bool(node.deploy_error)
                self._to(node, "deploy failed" if failed else "active", error=node.deploy_error)
            elif state == "deleting":
                self._forget(node)
                node.went_at = clock.now()
                self._to(node, "cleaning" if node.cleans else "available")
            elif state in AT_LAST:
                self._to(node, AT_LAST[state])
            elif state == "cleaning":
                failed = bool(node.clean_error)
                node.cleanings.append(
                    CleaningRecord(
                        node.went_at,
                        clock.now(),
                        ("erase_devices_metadata",),
                        "failed" if failed else "success",
                        node.clean_error,
                    )
                )
                self._to(node, "clean failed" if failed else "available", error=node.clean_error)

    def crash(self) -> None:
        """The conductor dies: what it was doing has failed, and nothing goes on by itself."""
        for node in self.nodes.values():
            state = node.seen.provision_state
            if state in CRASHED:
                self._to(node, CRASHED[state], error=CONDUCTOR_DIED.format(state=state))

    def break_down(self, node: UUID, fault: str = "power failure") -> None:
        """The host no longer answers: Ironic puts it into maintenance by itself."""
        found = self._node(node)
        found.power_is_stuck = True
        found.seen = replace(found.seen, power_state="", maintenance=True, fault=fault)

    # ------------------------------------------------------------------ the port
    def describe(self) -> SiteReport:
        """What it is."""
        with self._call("describe", None):
            off = tuple(node.seen.name for node in self.nodes.values() if not node.cleans)
            return SiteReport("fake", len(self.nodes), off, microversion="1.99", needed="1.99")

    def list_nodes(self) -> Iterator[ObservedNode]:
        """Every node."""
        with self._call("list_nodes", None):
            return iter([node.seen for node in self.nodes.values()])

    def discover(self) -> Iterator[ObservedNode]:
        """Every node with its hardware."""
        return self.list_nodes()

    def get_node(self, node: UUID) -> ObservedNode:
        """One node."""
        with self._call("get_node", node):
            return self._node(node).seen

    def reserve(self, node: UUID, *, name: str, instance: UUID) -> bool:
        """Claim an available node."""
        with self._call("reserve", node):
            found = self._node(node)
            if found.seen.instance_id == instance:
                return True
            if found.seen.instance_id or found.seen.provision_state != "available":
                raise NodeFault("none of the requested nodes are available and match")
            found.seen = replace(found.seen, instance_id=instance)
            self.claims[instance] = ObservedClaim(instance, name, node, "active")
            return True

    def unreserve(self, node: UUID, *, name: str, instance: UUID) -> None:
        """Give the claim back."""
        with self._call("unreserve", node):
            found = self._node(node)
            if found.seen.instance_id == instance and found.seen.provision_state == "available":
                self._drop_claim(found)

    def validate(self, node: UUID) -> None:
        """Always valid."""
        with self._call("validate", node):
            self._node(node)

    def deploy(self, node: UUID, deployment: Deployment) -> None:
        """Begin to deploy."""
        with self._call("deploy", node):
            found = self._node(node)
            self._refuse_locked(found)
            if found.seen.provision_state not in ("available", "deploy failed"):
                raise Refused(f"can not be performed in state {found.seen.provision_state}")
            found.deployment = deployment
            found.deploys += 1
            found.touched_at = clock.now()
            found.seen = replace(found.seen, lessee=deployment.project_id)
            self._to(found, "deploying")

    def undeploy(self, node: UUID) -> None:
        """Begin to remove."""
        with self._call("undeploy", node):
            found = self._node(node)
            self._refuse_locked(found)
            if found.seen.provision_state == "available":
                raise Refused("can not be performed in state available")
            self._to(found, "deleting")

    def set_power(self, node: UUID, *, on: bool, soft: bool = False) -> None:
        """Power at once, unless it is stuck."""
        with self._call("set_power", node):
            found = self._node(node)
            if not found.power_is_stuck:
                found.seen = replace(found.seen, power_state="power on" if on else "power off")

    def cleaning_since(self, node: UUID, since: datetime) -> CleaningRecord:
        """The last cleaning."""
        with self._call("cleaning_since", node):
            found, since = self._node(node), since.replace(microsecond=0)
            touched = found.touched_at if found.touched_at and found.touched_at >= since else None
            for record in reversed(found.cleanings):
                if record.started_at and record.started_at >= since:
                    return replace(record, touched_at=touched)
            return CleaningRecord(
                None, None, (), "none", was_deployed=touched is not None, touched_at=touched
            )

    # ------------------------------------------------------------------ upkeep
    def list_claims(self) -> Iterator[ObservedClaim]:
        """Every claim."""
        with self._call("list_claims", None):
            return iter(list(self.claims.values()))

    def delete_claim(self, claim: UUID) -> None:
        """Delete a claim."""
        with self._call("delete_claim", None):
            held = self.claims.get(claim)
            if held is not None and held.node in self.nodes:
                self._drop_claim(self.nodes[held.node])
            self.claims.pop(claim, None)

    def clear_lessee(self, node: UUID) -> None:
        """No customer on it."""
        with self._call("clear_lessee", node):
            found = self._node(node)
            found.seen = replace(found.seen, lessee="")

    def end_maintenance(self, node: UUID) -> None:
        """Healthy again."""
        with self._call("end_maintenance", node):
            found = self._node(node)
            found.seen = replace(found.seen, maintenance=False, fault="")

    def make_manageable(self, node: UUID) -> None:
        """Out of the pool."""
        with self._call("make_manageable", node):
            found = self._node(node)
            if found.seen.provision_state not in ("available", "clean failed", "enroll"):
                raise Refused(f"can not be performed in state {found.seen.provision_state}")
            self._to(found, "manageable")

    def provide(self, node: UUID) -> None:
        """Cleaned, and back into the pool."""
        with self._call("provide", node):
            found = self._node(node)
            if found.seen.provision_state != "manageable":
                raise Refused(f"can not be performed in state {found.seen.provision_state}")
            found.went_at = clock.now()
            self._to(found, "cleaning" if found.cleans else "available")

    def tell_time(self) -> datetime | None:
        """Our clock, or what a test made of it."""
        with self._call("tell_time", None):
            return clock.now() + self.clock_is_off_by

    def holder_of(self, instance: UUID) -> UUID | None:
        """The node that serves the instance."""
        with self._call("holder_of", None):
            holders = (key for key, one in self.nodes.items() if one.seen.instance_id == instance)
            return next(holders, None)

    def carried(self, node: UUID) -> Carried:
        """What it was deployed with."""
        with self._call("carried", node):
            found = self._node(node)
            seen, given = found.seen, found.deployment
            if given is None:
                return Carried(instance_id=seen.instance_id, lessee=seen.lessee)
            return Carried(
                instance_id=seen.instance_id,
                image_source=given.image_source,
                image_checksum=given.image_checksum,
                project_id=given.project_id,
                root_device=given.root_device,
                lessee=seen.lessee,
            )

    def evict(self, node: UUID, *, instance: UUID, reason: str) -> None:
        """Maintenance, and no instance."""
        with self._call("evict", node):
            found = self._node(node)
            found.seen = replace(found.seen, maintenance=True)
            if found.seen.instance_id == instance:
                self._drop_claim(found)

    def rescue(self, node: UUID, *, password: str) -> None:
        """Begin to boot the rescue system."""
        with self._call("rescue", node):
            self._turn(self._node(node), "active", "rescuing")

    def unrescue(self, node: UUID) -> None:
        """Begin to boot the server's own system."""
        with self._call("unrescue", node):
            self._turn(self._node(node), "rescue", "unrescuing")

    def console(self, node: UUID) -> Console | None:
        """What the test gave it."""
        with self._call("console", node):
            url = self._node(node).console_url
            return Console("shellinabox", url) if url else None

    def hardware(self, node: UUID) -> dict[str, str]:
        """What the test gave it."""
        with self._call("hardware", node):
            return dict(self._node(node).hardware)

    # ------------------------------------------------------------------ inside
    def _forget(self, node: FakeNode) -> None:
        """What Ironic drops when an instance is removed; a lessee set by hand stays."""
        given = node.deployment.project_id if node.deployment else ""
        lessee = "" if node.seen.lessee == given else node.seen.lessee
        node.deployment = None
        self._drop_claim(node)
        node.seen = replace(node.seen, lessee=lessee)

    def _turn(self, node: FakeNode, source: str, target: str) -> None:
        self._refuse_locked(node)
        if node.seen.provision_state != source:
            raise Refused(f"can not be performed in state {node.seen.provision_state}")
        self._to(node, target)

    def _node(self, node: UUID) -> FakeNode:
        if node not in self.nodes:
            raise NodeFault(f"node {node} is not known any more")
        return self.nodes[node]

    def _drop_claim(self, node: FakeNode) -> None:
        if node.seen.instance_id is not None:
            self.claims.pop(node.seen.instance_id, None)
        node.seen = replace(node.seen, instance_id=None)

    def _refuse_locked(self, node: FakeNode) -> None:
        if node.seen.provision_state in IN_MOTION:
            raise Transient("the node is locked")

    def _to(self, node: FakeNode, state: str, *, error: str = "") -> None:
        node.seen = replace(
            node.seen, provision_state=state, last_error=error, changed_at=clock.now()
        )

    def _call(self, name: str, node: UUID | None) -> Call:
        self.calls.append((name, node))
        return Call(
            self._before.get(name, []),
            self._after.get(name, []),
            lambda: self.on_call(name, node),
            lambda: self.on_return(name, node),
        )


def fake_of(site: Site) -> FakeCompute:
    """The fake site of a code."""
    return FakeCompute.of(site.code)
